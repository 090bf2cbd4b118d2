/* Files of the driver that do not exist here: calls that name them are redirected to files that the worker has written,
 * or to our devices. All other calls pass unchanged. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kfd.h"

enum { DRM_MAJOR = 226, KFD_MAJOR = 240 };

/* Where they are in the folder; what ends in a colon begins names. */
static const struct { const char *from, *to; } FILES[] = {
    {"/sys/devices/virtual/kfd/kfd", "kfd"}, {"/sys/class/kfd/kfd", "kfd"}, {"/sys/module/amdgpu", "amdgpu"},
    {"/sys/dev/char/226:", "char/226:"},     {"/sys/class/drm", "drm"},    {"/dev/dri", "dri"},
    {"/usr/share/libdrm/amdgpu.ids", "amdgpu.ids"}};

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* A file, or one below it. */
static bool names(const char *path, const char *file)
{
    size_t length = strlen(file);
    return starts(path, file) && (file[length - 1] == ':' || !path[length] || path[length] == '/');
}

/* What the emulated device had is not looked for among the machine's own when its worker has ended. */
static int node_of(const char *path)
{
    int minor = 0, end = 0;
    if (!path || path[0] != '/' || !starts(path, "/dev/"))
        return NO_NODE;
    if (strcmp(path, "/dev/kfd") == 0)
        return driver_wanted() ? KFD_NODE : NO_NODE;
    if (sscanf(path, "/dev/dri/renderD%d%n", &minor, &end) != 1 || path[end] || !driver_wanted())
        return NO_NODE;
    return minor >= FIRST_RENDER && (!driver_ready() || minor < FIRST_RENDER + nodes_gpus()) ? minor : NO_NODE;
}

/* Where a file really is; `path` itself if it is none of ours. */
static const char *place_of(const char *path, char place[PATH_MAX])
{
    if (!path || path[0] != '/')
        return path;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        const char *folder = names(path, FILES[i].from) ? driver_files() : NULL;
        if (folder && snprintf(place, PATH_MAX, "%s/%s%s", folder, FILES[i].to, path + strlen(FILES[i].from)) < PATH_MAX)
            return place;
    }
    return path;
}

static void describe(int node, struct stat *about)
{
    about->st_mode = (about->st_mode & 0777) | S_IFCHR;
    about->st_rdev = node == KFD_NODE ? makedev(KFD_MAJOR, 0) : makedev(DRM_MAJOR, (unsigned)node);
    about->st_size = 0;
}

static int stat_node(int node, struct stat *about)
{
    int fd = driver_open(node, O_CLOEXEC, NULL);
    int result = fd < 0 ? -1 : REAL(fstat)(fd, about);
    if (result == 0)
        describe(node, about);
    if (fd >= 0)
        close(fd);
    return result;
}

#define OPEN_FUNCTION(name, directory_type, directory, pass)                                                             \
    API int name(directory_type const char *path, int flags, ...)                                                        \
    {                                                                                                                    \
        char place[PATH_MAX];                                                                                            \
        mode_t mode = 0;                                                                                                 \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                                                       \
            va_list list;                                                                                                \
            va_start(list, flags);                                                                                       \
            mode = va_arg(list, mode_t);                                                                                 \
            va_end(list);                                                                                                \
        }                                                                                                                \
        int node = node_of(path);                                                                                        \
        return node != NO_NODE ? driver_open(node, flags, __builtin_return_address(0))                                   \
                               : REAL(name)(directory pass place_of(path, place), flags, mode);                          \
    }
#define COMMA ,
OPEN_FUNCTION(open, , , )
OPEN_FUNCTION(open64, , , )
OPEN_FUNCTION(openat, int directory COMMA, directory, COMMA)
OPEN_FUNCTION(openat64, int directory COMMA, directory, COMMA)

API int __open_2(const char *path, int flags);
API int __open64_2(const char *path, int flags);
API int __openat_2(int directory, const char *path, int flags);
API int __openat64_2(int directory, const char *path, int flags);
int __openat_2(int directory, const char *path, int flags)
{
    int node = node_of(path); /* whose caller is ours to know */
    return node != NO_NODE ? driver_open(node, flags, __builtin_return_address(0)) : openat(directory, path, flags);
}
int __open_2(const char *path, int flags)
{
    int node = node_of(path);
    return node != NO_NODE ? driver_open(node, flags, __builtin_return_address(0)) : open(path, flags);
}
int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));
int __openat64_2(int directory, const char *path, int flags) __attribute__((alias("__openat_2")));

#define BY_PATH(type, name, more, pass)                                                                                  \
    API type name(const char *path more)                                                                                 \
    {                                                                                                                    \
        char place[PATH_MAX];                                                                                            \
        return REAL(name)(place_of(path, place) pass);                                                                   \
    }
BY_PATH(FILE *, fopen, COMMA const char *mode, COMMA mode)
BY_PATH(FILE *, fopen64, COMMA const char *mode, COMMA mode)
BY_PATH(DIR *, opendir, , )
BY_PATH(ssize_t, readlink, COMMA char *to COMMA size_t bytes, COMMA to COMMA bytes)

API int access(const char *path, int mode)
{
    char place[PATH_MAX];
    int node = node_of(path);
    if (node == NO_NODE)
        return REAL(access)(place_of(path, place), mode);
    errno = ENODEV;
    return driver_ready() ? 0 : -1;
}

#define STAT_FUNCTION(name, type)                                                                                        \
    API int name(const char *path, struct type *about)                                                                   \
    {                                                                                                                    \
        char place[PATH_MAX];                                                                                            \
        int node = node_of(path);                                                                                        \
        return node != NO_NODE ? stat_node(node, (struct stat *)about) : REAL(name)(place_of(path, place), about);       \
    }
STAT_FUNCTION(stat, stat)
STAT_FUNCTION(lstat, stat)
STAT_FUNCTION(stat64, stat64)
STAT_FUNCTION(lstat64, stat64)

#define FSTAT_FUNCTION(name, type)                                                                                       \
    API int name(int fd, struct type *about)                                                                             \
    {                                                                                                                    \
        int result = REAL(name)(fd, about), node = result ? NO_NODE : node_behind(fd);                                   \
        if (node != NO_NODE)                                                                                             \
            describe(node, (struct stat *)about);                                                                        \
        return result;                                                                                                   \
    }
FSTAT_FUNCTION(fstat, stat)
FSTAT_FUNCTION(fstat64, stat64)

/* Of programs that were built before glibc 2.33. */
API int __fxstat64(int version, int fd, struct stat64 *about);
API int __xstat64(int version, const char *path, struct stat64 *about);
API int __fxstat(int version, int fd, struct stat *about);
API int __xstat(int version, const char *path, struct stat *about);
int __fxstat64(int version, int fd, struct stat64 *about) { return (void)version, fstat64(fd, about); }
int __xstat64(int version, const char *path, struct stat64 *about) { return (void)version, stat64(path, about); }
int __fxstat(int version, int fd, struct stat *about) { return (void)version, fstat(fd, about); }
int __xstat(int version, const char *path, struct stat *about) { return (void)version, stat(path, about); }

/* A child of fork has no driver until it opens one: it lets go of all that its parent's was. */

static void after_fork(void)
{
    doorbells_after_fork();
    waits_after_fork();
    svm_after_fork();
    arena_after_fork();
    nodes_after_fork();
    driver_after_fork();
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }
