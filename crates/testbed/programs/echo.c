/* Rank 0 copies its standard input to its standard output; all ranks then meet in a barrier. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        static char buffer[65536];
        ssize_t got;
        while ((got = read(0, buffer, sizeof buffer)) > 0) failed |= fwrite(buffer, 1, got, stdout) != (size_t)got;
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
