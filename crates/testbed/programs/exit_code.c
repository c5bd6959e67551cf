/* exit_code RANK CODE: that rank ends with that code, the others with 0. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Finalize();
    return argc == 3 && rank == atoi(argv[1]) ? atoi(argv[2]) : 0;
}
