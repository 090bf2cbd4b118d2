/* Pages of memory that a launch comes to, each with what it held before.

   In: accesses that are about to be made. Out: a table in which Python looks for rows (touched.py has its columns). */
#include "watching.h"

enum { LINE = PAGE / 64 };

struct touched {
    u64 number; /* and 1, so that 0 is none */
    u64 lines;  /* a bit for each 64th of it */
    u64 written;
    u8 *before;
};

static struct touched *find(struct touched *pages, u64 room, u64 number) {
    u64 i = number * 0x9e3779b97f4a7c15ull >> 20;
    while (pages[i & (room - 1)].number != 0 && pages[i & (room - 1)].number != number) i++;
    return &pages[i & (room - 1)];
}

static bool has_room(struct watch *watch) {
    if (2 * watch->touched_count < watch->touched_room) return true;
    u64 room = watch->touched_room ? 2 * watch->touched_room : 1024;
    struct touched *pages = need(watch, room, sizeof *pages);
    if (pages == NULL) return false;
    for (u64 i = 0; i < watch->touched_room; i++)
        if (watch->touched[i].number) *find(pages, room, watch->touched[i].number) = watch->touched[i];
    free(watch->touched);
    watch->touched = pages, watch->touched_room = room;
    return true;
}

static u64 lines_of(u64 page, u64 address, u64 size) {
    u64 first = address > page ? (address - page) / LINE : 0, last = address + size - 1 - page;
    last = last < PAGE ? last / LINE : PAGE / LINE - 1;
    return ~0ull << first & ~0ull >> (PAGE / LINE - 1 - last);
}

void note_page(struct watch *watch, u64 address, u64 size, bool writes) {
    for (u64 number = address / PAGE + 1; number <= (address + size - 1) / PAGE + 1; number++) {
        if (!has_room(watch)) return;
        struct touched *page = find(watch->touched, watch->touched_room, number);
        if (page->number == 0) {
            u8 *before = need(watch, PAGE, 1);
            if (before == NULL) return;
            memcpy(before, (u8 *)((number - 1) * PAGE), PAGE);
            *page = (struct touched){.number = number, .before = before};
            watch->touched_count++;
        }
        page->lines |= lines_of((number - 1) * PAGE, address, size);
        page->written |= writes;
    }
}

void forget_touched(struct watch *watch) {
    for (u64 i = 0; i < watch->touched_room; i++) free(watch->touched[i].before);
    free(watch->touched);
}

__attribute__((visibility("default"))) u64 luthier_watch_touched(struct watch *watch, struct touched **pages) {
    *pages = watch->touched;
    return watch->touched_room;
}
