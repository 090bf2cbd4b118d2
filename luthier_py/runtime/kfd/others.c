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

/* The mapping of a file that another process of this user finds by its name; false where not all of the range is one shared
 * mapping that may be written, of another file than ours, which has its name still. */
static bool find_shared_file(uintptr_t start, size_t bytes, struct mapping *found)
{
    FILE *maps = REAL(fopen)("/proc/self/maps", "re");
    bool there = false;
    while (maps && !there && next_mapping(maps, found))
        there = found->start <= start && start < found->end;
    if (maps)
        fclose(maps);
    return there && found->kind == 's' && found->write == 'w' && start + bytes <= found->end && *found->name == '/' &&
           !arena_is_file(found->device, found->inode) &&
           is_file_of(found->name, found->inode, found->offset + (start - found->start) + bytes);
}

/* What other processes share with this one stays theirs: the worker maps the same file. */
int file_share(uint64_t handle, uintptr_t start, size_t bytes)
{
    struct mapping found;
    struct reply reply;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (start % page || !find_shared_file(start, bytes, &found))
        return -1;
    uint64_t offset = found.offset + (start - found.start);
    struct part parts[] = {{&handle, 8}, {&offset, 8}, {found.name, strlen(found.name)}};
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
