/* Memory that other processes have, too: files that several map, and what one of them has shared by a handle. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kfd.h"

/* Whether a name still leads to the file that was mapped by it, and that file is as long: behind its end are no pages. Devices
 * differ where a file system lies on others (overlayfs, btrfs), numbers do not. */
static bool is_file_of(const char *name, unsigned long inode, uint64_t end)
{
    struct statx facts; /* by the system call, as in wire.c */
    if (syscall(SYS_statx, AT_FDCWD, name, 0, STATX_TYPE | STATX_INO | STATX_SIZE, &facts) < 0)
        return false;
    return S_ISREG(facts.stx_mode) && facts.stx_ino == inode && end < facts.stx_size + (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The name by which another process of this user finds the file behind a mapping, and where in it `start` is; false where
 * not all of the range is one shared mapping that may be written, of another file than ours, which has its name still. */
static bool find_shared_file(uintptr_t start, size_t bytes, char *name, size_t room, uint64_t *offset)
{
    FILE *maps = REAL(fopen)("/proc/self/maps", "re");
    unsigned long from, to, at, inode;
    unsigned device_major, device_minor;
    char write, kind, line[4096 + 128] = "";
    int place = 0;
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps))
        found = sscanf(line, "%lx-%lx %*c%c%*c%c %lx %x:%x %lu %n", &from, &to, &write, &kind, &at, &device_major, &device_minor,
                       &inode, &place) == 8 && from <= start && start < to;
    if (maps)
        fclose(maps);
    line[strcspn(line, "\n")] = '\0';
    if (!found || kind != 's' || write != 'w' || start + bytes > to || line[place] != '/' || strlen(line + place) >= room)
        return false;
    if (arena_is_file(makedev(device_major, device_minor), inode))
        return false;
    *offset = at + (start - from);
    if (!is_file_of(line + place, inode, *offset + bytes))
        return false;
    strcpy(name, line + place);
    return true;
}

/* What other processes share with this one stays theirs: the worker maps the same file. */
int file_share(uint64_t handle, uintptr_t start, size_t bytes)
{
    char name[4096];
    uint64_t offset;
    struct reply reply;
    if (!find_shared_file(start, bytes, name, sizeof name, &offset))
        return -1;
    struct part parts[] = {{&handle, 8}, {&offset, 8}, {name, strlen(name)}};
    if (!driver_ask(MESSAGE_SHARED_FILE, parts, 3, &reply))
        return EIO;
    struct cursor cursor = {reply.data, reply.data + reply.bytes, false};
    int error = reply.status ? EIO : (int)take32(&cursor);
    free(reply.data);
    return error;
}

int pages_import(uintptr_t address, size_t bytes, uint32_t worker, uint64_t place)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%u/fd/%d", worker, SHARED_FD);
    int other = REAL(open)(name, O_RDWR | O_CLOEXEC);
    if (other < 0)
        return errno;
    void *got = mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other, (off_t)place);
    int error = got == MAP_FAILED ? errno : 0;
    close(other);
    if (!error)
        madvise(got, bytes, MADV_DONTFORK);
    return error;
}
