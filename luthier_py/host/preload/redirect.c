/* Redirect calls of a runtime whose callers bypass us: for a tool that is attached while the program runs, and for
 * one that is preloaded, where callers look into their own libraries first (RTLD_DEEPBIND).
 *
 * Two changes to memory do it, none to code. The runtime's own table of symbols gives OWN from now on, to dlsym and to
 * whatever is bound later. Words that already hold an address of the runtime's functions, in the writable data of what is
 * loaded (GOTs, and pointers stored after dlsym), are exchanged. Pointers on the heap stay as they are.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preloaded.h"

static struct own_function *real; /* beside OWN; before there is a redirection NULL */
static uintptr_t lowest = UINTPTR_MAX, highest;

/* Ours in the place of a function of the runtime; NULL for anything else. */
static void *own_for(uintptr_t address)
{
    for (size_t i = 0; address >= lowest && address <= highest && i < OWN_COUNT; i++)
        if ((uintptr_t)real[i].function == address)
            return OWN[i].function;
    return NULL;
}

static bool holds(const struct dl_phdr_info *object, const void *address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (uintptr_t)address - object->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

static const ElfW(Phdr) *part_of(const struct dl_phdr_info *object, ElfW(Word) type)
{
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == type)
            return &object->dlpi_phdr[i];
    return NULL;
}

/* Change what may be done with pages; the last one only if all of it is meant, or `whole` is not. */
static bool protect(const void *address, size_t bytes, int rights, bool whole)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)address & ~(page - 1);
    uintptr_t end = (uintptr_t)address + bytes;
    end = whole ? end & ~(page - 1) : end;
    return end <= start || mprotect((void *)start, end - start, rights) == 0;
}

static void exchange_words(uintptr_t start, uintptr_t end)
{
    for (uintptr_t at = (start + 7) & ~(uintptr_t)7; at + 8 <= end; at += 8) {
        void *own = own_for(*(const uintptr_t *)at);
        if (own)
            __atomic_store_n((void **)at, own, __ATOMIC_RELEASE);
    }
}

static int exchange_in_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (holds(object, (const void *)&exchange_in_object) || holds(object, real[0].function))
        return 0;
    const ElfW(Phdr) *sealed = part_of(object, PT_GNU_RELRO);
    const void *relro = sealed ? (const void *)(object->dlpi_addr + sealed->p_vaddr) : NULL;
    bool open = sealed && protect(relro, sealed->p_memsz, PROT_READ | PROT_WRITE, true);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && part->p_flags & PF_W && (!sealed || open))
            exchange_words(start, start + part->p_memsz);
    }
    if (open)
        protect(relro, sealed->p_memsz, PROT_READ, true); /* as the loader does it */
    return 0;
}

/* How many symbols there are, from the table that finds them by hash. */
static size_t count_symbols(const uint32_t *hash)
{
    uint32_t buckets = hash[0], first = hash[1], last = 0;
    const uint32_t *bucket = (const uint32_t *)((const uint64_t *)(hash + 4) + hash[2]), *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    while (last >= first && !(chain[last - first] & 1))
        last++;
    return last ? last + 1u : first;
}

static void exchange_symbols(const struct dl_phdr_info *object, const struct link_map *map)
{
    ElfW(Sym) *symbols = NULL;
    const uint32_t *hash = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_GNU_HASH)
            hash = (const uint32_t *)entry->d_un.d_ptr;
    }
    size_t count = symbols && hash ? count_symbols(hash) : 0;
    int rights = PROT_READ;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (uintptr_t)symbols - object->dlpi_addr - part->p_vaddr < part->p_memsz)
            rights |= (part->p_flags & PF_W ? PROT_WRITE : 0) | (part->p_flags & PF_X ? PROT_EXEC : 0);
    }
    if (!count || !protect(symbols, count * sizeof *symbols, rights | PROT_WRITE, false))
        return;
    for (size_t i = 0; i < count; i++) {
        void *own = symbols[i].st_shndx == SHN_UNDEF ? NULL : own_for(map->l_addr + symbols[i].st_value);
        if (own)
            symbols[i].st_value = (uintptr_t)own - map->l_addr;
    }
    protect(symbols, count * sizeof *symbols, rights, false);
}

static int exchange_in_runtime(struct dl_phdr_info *object, size_t size, void *map)
{
    (void)size;
    if (!holds(object, real[0].function))
        return 0;
    exchange_symbols(object, map);
    return 1;
}

/* What is preloaded precedes the C library in symbol order, what is opened later follows it. */
static int is_preloaded(struct dl_phdr_info *object, size_t size, void *first)
{
    (void)size;
    *(bool *)first = holds(object, (const void *)&is_preloaded);
    return *(bool *)first || holds(object, (void *)next_dlsym());
}

static bool stand_before(struct link_map *map)
{
    struct own_function *functions = calloc(OWN_COUNT, sizeof *functions);
    if (!map || !functions)
        return false;
    use_runtime(map);
    for (size_t i = 0; i < OWN_COUNT; i++) {
        functions[i] = (struct own_function){OWN[i].name, real_function(OWN[i].name)};
        uintptr_t address = (uintptr_t)functions[i].function;
        lowest = address && address < lowest ? address : lowest;
        highest = address > highest ? address : highest;
    }
    real = functions;
    use_functions(real, OWN_COUNT);
    dl_iterate_phdr(exchange_in_object, NULL);
    dl_iterate_phdr(exchange_in_runtime, map);
    return true;
}

bool redirect(void)
{
    bool preloaded = false;
    dl_iterate_phdr(is_preloaded, &preloaded);
    if (real || preloaded)
        return true;
    allocations_missed();
    return stand_before(loaded_runtime());
}

void luthier_tool_runtime(uint64_t (*launches)(void))
{
    if (real)
        return;
    count_launches_by(launches);
    stand_before(loaded_runtime());
}

/* A tool that the program brings itself: put before the runtime that is there, and taken away again. */

/* 0, or 1: there is a tool already, 2: no runtime, 3: it did not start. */
API int luthier_tool_attach(const char *tool, const char *options);
API void luthier_tool_detach(void);
API char *luthier_tool_verdict(void); /* as JSON, to be freed; NULL when the worker is gone */
API void luthier_tool_free(char *text);

int luthier_tool_attach(const char *tool, const char *options)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (tool_runs())
        return 1;
    pthread_mutex_lock(&lock);
    bool there = redirect();
    pthread_mutex_unlock(&lock);
    return !there ? 2 : !tool_exchange(tool, options) ? 1 : tool_on() ? 0 : 3;
}

void luthier_tool_detach(void)
{
    tool_end();
    graphs_drop();
    copies_drop();
}

char *luthier_tool_verdict(void) { return tool_verdict(); }

void luthier_tool_free(char *text) { free(text); }
