/* Ranges of pages that stay the device's until the program unmaps them: what was noted of them, and whether it still holds.
 * No call reports that pages are unmapped, so the process's mappings are compared with what was noted. */
#include <pthread.h>
#include <stdlib.h>

#include "kfd.h"

/* Pages of one file; `apart`: their address minus their offset in it. */
struct lasting { uintptr_t start, end, apart, inode; dev_t device; struct lasting *next; };

static struct lasting *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_same(const struct lasting *range, const struct mapping *mapping)
{
    return range->inode == mapping->inode && range->device == mapping->device &&
           range->apart == mapping->start - mapping->offset;
}

bool lasting_has(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    const struct lasting *range = all;
    while (range && address - range->start >= range->end - range->start)
        range = range->next;
    pthread_mutex_unlock(&lock);
    return range;
}

static bool add(struct lasting **list, uintptr_t start, uintptr_t end, const struct mapping *mapping)
{
    struct lasting *range = malloc(sizeof *range);
    if (!range)
        return false;
    *range = (struct lasting){start, end, mapping->start - mapping->offset, mapping->inode, mapping->device, NULL};
    for (struct lasting **place = list, *other; (other = *place);) { /* what it touches becomes a part of it */
        if (!is_same(other, mapping) || other->end < range->start || range->end < other->start) {
            place = &other->next;
            continue;
        }
        range->start = other->start < range->start ? other->start : range->start;
        range->end = other->end > range->end ? other->end : range->end;
        *place = other->next;
        free(other);
    }
    range->next = *list;
    *list = range;
    return true;
}

bool lasting_add(uintptr_t start, uintptr_t end, const struct mapping *mapping)
{
    pthread_mutex_lock(&lock);
    bool good = add(&all, start, end, mapping);
    pthread_mutex_unlock(&lock);
    return good;
}

/* Keep of the old ranges what is still so; move the rest to `gone`. */
static void compare(struct lasting *old, FILE *maps, struct lasting **gone)
{
    static struct mapping found; /* it is large; guarded by the lock */
    while (next_mapping(maps, &found))
        for (struct lasting *range = old; range; range = range->next) {
            uintptr_t from = found.start > range->start ? found.start : range->start;
            uintptr_t to = found.end < range->end ? found.end : range->end;
            if (from >= to || !is_same(range, &found) || !add(&all, from, to, &found))
                continue;
            if (range->start < from)
                add(gone, range->start, from, &found);
            range->start = to;
        }
    for (struct lasting *range = old; range; range = range->next) {
        struct mapping as = {.start = range->apart, .inode = range->inode, .device = range->device};
        if (range->start < range->end)
            add(gone, range->start, range->end, &as);
    }
}

static void drop(struct lasting *ranges)
{
    for (struct lasting *next; ranges; ranges = next) {
        next = ranges->next;
        free(ranges);
    }
}

void lasting_sweep(void (*with)(uintptr_t start, uintptr_t end))
{
    struct lasting *gone = NULL;
    pthread_mutex_lock(&lock);
    FILE *maps = all ? open_mappings() : NULL;
    if (maps) {
        struct lasting *old = all;
        all = NULL;
        compare(old, maps, &gone);
        fclose(maps);
        drop(old);
    }
    pthread_mutex_unlock(&lock);
    for (const struct lasting *range = gone; range; range = range->next)
        with(range->start, range->end);
    drop(gone);
}

/* The caller is alone. */
void lasting_after_fork(int (*let_go)(uintptr_t start, size_t bytes))
{
    pthread_mutex_init(&lock, NULL);
    for (const struct lasting *range = all; range; range = range->next)
        let_go(range->start, range->end - range->start);
    drop(all);
    all = NULL;
}
