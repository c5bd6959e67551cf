/* One isolated host: its own UTS, mount, IPC, PID and (if asked) network namespaces.
 *
 *   host start NAME HOSTS_FILE SHM_BYTES shared|private BIND... -- [COMMAND...]
 *   host enter PID all|net FOLDER -- COMMAND...
 *
 * start: standard output gets "pid PID" and "made" when the namespaces stand, and, after one byte on standard input,
 * "ready" once COMMAND (or, without one, a plain reaper) is process 1. Standard error is process 1's output. When
 * standard input ends, so does the host and everything in it, and standard output gets "cpu MICROSECONDS".
 * enter: runs COMMAND inside, passes SIGHUP, SIGINT, SIGQUIT and SIGTERM on, and ends the way it ended. The file named
 * by UNISONO_TESTBED_CPU_FILE, if any, gets "cpu MICROSECONDS".
 * C and not Rust, because namespaces must be made by a process with one thread, and a test's process has many. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_STARTED = 125, MAX_BINDS = 32 };

static int started_fd = -1; /* where process 1 tells its parent how its start went */

static void fail(const char *what, const char *on) {
    int reason = errno;
    if (started_fd >= 0 && write(started_fd, "f", 1) < 0) perror("testbed host");
    errno = reason;
    fprintf(stderr, "testbed host: %s %s: %s\n", what, on, strerror(errno));
    exit(NOT_STARTED);
}

static void must(int result, const char *what, const char *on) {
    if (result < 0) fail(what, on);
}

static void make_folders(const char *path) {
    char part[4096];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(part, 0755);
        *slash = '/';
    }
    mkdir(part, 0755);
}

/* A private /tmp would hide what lives there and is in use: that is bound back. */
static void mount_private_tmp(char **binds, int count) {
    int sources[MAX_BINDS];
    for (int i = 0; i < count; i++)
        must(sources[i] = open(binds[i], O_PATH | O_CLOEXEC), "open", binds[i]);
    must(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"), "mount", "/tmp");
    for (int i = 0; i < count; i++) {
        char source[64];
        snprintf(source, sizeof source, "/proc/self/fd/%d", sources[i]);
        make_folders(binds[i]);
        must(mount(source, binds[i], NULL, MS_BIND | MS_REC, NULL), "bind", binds[i]);
        close(sources[i]);
    }
}

static void bring_loopback_up(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(socket_fd, "open socket for", "lo");
    must(ioctl(socket_fd, SIOCSIFFLAGS, &request), "bring up", "lo");
    close(socket_fd);
}

static void furnish(const char *name, const char *hosts, const char *shm_bytes, int private_network,
                    char **binds, int count) {
    char shm_options[64];
    must(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL), "make private", "/");
    must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), "mount", "/proc");
    must(mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL), "bind over /etc/hosts", hosts);
    mount_private_tmp(binds, count);
    snprintf(shm_options, sizeof shm_options, "mode=1777,size=%s", shm_bytes);
    must(mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, shm_options), "mount", "/dev/shm");
    must(sethostname(name, strlen(name)), "set host name", name);
    if (private_network) bring_loopback_up();
}

static void become_process_one(char **command) {
    int null = open("/dev/null", O_RDONLY);
    must(null, "open", "/dev/null");
    dup2(null, 0);
    dup2(2, 1);
    if (null > 2) close(null);
    setsid();
    if (*command) {
        execvp(*command, command);
        fail("run", *command);
    }
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps for us */
    close(started_fd);
    for (;;) pause();
}

/* All processor time of what was waited for, and of what that had waited for. */
static void tell_cpu(int to) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    long long seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
    signal(SIGPIPE, SIG_IGN); /* who asked may have gone */
    dprintf(to, "cpu %lld\n", seconds * 1000000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int start(int argc, char **argv) {
    if (argc < 5) return NOT_STARTED;
    int private_network = strcmp(argv[3], "private") == 0;
    char **binds = argv + 4, **command = binds;
    while (*command && strcmp(*command, "--")) command++;
    int count = command - binds;
    if (!*command || count > MAX_BINDS) return NOT_STARTED;
    command++;

    int spaces = CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | (private_network ? CLONE_NEWNET : 0);
    must(unshare(spaces), "make", "namespaces");
    int started[2];
    must(pipe2(started, O_CLOEXEC), "make", "pipe");
    pid_t child = fork();
    must(child, "fork", "process 1");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(started[0]);
        started_fd = started[1];
        furnish(argv[0], argv[1], argv[2], private_network, binds, count);
        char go;
        must(write(1, "made\n", 5), "tell of", "the host");
        if (read(0, &go, 1) != 1) exit(NOT_STARTED);
        become_process_one(command);
    }
    close(started[1]);
    dprintf(1, "pid %d\n", child);
    char failure;
    if (read(started[0], &failure, 1) == 0) { /* closed without a word: process 1 runs */
        dprintf(1, "ready\n");
    }

    int pidfd = syscall(SYS_pidfd_open, child, 0);
    must(pidfd, "open", "pidfd");
    struct pollfd wait_for[] = {{.fd = 0, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    while (poll(wait_for, 2, -1) < 0 && errno == EINTR) {}
    kill(child, SIGKILL);
    int status;
    must(waitpid(child, &status, 0), "wait for", "process 1"); /* returns when the whole PID namespace is dead */
    tell_cpu(1);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void end_like(int status) {
    const char *cpu_file = getenv("UNISONO_TESTBED_CPU_FILE");
    int to = cpu_file ? open(cpu_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
    if (to >= 0) tell_cpu(to);
    if (WIFEXITED(status)) exit(WEXITSTATUS(status));
    struct rlimit no_core = {0, 0};
    sigset_t none;
    setrlimit(RLIMIT_CORE, &no_core);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    exit(128 + WTERMSIG(status));
}

static int enter(int argc, char **argv) {
    if (argc < 5 || strcmp(argv[3], "--")) return NOT_STARTED;
    sigset_t passed_on, before;
    sigemptyset(&passed_on);
    int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&passed_on, numbers[i]);
    sigprocmask(SIG_BLOCK, &passed_on, &before);

    int pidfd = syscall(SYS_pidfd_open, atoi(argv[0]), 0);
    must(pidfd, "open process", argv[0]);
    int all = CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET;
    must(setns(pidfd, strcmp(argv[1], "net") ? all : CLONE_NEWNET), "enter namespaces of", argv[0]);
    close(pidfd);
    must(chdir(argv[2]), "change to", argv[2]);
    pid_t child = fork();
    must(child, "fork", argv[4]);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(argv[4], argv + 4);
        fail("run", argv[4]);
    }
    for (;;) {
        int status, number;
        if (waitpid(child, &status, WNOHANG) == child) end_like(status);
        if (sigwait(&passed_on, &number) == 0 && number != SIGCHLD) kill(child, number);
    }
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "start")) return start(argc - 2, argv + 2);
    if (argc > 2 && !strcmp(argv[1], "enter")) return enter(argc - 2, argv + 2);
    fprintf(stderr, "usage: host start|enter ...\n");
    return NOT_STARTED;
}
