/* Rank by rank, prints "R HOST NAME=VALUE" for each of the variables that it is told to look for and that it has. No more: launchers cut what
 * is longer than a few thousand bytes, and put what another rank says in between. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    char host[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gethostname(host, sizeof host);
    for (int at = 1; at < argc; at++) {
        const char *value = getenv(argv[at]);
        if (value) printf("%d %s %s=%s\n", rank, host, argv[at], value);
    }
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
