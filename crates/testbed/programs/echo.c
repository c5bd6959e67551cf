/* Rank 0 copies its standard input to its standard output, up to a line "end"; all ranks then meet in a barrier.
 * The end of file is not waited for: Open MPI 5 does not pass it on when it comes before the rank has started. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        char *line = NULL;
        size_t space = 0;
        while (getline(&line, &space, stdin) > 0 && strcmp(line, "end\n")) failed |= fputs(line, stdout) < 0;
        fflush(stdout);
        free(line);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
