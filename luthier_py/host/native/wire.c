/* The connection to a worker process. See wire.h. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"
#include "protocol.h"

enum { PARTS = 8, SOCKET_FD = 3 };
static const unsigned long PERSONALITY_NOW = 0xffffffff; /* queries, and changes nothing */

void say(const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    int bytes = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    size_t length = bytes < 0 ? 0 : (size_t)bytes < sizeof line - 1 ? (size_t)bytes : sizeof line - 2;
    line[length] = '\n';
    if (write(STDERR_FILENO, line, length + 1) < 0)
        return; /* no reader is left */
}

int descriptor_out_of_the_way(int fd)
{
    static const int floors[] = {200, 100, 50, 25, SHARED_FD + 1}; /* RLIMIT_NOFILE may be lower than the first */
    int high = -1;
    for (size_t i = 0; high < 0 && i < sizeof floors / sizeof *floors; i++)
        high = fcntl(fd, F_DUPFD_CLOEXEC, floors[i]);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

uint64_t descriptor_file(int fd)
{
    struct statx facts; /* by the system call: a library may replace the C library's functions */
    if (fd < 0 || syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &facts) < 0)
        return 0;
    return facts.stx_ino ^ ((uint64_t)facts.stx_dev_major << 56 | (uint64_t)facts.stx_dev_minor << 48);
}

/* The child forks once more and ends, so that the program's own wait() never meets the worker. */
static bool spawn(const char *service, int socket_fd, int shared_fd)
{
    static const char boot[] =
        "import gc, os, sys\n"
        "if os.fork(): os._exit(0)\n"
        "gc.disable()\n" /* until everything is loaded: there is no garbage in modules */
        "sys.path.insert(0, sys.argv[1])\n"
        "from luthier_py.host.serve import main\n"
        "main(sys.argv[2])\n";
    if (socket_fd <= SHARED_FD || (shared_fd >= 0 && shared_fd <= SHARED_FD)) { /* the worker's own numbers */
        say("luthier: too few file descriptors for a worker; raise the limit (ulimit -n)");
        return false;
    }
    const char *python = setting("LUTHIER_PYTHON");
    if (!python || !*python)
        python = LUTHIER_PYTHON;
    char *argv[] = {(char *)python, "-I", "-c", (char *)boot, LUTHIER_ROOT, (char *)service, NULL};
    char **environment = worker_environment(strcmp(service, "tool") == 0); /* whose options have any name */
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket_fd, SOCKET_FD);
    if (shared_fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, shared_fd, SHARED_FD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP); /* Ctrl-C is for the program */
    posix_spawnattr_setpgroup(&attributes, 0);
    pid_t pid;
    /* Its own memory is to lie elsewhere than the program's, pages of which it may have to see at their address. */
    int layout = personality(PERSONALITY_NOW);
    if (layout >= 0)
        personality((unsigned)layout | ADDR_COMPAT_LAYOUT);
    int failed = environment ? posix_spawn(&pid, python, &actions, &attributes, argv, environment) : ENOMEM;
    if (layout >= 0)
        personality((unsigned)layout);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    if (failed) {
        say("luthier: cannot start %s: %s; set LUTHIER_PYTHON to the Python that has luthier-py", python, strerror(failed));
        return false;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return true;
}

bool wire_start(struct wire *wire, const char *service, int shared_fd)
{
    int ends[2];
    pthread_mutex_init(&wire->lock, NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        say("luthier: cannot make a socket: %s", strerror(errno));
        return false;
    }
    wire->fd = descriptor_out_of_the_way(ends[0]);
    wire->file = descriptor_file(wire->fd);
    int other = descriptor_out_of_the_way(ends[1]);
    bool started = spawn(service, other, shared_fd);
    close(other);
    if (!started)
        wire_close(wire);
    return started;
}

bool wire_taken(const struct wire *wire) { return wire->fd >= 0 && descriptor_file(wire->fd) != wire->file; }

void wire_close(struct wire *wire)
{
    if (wire->fd >= 0 && !wire_taken(wire))
        close(wire->fd);
    wire->fd = -1;
}

bool wire_gone(const struct wire *wire)
{
    static const short ends = POLLRDHUP | POLLHUP | POLLERR | POLLNVAL;
    struct pollfd state = {.fd = wire->fd, .events = POLLRDHUP};
    return wire->fd < 0 || wire_taken(wire) || (poll(&state, 1, 0) > 0 && state.revents & ends);
}

static bool send_all(int fd, struct iovec *parts, size_t count)
{
    while (count) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        for (; count && (size_t)sent >= parts->iov_len; parts++, count--)
            sent -= (ssize_t)parts->iov_len;
        if (count) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
    return true;
}

static bool receive_all(int fd, void *data, size_t bytes)
{
    for (char *at = data; bytes;) {
        ssize_t got = recv(fd, at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

static bool send_message(struct wire *wire, uint32_t code, const struct part *parts, int count)
{
    struct iovec vector[PARTS + 1];
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        vector[i + 1] = (struct iovec){(void *)parts[i].data, parts[i].bytes};
        bytes += parts[i].bytes;
    }
    uint32_t head[2] = {code, (uint32_t)bytes};
    vector[0] = (struct iovec){head, sizeof head};
    return bytes <= UINT32_MAX && wire->fd >= 0 && !wire_taken(wire) && send_all(wire->fd, vector, (size_t)count + 1);
}

bool wire_send(struct wire *wire, uint32_t code, const struct part *parts, int count)
{
    pthread_mutex_lock(&wire->lock);
    bool sent = send_message(wire, code, parts, count);
    pthread_mutex_unlock(&wire->lock);
    return sent;
}

bool wire_call(struct wire *wire, uint32_t code, const struct part *parts, int count, struct reply *reply)
{
    uint32_t head[2];
    *reply = (struct reply){0, 0, NULL};
    pthread_mutex_lock(&wire->lock);
    bool good = send_message(wire, code, parts, count) && receive_all(wire->fd, head, sizeof head);
    if (good) {
        reply->status = (int32_t)head[0];
        reply->bytes = head[1];
        reply->data = malloc(head[1] + 1u);
        good = reply->data && receive_all(wire->fd, reply->data, head[1]);
    }
    pthread_mutex_unlock(&wire->lock);
    if (good)
        reply->data[reply->bytes] = 0;
    else
        free(reply->data), reply->data = NULL;
    return good;
}

const void *take(struct cursor *cursor, size_t bytes)
{
    if (cursor->bad || (size_t)(cursor->end - cursor->at) < bytes) {
        cursor->bad = true;
        return NULL;
    }
    const void *data = cursor->at;
    cursor->at += bytes;
    return data;
}

uint32_t take32(struct cursor *cursor)
{
    uint32_t value = 0;
    const void *data = take(cursor, sizeof value);
    if (data)
        memcpy(&value, data, sizeof value);
    return value;
}

uint64_t take64(struct cursor *cursor)
{
    uint64_t value = 0;
    const void *data = take(cursor, sizeof value);
    if (data)
        memcpy(&value, data, sizeof value);
    return value;
}
