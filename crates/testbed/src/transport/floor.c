/* The floor: the least a launch agent can do. No secrecy, no exit code, no clean-up; for measurements only.
 *
 *   floor serve ADDRESS PORT
 *   floor HOST COMMAND...      HOST is looked up in the file named by FLOOR_HOSTS ("NAME ADDRESS PORT" per line)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_in address_of(const char *address, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (!inet_aton(address, &to.sin_addr)) exit(2);
    return to;
}

static int serve(const char *address, int port) {
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = address_of(address, port);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 128)) return perror("floor"), 1;
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        int connection = accept(listener, NULL, NULL);
        if (connection >= 0 && fork() == 0) {
            static char command[1 << 20];
            size_t length = 0;
            ssize_t got;
            while ((got = read(connection, command + length, 1)) == 1 && command[length]) length++;
            for (int fd = 0; fd < 3; fd++) dup2(connection, fd);
            close(connection);
            execl("/bin/sh", "sh", "-c", command, NULL);
            _exit(127);
        }
        close(connection);
    }
}

static int find(const char *host, char *address, int *port) {
    char name[256];
    FILE *table = fopen(getenv("FLOOR_HOSTS") ? getenv("FLOOR_HOSTS") : "", "r");
    while (table && fscanf(table, "%255s %15s %d", name, address, port) == 3)
        if (!strcmp(host, name)) return fclose(table), 1;
    return 0;
}

static int launch(char **words) {
    static char command[1 << 20], buffer[1 << 16];
    char address[16], *end = command;
    int port, on = 1;
    while (*words && **words == '-') words++;
    if (!*words || !find(*words, address, &port)) return 255;
    for (words++; *words; words++) end = stpcpy(stpcpy(end, *words), " ");
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = address_of(address, port);
    if (connect(connection, (void *)&to, sizeof to)) return perror("floor"), 255;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (write(connection, command, end - command + 1) < 0) return 255;
    for (ssize_t got; (got = read(connection, buffer, sizeof buffer)) > 0;)
        for (ssize_t put = 0, one; put < got; put += one)
            if ((one = write(1, buffer + put, got - put)) < 0) return 255;
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "serve")) return serve(argv[2], atoi(argv[3]));
    return launch(argv + 1);
}
