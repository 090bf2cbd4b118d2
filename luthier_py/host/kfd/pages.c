/* Memory that both sides see: a file in which the page of each address lies at that address.
 *
 * What ROCr reserves is in the arena, which the worker has mapped whole. The program's pages that are registered (user
 * pointers) become pages of the file at their addresses, and are given back when no registration needs them: threads
 * that write to them in that moment wait (hold.c). Those of shared virtual memory stay so (lasting.c).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hold.h"
#include "kfd.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct share { uint64_t handle; uintptr_t start, end; struct share *next; };

static const uint64_t FILE_BYTES = 1ul << 47;
static int file = -1;
static struct stat identity; /* of that file */
static struct control *shared;
static struct share *shares;
static _Atomic uintptr_t next_place;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct control *control(void) { return shared; }
int arena_file(void) { return file; }

static void *map(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

bool arena_is_file(dev_t device, ino_t inode) { return inode == identity.st_ino && device == identity.st_dev; }
bool arena_has(const void *address) { return (uintptr_t)address - ARENA_START < ARENA_BYTES; }
static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

bool arena_make(void)
{
    int fd = memfd_create("luthier-memory", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)FILE_BYTES) == 0 && REAL(fstat)(fd, &identity) == 0) {
        file = descriptor_out_of_the_way(fd);
        void *place = map((void *)ARENA_START, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file,
                          (off_t)ARENA_START);
        if (place == (void *)ARENA_START) {
            madvise(place, CONTROL_BYTES, MADV_DONTFORK);
            shared = place;
            next_place = ARENA_START + CONTROL_BYTES;
            return true;
        }
    }
    say("luthier: cannot make memory for the emulated device: %s", strerror(errno));
    return false;
}

/* -- mmap ------------------------------------------------------------------------------------------------------------- */

/* Where nothing is mapped yet, in the arena; going round, so that what was freed is used again as late as possible. */
static void *reserve(size_t bytes, int protection, int flags)
{
    bytes = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
    if (bytes > ARENA_BYTES - CONTROL_BYTES) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    for (int round = 0; round < 2; round++) {
        for (uintptr_t place; (place = atomic_fetch_add(&next_place, bytes)) + bytes <= ARENA_START + ARENA_BYTES;) {
            void *got = map((void *)place, bytes, protection, flags | MAP_FIXED_NOREPLACE, -1, 0);
            if (got == (void *)place)
                return got;
            if (errno != EEXIST)
                return MAP_FAILED;
        }
        next_place = ARENA_START + CONTROL_BYTES;
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

/* Code of thunks. They are looked up when they open the driver, and not when they map: an allocator that maps may hold a lock
 * for which the holder of the dynamic linker's lock waits. */
enum { THUNKS = 8 };
static struct { _Atomic uintptr_t start, end; } thunks[THUNKS];

/* ROCr's thunk is a separate library before ROCm 6.3, and a part of ROCr since; a tool may be between it and us. */
static int note_thunk(struct dl_phdr_info *object, size_t size, void *caller)
{
    const char *path = object->dlpi_name ? object->dlpi_name : "", *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool thunk = strncmp(name, "libhsakmt", 9) == 0 || strncmp(name, "libhsa-runtime64", 16) == 0;
    uintptr_t start = UINTPTR_MAX, end = 0;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t at = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        start = at < start ? at : start;
        end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
    }
    thunk |= (uintptr_t)caller - start < end - start;
    for (size_t i = 0; thunk && start < end && i < THUNKS && thunks[i].start != start; i++) {
        uintptr_t none = 0;
        if (!thunks[i].end && atomic_compare_exchange_strong(&thunks[i].start, &none, start)) {
            thunks[i].end = end;
            break;
        }
    }
    return 0;
}

void arena_thunk(const void *caller) { dl_iterate_phdr(note_thunk, (void *)caller); }

static bool is_thunk(const void *caller)
{
    for (size_t i = 0; i < THUNKS && thunks[i].start; i++)
        if ((uintptr_t)caller >= thunks[i].start && (uintptr_t)caller < thunks[i].end)
            return true;
    return false;
}

/* Where in our file what a descriptor of ours has at an offset is. */
static off_t place_in_file(off_t offset)
{
    uint64_t gpu = ((uint64_t)offset & ~DOORBELL_TAG) >> GPU_SHIFT;
    bool doorbells = ((uint64_t)offset & DOORBELL_TAG) == DOORBELL_TAG && gpu - FIRST_GPU < MAX_GPUS;
    return doorbells ? (off_t)(ARENA_START + DOORBELLS_OFFSET + (gpu - FIRST_GPU) * DOORBELL_BYTES) : offset;
}

static void *mapped(void *address, size_t bytes, int protection, int flags, int fd, off_t offset, const void *caller)
{
    enum { SPACE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    if (!shared)
        return map(address, bytes, protection, flags, fd, offset);
    bool anonymous = flags & MAP_ANONYMOUS;
    if (anonymous && protection == PROT_NONE && (flags & SPACE) == SPACE && !(flags & MAP_FIXED) && is_thunk(caller))
        return reserve(bytes, protection, flags);
    if (anonymous && protection != PROT_NONE && flags & MAP_FIXED && arena_has(address)) {
        flags = MAP_SHARED | MAP_FIXED;
        offset = (off_t)(uintptr_t)address;
    } else if (anonymous || fd < 0 || node_behind(fd) == NO_NODE)
        return map(address, bytes, protection, flags, fd, offset);
    else
        offset = place_in_file(offset);
    void *got = map(address, bytes, protection, flags, file, offset);
    if (got != MAP_FAILED)
        madvise(got, bytes, MADV_DONTFORK);
    return got;
}

API void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return mapped(address, bytes, protection, flags, fd, offset, __builtin_return_address(0));
}

API void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    return mapped(address, bytes, protection, flags, fd, offset, __builtin_return_address(0));
}

/* -- user pointers ------------------------------------------------------------------------------------------------------ */

static bool is_shared_page(uintptr_t page, const struct share *but)
{
    for (const struct share *s = shares; s; s = s->next)
        if (s != but && s->start <= page && page < s->end)
            return true;
    return lasting_has(page);
}

/* Call `with` for each range of pages that no other share has; stop at the first errno. */
static int for_own_pages(const struct share *share, int (*with)(uintptr_t start, size_t bytes))
{
    size_t page = page_bytes();
    int error = 0;
    for (uintptr_t at = share->start, end; !error && at < share->end; at = end) {
        bool other = is_shared_page(at, share);
        for (end = at + page; end < share->end && is_shared_page(end, share) == other;)
            end += page;
        if (!other)
            error = with(at, end - at);
    }
    return error;
}

/* Whether all of it is memory that is this process's alone, and that it may write. */
static bool all_private(uintptr_t start, uintptr_t end)
{
    FILE *maps = open_mappings();
    struct mapping found;
    uintptr_t known = start;
    bool good = maps;
    while (good && known < end && next_mapping(maps, &found)) {
        if (found.end <= known)
            continue;
        good = found.start <= known && found.kind == 'p' && found.write == 'w';
        known = found.end;
    }
    if (maps)
        fclose(maps);
    return good && known >= end;
}

/* From here on they are the file's. */
static int map_own(uintptr_t start, size_t bytes)
{
    return map((void *)start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)start) == MAP_FAILED ? errno : 0;
}

static int exchange(uintptr_t start, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = pwrite(file, (const char *)start + done, bytes - done, (off_t)(start + done));
        if (count <= 0)
            return count < 0 ? errno : ENOMEM;
        done += (size_t)count;
    }
    return map_own(start, bytes);
}

/* What was never written takes no memory on either side. Nobody can be held there, as there are no pages yet. */
static int exchange_part(uintptr_t start, uintptr_t end, bool untouched)
{
    struct held held = untouched ? (struct held){.fd = -1} : hold_writers(start, end - start, false);
    int error = untouched ? map_own(start, end - start) : exchange(start, end - start);
    let_writers_go(&held);
    return error;
}

static int replace(uintptr_t start, size_t bytes)
{
    if (!all_private(start, start + bytes))
        return EFAULT;
    return exchange_part(start, start + bytes, false);
}

/* What was never written is zero there, too, and takes no memory. */
static void copy_written(char *to, uintptr_t start, size_t bytes)
{
    off_t first = (off_t)start, end = first + (off_t)bytes, hole;
    for (off_t at = first; (at = lseek(file, at, SEEK_DATA)) >= 0 && at < end; at = hole) {
        hole = lseek(file, at, SEEK_HOLE);
        hole = hole < at || hole > end ? end : hole;
        memcpy(to + (at - first), (const void *)at, (size_t)(hole - at));
    }
}

static int copy_back(uintptr_t start, size_t bytes)
{
    void *copy = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED)
        return ENOMEM;
    struct held held = hold_writers(start, bytes, true);
    copy_written(copy, start, bytes);
    int error = mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED ? errno : 0;
    let_writers_go(&held);
    if (error)
        munmap(copy, bytes);
    return error;
}

/* What of it the program has not unmapped since. */
static int make_private(uintptr_t start, size_t bytes)
{
    FILE *maps = open_mappings();
    struct mapping found;
    int error = maps ? 0 : errno;
    while (!error && next_mapping(maps, &found) && found.start < start + bytes) {
        uintptr_t from = found.start > start ? found.start : start;
        uintptr_t to = found.end < start + bytes ? found.end : start + bytes;
        if (arena_is_file(found.device, found.inode) && from < to)
            error = copy_back(from, to - from);
    }
    if (maps)
        fclose(maps);
    return error;
}

static int clear(uintptr_t start, size_t bytes)
{
    return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start, (off_t)bytes);
}

static int make_private_and_forget(uintptr_t start, size_t bytes)
{
    int error = make_private(start, bytes);
    if (!error)
        clear(start, bytes);
    return error;
}

int pages_share(uint64_t handle, uintptr_t start, size_t bytes)
{
    size_t page = page_bytes();
    struct share *share = malloc(sizeof *share);
    if (!share)
        return ENOMEM;
    pthread_mutex_lock(&lock);
    *share = (struct share){handle, start / page * page, (start + bytes + page - 1) / page * page, shares};
    int error = for_own_pages(share, replace);
    if (error) {
        for_own_pages(share, make_private_and_forget);
        free(share);
    } else
        shares = share;
    pthread_mutex_unlock(&lock);
    return error;
}

void pages_give_back(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct share **place = &shares;
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    struct share *share = *place;
    if (share) {
        for_own_pages(share, make_private_and_forget);
        *place = share->next;
        free(share);
    }
    pthread_mutex_unlock(&lock);
}

/* -- shared virtual memory ----------------------------------------------------------------------------------------------- */

enum { BLOCK = 128 }; /* pages that are looked at together */

/* Bits 62 and 63 of a page's word of /proc/self/pagemap: it is swapped, or present. */
static bool is_untouched(int pagemap, uintptr_t start, uintptr_t end)
{
    static const uint64_t THERE = 3ul << 62;
    uint64_t words[BLOCK], any = 0;
    if (end - start < BLOCK * page_bytes() || pread(pagemap, words, sizeof words, (off_t)(start / page_bytes() * 8)) != sizeof words)
        return false;
    for (int i = 0; i < BLOCK; i++)
        any |= words[i];
    return !(any & THERE);
}

/* Anonymous memory, in parts that were written and others. */
static int exchange_written(uintptr_t start, uintptr_t end)
{
    uintptr_t block = BLOCK * page_bytes(), to, next;
    int pagemap = REAL(open)("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), error = 0;
    for (uintptr_t at = start; !error && at < end; at = to) {
        bool untouched = is_untouched(pagemap, at, end);
        for (to = end - at > block ? at + block : end; to < end && is_untouched(pagemap, to, end) == untouched; to = next)
            next = end - to > block ? to + block : end;
        error = exchange_part(at, to, untouched);
    }
    if (pagemap >= 0)
        close(pagemap);
    return error;
}

int pages_keep(uintptr_t start, uintptr_t end, const struct mapping *found)
{
    struct mapping ours = {.start = start, .offset = start, .device = identity.st_dev, .inode = identity.st_ino};
    pthread_mutex_lock(&lock);
    bool done = arena_is_file(found->device, found->inode);
    int error = done ? 0 : found->inode ? exchange_part(start, end, false) : exchange_written(start, end);
    if (!error && !lasting_add(start, end, &ours))
        error = ENOMEM;
    pthread_mutex_unlock(&lock);
    return error;
}

void pages_forget(uintptr_t start, uintptr_t end)
{
    pthread_mutex_lock(&lock);
    for_own_pages(&(struct share){.start = start, .end = end}, clear);
    pthread_mutex_unlock(&lock);
}

/* A child has separate copies, and nothing of the device's memory. */
void arena_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    for (struct share *share = shares, *next; share; share = next) {
        next = share->next;
        make_private(share->start, share->end - share->start);
        free(share);
    }
    shares = NULL;
    lasting_after_fork(make_private);
    shared = NULL;
    if (file >= 0)
        close(file);
    file = -1;
}
