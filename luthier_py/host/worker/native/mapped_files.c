/* Files of the program that are mapped here and become shorter; see mapped_files.py.
 *
 * In: where files are mapped. Out: the first address at which there was nothing. Invariant: a SIGBUS anywhere else ends the
 * process, as ever.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker.h"

enum { MOST_FILES = 4096 };

static struct { _Atomic uint64_t start, bytes; } files[MOST_FILES]; /* `bytes` 0: free */
static _Atomic uint64_t lost;
static _Atomic int32_t *failure; /* gets `failed`, and `text` is on stderr; NULL: the reader of `lost` reports it */
static int32_t failed;
static const char *text;
static uintptr_t page;

/* A page of zeros where there is none, and the access is made once more. */
static void fill_hole(int number, siginfo_t *about, void *context)
{
    uint64_t address = (uintptr_t)about->si_addr, none = 0;
    int32_t well = 0;
    size_t file = 0;
    (void)context;
    while (file < MOST_FILES && address - files[file].start >= files[file].bytes)
        file++;
    void *at = (void *)(address & -page);
    if (file == MOST_FILES ||
        mmap(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) {
        signal(number, SIG_DFL);
        return;
    }
    if (!atomic_compare_exchange_strong(&lost, &none, address) || !failure)
        return;
    atomic_compare_exchange_strong(failure, &well, failed);
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

PUBLIC void luthier_watch_files(_Atomic int32_t *word, int32_t status, const char *message)
{
    struct sigaction action = {.sa_sigaction = fill_hole, .sa_flags = SA_SIGINFO};
    failure = word, failed = status, text = message, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, NULL);
}

PUBLIC void luthier_remove_file(uint64_t start)
{
    for (size_t file = 0; file < MOST_FILES; file++)
        if (files[file].start == start)
            files[file].bytes = 0;
}

/* From now on a file is mapped there; where there are too many, it is not looked after. */
PUBLIC void luthier_add_file(uint64_t start, uint64_t bytes)
{
    size_t file = 0;
    luthier_remove_file(start);
    while (file < MOST_FILES && files[file].bytes)
        file++;
    if (file == MOST_FILES)
        return;
    files[file].start = start;
    files[file].bytes = bytes;
}

PUBLIC uint64_t luthier_take_lost(void) { return atomic_exchange(&lost, 0); }
