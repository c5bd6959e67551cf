/* Sums one number and then 8 MB of numbers over all ranks; every rank checks every sum and says "sums right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MANY = 1 << 20 };

int main(int argc, char **argv) {
    int rank, size, wrong = 0;
    char host[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);

    long mine = rank + 1, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != (long)size * (size + 1) / 2;

    double *values = malloc(MANY * sizeof *values), *sums = malloc(MANY * sizeof *sums);
    for (int i = 0; i < MANY; i++) values[i] = (double)rank * (i % 1000);
    MPI_Allreduce(values, sums, MANY, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double of_ranks = (double)size * (size - 1) / 2;
    for (int i = 0; i < MANY; i++) wrong += sums[i] != of_ranks * (i % 1000);

    printf("rank %d of %d on %s: %s\n", rank, size, host, wrong ? "sums WRONG" : "sums right");
    fflush(stdout);
    free(values);
    free(sums);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
