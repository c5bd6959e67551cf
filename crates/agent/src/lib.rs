//! The rank transport: how mpirun reaches the other hosts of a job.
