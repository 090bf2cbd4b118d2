/* Memory of this process at addresses that a program has given: whether they are good is for the kernel to say. */
#include <errno.h>
#include <string.h>
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
