//! What reading a kube-batch `MPI` can tell beyond what every dialect tells.

use crate::codes::codes;

codes! {
    SIZES_HANG = "sizes-never-meet", Error, "the sizes of job and gang never meet, so the job would hang",
        "A kube-batch MPI job needs the same number three times: `completions` and `parallelism` of its Job and `minMember` of its PodGroup. With fewer pods at a time than completions the later pods never reach the host file; with a gang larger than the number of pods nothing is ever scheduled.";
    SIZES_DIFFER = "sizes-differ", Warning, "the sizes of job and gang differ",
        "`completions`, `parallelism` and `minMember` should be the same number. The job still runs with the number of hosts that the message tells.";
}
