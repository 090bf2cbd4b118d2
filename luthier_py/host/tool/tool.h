/* The program's side of a tool, at either level: the worker, what is selected, and the worker's answers.
 *
 * tool.c exchanges messages with the worker and selects launches; clone.c reads the worker's copies. What a level
 * does with these is in driver.h.
 */
#ifndef LUTHIER_TOOL_H
#define LUTHIER_TOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"
#include "wire.h"

/* tool.c */
struct settings { uint64_t first, end; uint32_t active, per_launch, own_kernels, by_range, marks_memory, reserved; };
extern struct settings settings; /* of the tool, once a launch was selected */
bool tool_named(void);              /* there is a tool */
bool tool_runs(void);               /* its worker was started, and has not ended */
void tool_prepare(void);            /* start the worker, while the program starts */
void tool_active(bool active);      /* by hipProfilerStart and hipProfilerStop */
bool tool_on(void);                 /* its worker is there, and its settings are known */
/* So many launches are about to happen, the first of them `index`: whether any is selected; if not, all run as they are. */
bool tool_selects(unsigned long launches, unsigned long *index);
/* One that is selected runs as it is; `said` is the flag of the one line that says why. */
void tool_passes(atomic_flag *said, const char *why);
bool tool_chooses(const char *range); /* its launches, by its name */
extern atomic_uint tool_number;       /* of the program's tools; from 1 */
bool tool_ask(uint32_t code, const struct part *parts, int count, struct reply *reply);
void tool_tell(uint32_t code, const struct part *parts, int count);
bool tool_lives(void);              /* its worker answers */
bool tool_strict(void);             /* the first failure is the program's end */
void tool_forget(uint32_t image);   /* the worker needs it no longer */
void tool_refused(void);            /* a kernel runs as it is that should not: the end under LUTHIER_STRICT */
bool tool_exchange(const char *tool, const char *options); /* by this one; false where there is one already */
void tool_end(void);                /* report everything counted so far */
char *tool_verdict(void);           /* as JSON, to be freed; NULL when the worker is gone */
void count_launches_by(uint64_t (*launches)(void)); /* the device's own count */
void select_by(bool (*within)(void)); /* whether a launch of this thread is in a chosen range; without it none is */
void collect_by(void (*collect)(void)); /* how the level sends what was not read yet */
void leave_by(void (*leave)(void)); /* when the program ends, and its memory with it */
struct launch_counts {
    atomic_ulong seen, selected, failed;
    atomic_ulong explained; /* selected, and run as they are: the worker says why */
    atomic_ulong unseen;    /* of the device's own count, when the program ends or asks for a verdict */
    atomic_ulong detached;  /* seen while the tool was off */
};
struct launch_counts *launch_counts(void); /* of the tool that is there, or comes next */

/* clone.c */
struct program_variable { char *name; uint64_t where; bool changes; }; /* by its address in the code object */
/* Cleared and read; where a ring is; set before each launch; where memory is that is as large as the launch; where a
 * table of what it may access is. */
enum role { STATE, CHANNEL, PARAMETER, SIZED, TABLE };
struct declared { char *name; uint32_t role, number, capacity, slot_bytes, drops; }; /* a variable of the tool */
struct tool_variable {
    void *address;
    size_t bytes;
    enum role role;
    void *initial;       /* what it is set to between launches; NULL: zeros */
};
struct place { uint32_t offset, bytes; }; /* of an argument in the kernarg segment */
struct clone {
    bool given; /* the worker requests the arguments of each launch; without a name there is nothing else */
    struct place *arguments;
    uint32_t argument_count;
    char *name, *code;
    size_t bytes;
    struct declared *variables;
    uint32_t variable_count;
    struct program_variable *program;
    uint32_t program_count;
    char *bindings;   /* to the original object: BINDING_BYTES each */
    uint32_t binding_count;
};
enum answer { REFUSED, NOT_CHOSEN, NOT_CHANGED, CLONED }; /* refused: the worker has said why */
/* The code object's number, and the device in one of the forms that protocol.py lists, in PROPERTIES_BYTES. */
bool clone_image(uint32_t image, int device, uint32_t form, const void *properties, const void *data, size_t bytes);
/* `whole`: with all of the original object, for one that cannot be found. */
enum answer clone_ask(uint32_t image, int device, const char *kernel, bool whole, struct clone *clone);
bool clone_bind(struct clone *clone, uint64_t base); /* the original object is there; false: a damaged answer */
void clone_free(struct clone *clone);

struct shape { uint32_t grid[3], block[3]; }; /* of a launch, in work-groups and in work-items */
struct counted { uint32_t image, device, index, launches; struct shape shape; }; /* `index`: of the last of `launches` */
/* Names of ranges, each ended by a zero, from the outermost on. */
struct names { char *text; uint32_t bytes; };
struct told_of { struct counted counted; const char *kernel; struct names ranges; }; /* that all of `launches` were in */
/* With what messages about it begin; `sizes` are part of that. */
enum { TOLD_PARTS = 4 };
void told_parts(const struct told_of *launch, struct part *parts, uint32_t *sizes);
/* A launch begins that has channels or parameters: their values, of two dwords each, come into `values`. */
bool clone_begins(const struct told_of *launch, uint32_t *values, size_t words);
/* Bytes that a launch needs for each variable that it sizes; false: it is to run as it is, and the worker says why. */
bool clone_sizes(const struct told_of *launch, uint64_t *sizes, size_t count);
/* Where a copy's original is loaded: nowhere that the copy uses, at `base`, or in the copy itself. */
struct original { enum { ORIGINAL_UNUSED, ORIGINAL_AT_BASE, ORIGINAL_IN_COPY } where; uint64_t base; };
/* The table of what a launch may access, to be freed: of rows as ALLOCATIONS has them; NULL: it is not known. */
void *clone_allocations(const struct told_of *launch, uint64_t cell, struct original original, const void *rows,
                        size_t row_bytes, size_t *bytes);
/* A launch whose arguments are reported has begun. */
void clone_given(const struct told_of *launch, const void *arguments, size_t bytes);
void clone_counted(const struct told_of *launch, const void *values, size_t bytes);

#endif
