/* Shared virtual memory: the program's pages that the device accesses at their addresses, from AMDKFD_IOC_SVM on until
 * the program unmaps them. They become pages of the file that both sides see; pages of files that other processes may
 * map stay in these, and the worker maps these files. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "kfd.h"

/* Before anything of the range is exchanged, every page of it has to be one that can be. */
static int check(const struct mapping *found, uintptr_t start, uintptr_t end)
{
    if (arena_is_file(found->device, found->inode)) /* buffers of the device's are none */
        return arena_has((void *)start) && !lasting_has(start) ? EFAULT : 0;
    struct shared_file file;
    if (found->kind == 's')
        return find_shared_file(start, end, found, &file) ? 0 : EFAULT;
    return found->write == 'w' ? 0 : EFAULT;
}

static int use_file(const struct mapping *found, uintptr_t start, uintptr_t end)
{
    struct shared_file file;
    uint64_t bytes = end - start;
    if (!find_shared_file(start, end, found, &file))
        return EFAULT;
    uint64_t place[] = {start, bytes, file.offset, file.inode};
    int error = driver_ask_file(MESSAGE_SVM_FILE, place, sizeof place, file.name);
    return error ? error : lasting_add(start, end, found) ? 0 : ENOMEM;
}

static int use(const struct mapping *found, uintptr_t start, uintptr_t end)
{
    if (found->kind == 's' && !arena_is_file(found->device, found->inode))
        return use_file(found, start, end);
    return pages_keep(start, end, found);
}

/* Each subrange that one mapping covers; EFAULT where there is none. */
static int for_mappings(uintptr_t start, uintptr_t end, int (*with)(const struct mapping *, uintptr_t, uintptr_t))
{
    FILE *maps = open_mappings();
    struct mapping found;
    int error = maps ? 0 : EFAULT;
    while (!error && start < end && next_mapping(maps, &found)) {
        if (found.end <= start)
            continue;
        uintptr_t to = found.end < end ? found.end : end;
        error = found.start > start ? EFAULT : with(&found, start, to);
        start = to;
    }
    if (maps)
        fclose(maps);
    return error ? error : start < end ? EFAULT : 0;
}

static int is_there(const struct mapping *found, uintptr_t start, uintptr_t end)
{
    (void)found, (void)start, (void)end;
    return 0;
}

static void gone(uintptr_t start, uintptr_t end)
{
    uint64_t range[] = {start, end - start};
    pages_forget(start, end);
    driver_tell(MESSAGE_SVM_GONE, &(struct part){range, sizeof range}, 1);
}

/* One call after the other: what one finds to be unmapped another must not be sharing anew meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void svm_after_fork(void) { pthread_mutex_init(&lock, NULL); }

void svm_sweep(void)
{
    pthread_mutex_lock(&lock);
    lasting_sweep(gone);
    pthread_mutex_unlock(&lock);
}

static int share(uintptr_t start, uintptr_t end)
{
    int error = for_mappings(start, end, check);
    return error ? error : for_mappings(start, end, use);
}

int svm_prepare(const struct svm *asked)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = asked->start + asked->bytes;
    if (!asked->start || !asked->bytes || (asked->start | asked->bytes) % page || end < asked->start)
        return EINVAL;
    pthread_mutex_lock(&lock);
    lasting_sweep(gone);
    int error = asked->operation == SVM_SET ? share(asked->start, end) : for_mappings(asked->start, end, is_there) ? EINVAL : 0;
    pthread_mutex_unlock(&lock);
    return error;
}
