/* Calls by which a process becomes another program, or starts one, and the one that returns which program it is. */
#include <alloca.h>
#include <dlfcn.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaded.h"

#define API __attribute__((visibility("default")))
/* The C library's own functions, looked up before anything starts (-z initfirst): a child of vfork must not wait for a
 * lock. */
#define REAL(name) real_##name
#define EACH(one) one(execve) one(execvpe) one(posix_spawn) one(posix_spawnp) one(readlink) one(readlinkat) one(realpath)
#define DECLARE(name) static __typeof__(&name) REAL(name);
EACH(DECLARE)

__attribute__((constructor)) static void look_up(void)
{
#define LOOK_UP(name) REAL(name) = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
    EACH(LOOK_UP)
}

static size_t count_of(char *const *words)
{
    size_t count = 0;
    while (words && words[count])
        count++;
    return count;
}

/* Room for a command on the caller's stack: a child of vfork must not allocate. */
#define ROOM_FOR(loaded, argv)                                                                                            \
    struct loaded loaded;                                                                                                 \
    loaded.words = alloca((count_of(argv) + BEFORE + MOST_OF_A_SCRIPT + 1) * sizeof *loaded.words)

API int execve(const char *path, char *const argv[], char *const envp[])
{
    ROOM_FOR(loaded, argv);
    if (load_by_name(&loaded, path, argv, envp))
        return REAL(execve)(loaded.path, (char *const *)loaded.words, envp);
    return REAL(execve)(path, argv, envp);
}

API int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

/* Where a name without a slash leads; `place` has it then. The C library's own rule: the first file that may be run. NULL
 * where there is none. */
static const char *found(const char *name, char place[PATH_MAX])
{
    const char *at = getenv("PATH");
    if (strchr(name, '/'))
        return name;
    if (!at)
        return NULL;
    for (;; at++) {
        int length = (int)strcspn(at, ":");
        struct stat about;
        if (snprintf(place, PATH_MAX, "%.*s%s%s", length, at, length ? "/" : "./", name) < PATH_MAX && access(place, X_OK) == 0 &&
            stat(place, &about) == 0 && S_ISREG(about.st_mode))
            return place;
        at += length;
        if (!*at)
            return NULL;
    }
}

API int execvpe(const char *name, char *const argv[], char *const envp[])
{
    char place[PATH_MAX];
    ROOM_FOR(loaded, argv);
    const char *path = found(name, place);
    if (path && load_by_name(&loaded, path, argv, envp))
        return REAL(execve)(loaded.path, (char *const *)loaded.words, envp);
    return REAL(execvpe)(name, argv, envp);
}

API int execvp(const char *name, char *const argv[]) { return execvpe(name, argv, environ); }

/* The words passed one by one, and what follows them. */
#define WORDS_OF(argv, first, more)                                                                                       \
    va_list more;                                                                                                         \
    va_start(more, first);                                                                                                \
    size_t count_ = 1;                                                                                                    \
    while (va_arg(more, char *))                                                                                          \
        count_++;                                                                                                         \
    va_end(more);                                                                                                         \
    char **argv = alloca((count_ + 1) * sizeof *argv);                                                                    \
    va_start(more, first);                                                                                                \
    argv[0] = (char *)first;                                                                                              \
    for (size_t i_ = 1; argv[i_ - 1]; i_++)                                                                               \
    argv[i_] = va_arg(more, char *)

API int execl(const char *path, const char *first, ...)
{
    WORDS_OF(argv, first, more);
    va_end(more);
    return execve(path, argv, environ);
}

API int execlp(const char *name, const char *first, ...)
{
    WORDS_OF(argv, first, more);
    va_end(more);
    return execvpe(name, argv, environ);
}

API int execle(const char *path, const char *first, ...)
{
    WORDS_OF(argv, first, more);
    char *const *envp = va_arg(more, char *const *);
    va_end(more);
    return execve(path, argv, envp);
}

API int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                    char *const argv[], char *const envp[])
{
    ROOM_FOR(loaded, argv);
    if (load_by_name(&loaded, path, argv, envp))
        return REAL(posix_spawn)(pid, loaded.path, actions, how, (char *const *)loaded.words, envp);
    return REAL(posix_spawn)(pid, path, actions, how, argv, envp);
}

API int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                     char *const argv[], char *const envp[])
{
    char place[PATH_MAX];
    ROOM_FOR(loaded, argv);
    const char *path = found(name, place);
    if (path && load_by_name(&loaded, path, argv, envp))
        return REAL(posix_spawn)(pid, loaded.path, actions, how, (char *const *)loaded.words, envp);
    return REAL(posix_spawnp)(pid, name, actions, how, argv, envp);
}

/* HIP looks into this file for code objects, clang for its own folder. */
static const char *asked_for(const char *path) { return strcmp(path, "/proc/self/exe") == 0 ? own_program() : NULL; }

static ssize_t give(const char *program, char *to, size_t bytes)
{
    size_t length = strlen(program) < bytes ? strlen(program) : bytes;
    memcpy(to, program, length);
    return (ssize_t)length;
}

API ssize_t readlink(const char *path, char *to, size_t bytes)
{
    const char *program = asked_for(path);
    return program ? give(program, to, bytes) : REAL(readlink)(path, to, bytes);
}

API ssize_t readlinkat(int folder, const char *path, char *to, size_t bytes)
{
    const char *program = asked_for(path);
    return program ? give(program, to, bytes) : REAL(readlinkat)(folder, path, to, bytes);
}

API char *realpath(const char *path, char *to)
{
    const char *program = asked_for(path);
    return program ? to ? strcpy(to, program) : strdup(program) : REAL(realpath)(path, to);
}

/* Of callers that were built with _FORTIFY_SOURCE. */
API ssize_t __readlink_chk(const char *path, char *to, size_t bytes, size_t room);
ssize_t __readlink_chk(const char *path, char *to, size_t bytes, size_t room)
{
    return readlink(path, to, bytes < room ? bytes : room);
}

/* For command.py, which gets one word after the other. */
API bool luthier_command(const char *path, char *const *given, char *const *environment, void (*add)(const char *word));
bool luthier_command(const char *path, char *const *given, char *const *environment, void (*add)(const char *word))
{
    ROOM_FOR(loaded, given);
    if (!load_by_name(&loaded, path, given, environment))
        return false;
    for (const char **word = loaded.words; *word; word++)
        add(*word);
    return true;
}
