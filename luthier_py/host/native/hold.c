/* Writers of some pages wait while these are exchanged, so that nothing they write is lost (userfaultfd(2), write
 * protection: Linux 5.7 for memory of the program's own, 5.19 for shared memory). Without it writers are not held.
 *
 * From hold_writers to let_writers_go the caller may wait itself: it makes system calls only, takes no lock, and writes to
 * its stack and nowhere else. Pages with its own stack or thread's data are not held.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hold.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static const uint64_t WP_SHARED = 1 << 12; /* UFFD_FEATURE_WP_HUGETLBFS_SHMEM */
static const uint64_t WP = 1 << 0;         /* UFFD_FEATURE_PAGEFAULT_FLAG_WP */

static long control_device(int fd, unsigned long request, void *argument) { return syscall(SYS_ioctl, fd, request, argument); }

static bool near(uintptr_t address, uintptr_t start, size_t bytes)
{
    return address + OWN_BYTES > start && address < start + bytes + OWN_BYTES;
}

/* Without the privilege only what a program itself writes can wait; what the kernel writes for it then fails (EFAULT). */
static int device(bool of_file)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0 && errno == EPERM)
        fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = WP | (of_file ? WP_SHARED : 0)};
    if (fd >= 0 && control_device(fd, UFFDIO_API, &api) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

struct held hold_writers(uintptr_t start, size_t bytes, bool of_file)
{
    struct held held = {.fd = -1};
    sigset_t all;
    if (near((uintptr_t)&held, start, bytes) || near((uintptr_t)&errno, start, bytes) || (held.fd = device(of_file)) < 0)
        return held;
    sigfillset(&all); /* a handler could wait, and no thread would release it */
    pthread_sigmask(SIG_SETMASK, &all, &held.signals);
    for (uintptr_t page = start; !of_file && page < start + bytes; page += 4096)
        (void)*(volatile const char *)page; /* only pages that are there can be protected */
    struct uffdio_register pages = {.range = {start, bytes}, .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect protect = {.range = {start, bytes}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    if (control_device(held.fd, UFFDIO_REGISTER, &pages) < 0 || control_device(held.fd, UFFDIO_WRITEPROTECT, &protect) < 0)
        let_writers_go(&held);
    return held;
}

void let_writers_go(struct held *held)
{
    if (held->fd < 0)
        return;
    syscall(SYS_close, held->fd); /* who waits tries again, with the pages that are there now */
    held->fd = -1;
    pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
}
