/* exit_code RANK CODE [before-finalize]: that rank ends with that code, the others with 0. With the third argument it ends
 * without a word to MPI, while the others wait for it in a barrier. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int code = argc >= 3 && rank == atoi(argv[1]) ? atoi(argv[2]) : 0;
    if (argc == 4) {
        if (code) exit(code);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return code;
}
