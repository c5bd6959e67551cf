//! What reading and writing an `MPIJob` can tell beyond what every dialect tells.

use crate::codes::codes;

codes! {
    WRONG_REPLICA_KEY = "wrong-replica-key", Error, "`mpiReplicaSpecs` has a key that is neither `Launcher` nor `Worker`",
        "The MPI operator knows two kinds of replica, written exactly `Launcher` and `Worker`. It passes over any other key, so the pods below it are never made. Keys are case-sensitive.";
    OVERRIDDEN = "overridden-field", Warning, "a value that something else overrides",
        "The field is read, but a rule of its system or another field of the same object decides instead, as the message tells.";
    APPROXIMATED = "approximated-value", Warning, "a value that acts as another one",
        "The system takes the value, but acts as if another one were written; the message tells which. Write that one, so that the file says what happens.";
    MPI_MISMATCH = "mpi-mismatch", Warning, "the launch line is for another MPI than the file states",
        "The file states one MPI (or leaves it at the default, Open MPI), but options of the launch line belong to another. The hostfile and the variables follow the stated one, so the launch line would not find its hosts.";
    READ_AS_WRITTEN = "read-as-written", Note, "the object is read by the version it was written in",
        "A cluster serves every MPIJob in every version without changing it, so the `apiVersion` of an object that comes from a cluster is the version that was asked for. The version it was written in is told by its fields, else by its managed fields, else by the last-applied annotation; its defaults and rules are those that count.";
    GANG_TOO_LARGE = "gang-larger-than-job", Warning, "more pods must fit at once than the job has",
        "All-or-nothing placement waits until that many pods of the job fit. The job never has as many, so a gang scheduler never starts it.";
    CONVERTED = "changed-in-conversion", Note, "a conversion says the same in another way",
        "The dialect that was asked for says this with other fields, or its own system acts a little differently; nothing that the file states is lost.";
}
