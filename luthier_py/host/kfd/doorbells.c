/* What the program writes to memory without a call: doorbells of queues, and ROCr's list of loaded code objects. A
 * thread polls both, often while something happens and seldom otherwise, and reports changes to the worker. It reports
 * code before a doorbell rung after the code was loaded, and the worker executes a packet only after its ring: so it
 * can name kernels. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "kfd.h"

enum { QUEUES = MAX_GPUS * DOORBELL_BYTES / 8, MOST_OBJECTS = 1 << 16, URI_BYTES = 4352 };
enum { MOST_INCONSISTENT = 1000 }; /* looks */
enum { MARKED = 2048 }; /* bytes that identify loaded code: its ELF header, its segments, names of kernels */
enum { SHORTEST = 20 * 1000, LONGEST = 800 * 1000, STEP = 32 }; /* nanoseconds between two looks; looks until it doubles */

/* `packets`: how many the program has put on the queue; `rung`: a ring is not reported yet. */
static struct doorbell { uint32_t queue; bool rung; _Atomic uint64_t *word; uint64_t write_pointer, seen, packets; } doorbells[QUEUES];
static int count;
static bool watching;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct r_debug *_Atomic debug;
static struct { uint64_t mark; unsigned long walk; } *told; /* the entries reported, and the last walk that met each */
static size_t told_count;
static struct { const struct link_map *entry; uint64_t mark; } last; /* the list's last entry at the last look */

static void read_uri(const struct link_map *entry, char uri[URI_BYTES])
{
    size_t known = 0;
    memset(uri, 0, URI_BYTES);
    while (known < URI_BYTES - 64 && read_safely(uri + known, entry->l_name + known, 16) && !memchr(uri + known, 0, 16))
        known += 16;
}

static uint64_t hashed(uint64_t mark, const void *data, size_t bytes) /* FNV-1a */
{
    for (const unsigned char *at = data, *end = at + bytes; at < end; at++)
        mark = (mark ^ *at) * 0x100000001b3;
    return mark;
}

/* A hash that identifies an entry's code. A module loaded after another was unloaded may have the other's addresses: of
 * the entry, its name, its code. */
static uint64_t mark_of(const struct link_map *entry)
{
    char uri[URI_BYTES], begin[MARKED];
    uint64_t mark = hashed(0xcbf29ce484222325, &entry->l_addr, sizeof entry->l_addr);
    read_uri(entry, uri);
    mark = hashed(mark, uri, strlen(uri));
    return read_safely(begin, (const void *)entry->l_addr, MARKED) ? hashed(mark, begin, MARKED) : mark;
}

static bool is_told(uint64_t mark, unsigned long walk)
{
    for (size_t i = 0; i < told_count; i++)
        if (told[i].mark == mark) {
            told[i].walk = walk;
            return true;
        }
    return false;
}

/* Decode a URI's path: what is neither a letter nor a digit may be %XX. */
static void decode(char *path)
{
    char *to = path;
    for (const char *from = path; *from; from++) {
        unsigned byte;
        bool escaped = from[0] == '%' && from[1] && from[2] && sscanf(from + 1, "%2x", &byte) == 1;
        *to++ = escaped ? (char)byte : *from;
        from += escaped ? 2 : 0;
    }
    *to = 0;
}

/* file://PATH[#offset=N&size=N] or memory://PROCESS#offset=ADDRESS&size=N (AMDGPUUsage, "Loaded Code Object Path URI"). */
static char *read_object(const char *uri, size_t *bytes)
{
    unsigned long offset = 0;
    const char *range = strchr(uri, '#');
    char path[URI_BYTES], *data = NULL;
    *bytes = 0;
    if (range && sscanf(range, "#offset=%li&size=%li", (long *)&offset, (long *)bytes) != 2)
        return NULL;
    if (strncmp(uri, "memory://", 9) == 0)
        return *bytes && (data = malloc(*bytes)) && read_safely(data, (const void *)offset, *bytes) ? data : (free(data), NULL);
    if (strncmp(uri, "file://", 7) != 0)
        return NULL;
    snprintf(path, sizeof path, "%.*s", (int)(range ? range - uri - 7 : (long)strlen(uri) - 7), uri + 7);
    decode(path);
    FILE *file = REAL(fopen)(path, "re");
    if (file && !range && fseek(file, 0, SEEK_END) == 0)
        *bytes = (size_t)ftell(file);
    if (file && *bytes && fseek(file, (long)offset, SEEK_SET) == 0 && (data = malloc(*bytes)) && fread(data, *bytes, 1, file) != 1)
        free(data), data = NULL;
    if (file)
        fclose(file);
    return data;
}

static void tell(const struct link_map *entry)
{
    char uri[URI_BYTES];
    size_t bytes;
    read_uri(entry, uri);
    char *data = read_object(uri, &bytes);
    uint64_t address = entry->l_addr;
    if (data && bytes < UINT32_MAX)
        driver_tell(MESSAGE_CODE, (struct part[]){{&address, sizeof address}, {data, bytes}}, 2);
    free(data);
}

/* Whether nothing was appended to the list since the last look; the last entry is hashed only if a queue was `rung`. */
static bool is_known(const struct r_debug *list, bool rung)
{
    struct link_map entry;
    if (!list->r_map)
        return true;
    if (!last.entry || !read_safely(&entry, last.entry, sizeof entry) || !entry.l_name || entry.l_next)
        return false;
    return !rung || mark_of(&entry) == last.mark;
}

static bool append(const struct link_map *entry, uint64_t mark, unsigned long walk)
{
    void *more = realloc(told, (told_count + 1) * sizeof *told);
    if (!more)
        return false;
    told = more;
    told[told_count].mark = mark;
    told[told_count++].walk = walk;
    tell(entry);
    return true;
}

/* Unloaded code may be loaded again at the same address. */
static void forget_before(unsigned long walk)
{
    size_t kept = 0;
    for (size_t i = 0; i < told_count; i++)
        if (told[i].walk == walk)
            told[kept++] = told[i];
    told_count = kept;
}

/* Report what was loaded since the last look. ROCr appends to its list and marks it while changing it (false: look
 * again). Data that a program frees after loading are, as a rule, read before. */
static bool look_at_code(bool rung, bool whole)
{
    static unsigned long walk;
    static unsigned inconsistent;
    struct r_debug list;
    struct link_map entry;
    const struct r_debug *from = debug;
    if (!from || !read_safely(&list, from, sizeof list))
        return true;
    if (list.r_state != RT_CONSISTENT)
        return ++inconsistent > MOST_INCONSISTENT;
    inconsistent = 0;
    if (!whole && is_known(&list, rung))
        return true;
    const struct link_map *at = list.r_map;
    last.entry = NULL;
    walk++;
    for (size_t i = 0; at && i < MOST_OBJECTS; i++, at = entry.l_next) {
        if (!read_safely(&entry, at, sizeof entry))
            return true;
        if (!entry.l_name)
            continue;
        last.entry = at;
        last.mark = mark_of(&entry);
        if (!is_told(last.mark, walk) && !append(&entry, last.mark, walk))
            return true;
    }
    forget_before(walk);
    return true;
}

static void note(struct doorbell *doorbell)
{
    uint64_t now = *doorbell->word, reserved = 0;
    if (now == doorbell->seen)
        return;
    read_safely(&reserved, (const void *)(uintptr_t)doorbell->write_pointer, sizeof reserved);
    doorbell->seen = now;
    doorbell->packets = now + 1 > reserved ? now + 1 : reserved; /* the thread that reserved last may ring first */
    doorbell->rung = true;
}

static bool look(void)
{
    enum { WHOLE = 64 }; /* rings until the whole list is walked though its end seems the same */
    static unsigned long rings;
    bool rung = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        note(&doorbells[i]);
        rung |= doorbells[i].rung;
    }
    /* code before rings: the kernel of a rung queue may be in it */
    if (look_at_code(rung, rung && rings++ % WHOLE == 0) && rung)
        for (int i = 0; i < count; i++)
            if (doorbells[i].rung) {
                doorbells[i].rung = false;
                driver_tell(MESSAGE_RING, (struct part[]){{&doorbells[i].queue, 4}, {&doorbells[i].packets, 8}}, 2);
            }
    pthread_mutex_unlock(&lock);
    return rung;
}

static void *watch(void *unused)
{
    for (long pause = SHORTEST, idle = 0; idle % STEP || !driver_ended();) {
        bool rung = look();
        idle = rung ? 0 : idle + 1;
        pause = rung ? SHORTEST : idle % STEP == 0 && pause < LONGEST ? 2 * pause : pause;
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    }
    return unused;
}

void doorbells_watch(uint32_t queue, uint32_t doorbell, uint64_t write_pointer)
{
    pthread_mutex_lock(&lock);
    if (count < QUEUES) {
        _Atomic uint64_t *word = (_Atomic uint64_t *)((char *)control() + DOORBELLS_OFFSET) + doorbell;
        doorbells[count++] = (struct doorbell){queue, false, word, write_pointer, *word, 0};
    }
    if (!watching) {
        watching = thread_start(watch, NULL);
        if (!watching)
            say("luthier: cannot start a thread for the emulated device: nothing will be dispatched");
    }
    pthread_mutex_unlock(&lock);
}

void doorbells_forget(uint32_t queue)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (doorbells[i].queue == queue)
            doorbells[i--] = doorbells[--count];
    pthread_mutex_unlock(&lock);
}

void doorbells_debug(const void *r_debug) { debug = r_debug; }

void doorbells_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    count = 0;
    watching = false;
    debug = NULL;
    free(told);
    told = NULL;
    last.entry = NULL;
    told_count = 0;
}
