/* segfault RANK: that rank touches address 0 while the others wait in a barrier. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(int argc, char **argv) {
    int rank;
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 2 && rank == atoi(argv[1])) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile int *)0 = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
