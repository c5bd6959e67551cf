/* print RANK MEGABYTES: that rank writes so many megabytes (of 1,000,000 bytes) of numbered 100-byte lines. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 3 && rank == atoi(argv[1])) {
        long lines = atol(argv[2]) * 10000;
        for (long line = 0; line < lines; line++) printf("%099ld\n", line);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
