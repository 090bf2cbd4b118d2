/* Memory that is not the arena's: at addresses that a program has given, of which the kernel says whether they are good; and
 * memory that other processes have, too: files that several map, and what one of them has shared by a handle. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kfd.h"

static bool copy_safely(void *to, const void *from, size_t bytes, bool write)
{
    struct iovec there = {write ? to : (void *)from, bytes}, here = {write ? (void *)from : to, bytes};
    ssize_t done = write ? process_vm_writev(getpid(), &here, 1, &there, 1, 0) : process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (done < 0 && errno != EFAULT) { /* not allowed in this place: then as a function of the C library would */
        memcpy(to, from, bytes);
        return true;
    }
    return done == (ssize_t)bytes;
}

bool read_safely(void *to, const void *from, size_t bytes) { return copy_safely(to, from, bytes, false); }
bool write_safely(void *to, const void *from, size_t bytes) { return copy_safely(to, from, bytes, true); }

/* What other processes share with this one stays theirs: the worker maps the same file. */
int file_share(uint64_t handle, uintptr_t start, size_t bytes)
{
    struct mapping found;
    struct shared_file shared;
    bool whole = start % (uintptr_t)sysconf(_SC_PAGESIZE) == 0 && find_mapping(start, &found);
    if (!whole || arena_is_file(found.device, found.inode) || !find_shared_file(start, start + bytes, &found, &shared))
        return -1;
    uint64_t where[] = {handle, shared.offset, shared.inode};
    return driver_ask_file(MESSAGE_SHARED_FILE, where, sizeof where, shared.name);
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
