/* daemon SECONDS: every rank leaves a daemon (double fork, own session) that sleeps and ignores SIGTERM; then all wait. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

static void leave_daemon(int seconds) {
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            signal(SIGTERM, SIG_IGN);
            signal(SIGHUP, SIG_IGN);
            for (int fd = 0; fd < 1024; fd++) close(fd);
            unsigned left = seconds;
            while ((left = sleep(left))) {}
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    int rank, seconds = argc > 1 ? atoi(argv[1]) : 1;
    leave_daemon(seconds);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("waiting %d %d\n", rank, getpid());
    fflush(stdout);
    sleep(seconds);
    MPI_Finalize();
    return 0;
}
