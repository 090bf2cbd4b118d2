/* Memory of the program that it registers: its pages become pages of the arena, at the address that they have; those of files
 * that others may have mapped stay the file's (registrations.c).
 *
 * The arena mirrors the program's address space in windows: a page of a window has one place in the arena, so ranges
 * that share a page share its place too. Device addresses are those of the arena. What is written to pages between copy
 * and exchange would be lost: other threads wait in that moment (native/hold.c), and the exchange runs on a separate
 * stack, since the caller's may be registered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "device.h"
#include "hold.h"
#include "memory.h"
#include "pinned.h"
#include "streams.h"

static uintptr_t down(uintptr_t address, uintptr_t unit) { return address / unit * unit; }
static uintptr_t up(uintptr_t address, uintptr_t unit) { return down(address + unit - 1, unit); }

/* The pages of a range that no other registration has: only its first and its last can be another's as well. */
static struct range own_pages(uintptr_t start, size_t bytes, const struct registration *self)
{
    uintptr_t page = page_bytes();
    struct range own = {down(start, page), up(start + bytes, page)};
    if (covering(own.start, own.start + page, self))
        own.start += page;
    if (own.start < own.end && covering(own.end - page, own.end, self))
        own.end -= page;
    return own;
}

/* Whether all of a range is memory of this process alone: what is shared with others must stay so. */
static bool is_private(struct range range)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], shared;
    struct range found;
    uintptr_t known = range.start;
    bool good = maps != NULL;
    while (good && known < range.end && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx r%*c%*c%c", &found.start, &found.end, &shared) != 3 || found.end <= known)
            continue;
        good = found.start <= known && shared == 'p';
        known = found.end;
    }
    if (maps)
        fclose(maps);
    return good && known >= range.end;
}

static hipError_t window_for(uintptr_t start, uintptr_t end)
{
    enum { WINDOWS = 64 };
    uintptr_t unit = up(device_arena_bytes() / WINDOWS, page_bytes());
    struct window *window = calloc(1, sizeof *window);
    if (!window)
        return hipErrorOutOfMemory;
    *window = (struct window){down(start, unit), up(end, unit), 0, windows};
    for (const struct window *w = windows; w; w = w->next)
        if (w->start < window->end && window->start < w->end) { /* a range that crosses windows, one of which is there */
            free(window);
            return w->start <= start && end <= w->end ? hipSuccess : hipErrorOutOfMemory;
        }
    uint64_t bytes = window->end - window->start;
    hipError_t error = device_ask(MESSAGE_RESERVE, &bytes, 1, &window->device);
    if (error)
        free(window);
    else
        windows = window;
    return error;
}

/* From here on the program's pages are the arena's. */
static hipError_t share(struct range pages)
{
    uintptr_t device = device_address(pages.start);
    size_t bytes = pages.end - pages.start;
    if (!bytes)
        return hipSuccess;
    struct held held = hold_writers(pages.start, bytes, false);
    memcpy((void *)device, (const void *)pages.start, bytes);
    void *place = mremap((void *)device, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)pages.start);
    let_writers_go(&held);
    if (place != (void *)pages.start)
        return hipErrorOutOfMemory;
    madvise(place, bytes, MADV_DOFORK); /* unlike the arena's: a child needs its copy */
    return hipSuccess;
}

/* From here on they are its own again. */
static hipError_t give_back(struct range pages)
{
    size_t bytes = pages.end - pages.start;
    if (!bytes || msync((void *)pages.start, bytes, MS_ASYNC) < 0) /* nothing, or no longer mapped */
        return hipSuccess;
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return hipErrorOutOfMemory;
    struct held held = hold_writers(pages.start, bytes, true);
    memcpy(copy, (const void *)pages.start, bytes);
    bool good = mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)pages.start) != MAP_FAILED;
    let_writers_go(&held);
    return good ? hipSuccess : hipErrorUnmapFailed;
}

static struct exchange { hipError_t (*function)(struct range); struct range pages; hipError_t error; ucontext_t here, there; } exchange;

static void carry_out(void) { exchange.error = exchange.function(exchange.pages); }

enum { STACK_BYTES = 1 << 16 };

/* Far enough from everything that may be registered; NULL: no memory. */
static void *own_stack(void)
{
    static char *stack;
    if (stack)
        return stack;
    char *space = mmap(NULL, OWN_BYTES + STACK_BYTES + OWN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space != MAP_FAILED && mprotect(space + OWN_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) == 0)
        stack = space + OWN_BYTES;
    return stack;
}

/* On a separate stack; the lock is held. */
static hipError_t apart(hipError_t (*function)(struct range), struct range pages)
{
    if (!own_stack() || getcontext(&exchange.there) < 0)
        return hipErrorOutOfMemory;
    exchange.function = function;
    exchange.pages = pages;
    exchange.there.uc_stack.ss_sp = own_stack();
    exchange.there.uc_stack.ss_size = STACK_BYTES;
    exchange.there.uc_link = &exchange.here;
    makecontext(&exchange.there, carry_out, 0);
    swapcontext(&exchange.here, &exchange.there);
    return exchange.error;
}

/* A child of fork must not write into its parent's memory. */
void pinned_after_fork(void)
{
    pthread_mutex_init(&registering, NULL);
    for (const struct registration *r = registrations; r; r = r->next)
        if (!*r->file.name)
            apart(give_back, (struct range){down(r->address, page_bytes()), up(r->address + r->bytes, page_bytes())});
    registrations = NULL;
    windows = NULL;
}

/* `pages` of the arena are no longer used. */
static hipError_t forget(struct registration **place, struct range pages)
{
    struct registration *registration = *place;
    uintptr_t device = device_address(registration->address);
    if (pages.start < pages.end && !*registration->file.name)
        madvise((void *)device_address(pages.start), pages.end - pages.start, MADV_REMOVE);
    memory_remove(device);
    hipError_t error = device_ask(MESSAGE_UNREGISTER, (uint64_t[]){device}, 1, NULL), left = hipSuccess;
    if (*registration->file.name)
        left = file_leave(pages);
    *place = registration->next;
    free(registration);
    return error ? error : left;
}

/* Whether the pages that only it has are those that it was given. */
static bool is_as_registered(const struct registration *r, struct range pages)
{
    struct shared_file part = r->file;
    part.offset += pages.start - down(r->address, page_bytes());
    return file_is_there(pages, &part);
}

/* What the program has unmapped is not registered any more: at its address there is other memory now. */
static void forget_unmapped(uintptr_t start, uintptr_t end)
{
    for (struct registration **place = &registrations, *r; (r = *place);) {
        struct range pages = own_pages(r->address, r->bytes, r);
        bool meant = r->address < end && start < r->address + r->bytes && pages.start < pages.end;
        if (meant && !is_as_registered(r, pages))
            forget(place, pages);
        else
            place = &r->next;
    }
}

/* In the worker and in the table. */
static hipError_t enter(uintptr_t device, size_t bytes, unsigned flags)
{
    bool fine = memory_is_fine_grained(KIND_PINNED, flags);
    hipError_t error = device_ask(MESSAGE_REGISTER, (uint64_t[]){device, bytes, fine}, 3, NULL);
    if (error)
        return error;
    if (memory_add((struct allocation){
            .address = device, .bytes = bytes, .kind = KIND_PINNED, .flags = flags, .device = device_current()}))
        return hipSuccess;
    device_ask(MESSAGE_UNREGISTER, (uint64_t[]){device}, 1, NULL);
    return hipErrorOutOfMemory;
}

static hipError_t take_away(struct registration **place)
{
    struct registration *registration = *place;
    struct range pages = own_pages(registration->address, registration->bytes, registration);
    hipError_t error = *registration->file.name ? hipSuccess : apart(give_back, pages);
    return error ? error : forget(place, pages);
}

/* One that begins here. */
static struct registration **find_place(uintptr_t address)
{
    struct registration **place = &registrations;
    while (*place && (*place)->address != address)
        place = &(*place)->next;
    return place;
}

/* Memory that was freed without being unregistered, and is given out again at the same address, may be registered
 * again, as in AMD's runtime, which does not check what is registered. True: it is, since no more of it is requested
 * than there was. */
static bool still_registered(uintptr_t start, size_t bytes, hipError_t *error)
{
    struct registration **place = find_place(start);
    if (!*place)
        return false;
    if (bytes <= (*place)->bytes)
        return true;
    *error = take_away(place);
    return false;
}

/* From here on the device sees the pages. */
static hipError_t show(struct registration *registration, struct range pages)
{
    struct range all = {down(registration->address, page_bytes()), up(registration->address + registration->bytes, page_bytes())};
    if (!is_private(pages) && !file_find(all, &registration->file))
        return hipErrorInvalidValue;
    hipError_t error = window_for(all.start, all.end);
    if (error || !*registration->file.name)
        return error ? error : apart(share, pages);
    struct shared_file part = registration->file;
    part.offset += pages.start - all.start;
    return pages.start < pages.end ? file_enter(pages, &part) : hipSuccess;
}

static void hide(const struct registration *registration, struct range pages)
{
    if (*registration->file.name)
        file_leave(pages);
    else
        apart(give_back, pages);
}

static hipError_t add(uintptr_t start, size_t bytes, unsigned flags)
{
    hipError_t before = hipSuccess;
    forget_unmapped(start, start + bytes);
    if (still_registered(start, bytes, &before) || before)
        return before;
    struct range pages = own_pages(start, bytes, NULL);
    if (covering(start, start + bytes, NULL))
        return hipErrorHostMemoryAlreadyRegistered;
    struct registration *registration = calloc(1, sizeof *registration);
    if (!registration)
        return hipErrorOutOfMemory;
    *registration = (struct registration){.address = start, .bytes = bytes, .flags = flags, .next = registrations};
    hipError_t error = show(registration, pages);
    bool shown = !error;
    if (shown)
        error = enter(device_address(start), bytes, flags);
    if (error) {
        if (shown)
            hide(registration, pages);
        free(registration);
        return error;
    }
    registrations = registration;
    return hipSuccess;
}

hipError_t hipHostRegister(void *address, size_t bytes, unsigned flags)
{
    enum { KNOWN_FLAGS = 0x8000000f };
    uintptr_t start = (uintptr_t)address;
    hipError_t error = device_ready();
    if (error || !address || !bytes || start + bytes < start || flags & ~(unsigned)KNOWN_FLAGS)
        return error ? error : hipErrorInvalidValue;
    if (in_arena(address))
        return hipErrorHostMemoryAlreadyRegistered;
    pthread_mutex_lock(&registering);
    error = add(start, bytes, flags);
    pthread_mutex_unlock(&registering);
    return error;
}

hipError_t hipHostUnregister(void *address)
{
    hipError_t error = device_ready();
    if (error || !address)
        return error ? error : hipErrorInvalidValue;
    error = streams_wait(-1);
    pthread_mutex_lock(&registering);
    struct registration **place = find_place((uintptr_t)address);
    hipError_t removed = *place ? take_away(place) : hipErrorHostMemoryNotRegistered;
    pthread_mutex_unlock(&registering);
    return error ? error : removed;
}
