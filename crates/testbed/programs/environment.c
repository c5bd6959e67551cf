/* Rank by rank, prints "R HOST NAME=VALUE" for every variable of its environment. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv) {
    int rank;
    char host[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gethostname(host, sizeof host);
    for (char **variable = environ; *variable; variable++) printf("%d %s %s\n", rank, host, *variable);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
