/* What the program marks for tools: its ranges, and when tools are to look (ROCm's roctx).
 *
 * These functions precede those of libroctx64 and librocprofiler-sdk-roctx, wherever the program has them from, pass
 * their arguments on to them and return their results.
 */
#include "ranges.h"

#include "preloaded.h"

#include <dlfcn.h>
#include <string.h>

API int roctxRangePushA(const char *name);
API int roctxRangePop(void);
API uint64_t roctxRangeStartA(const char *name);
API void roctxRangeStop(uint64_t id);
API int roctxProfilerPause(uint64_t thread);
API int roctxProfilerResume(uint64_t thread);

static void *_Atomic library; /* of dlopen, where the program itself is not linked to it */

static void *their_function(const char *name) { return next_dlsym()(library ? library : RTLD_NEXT, name); }

/* NULL: there is no such library. */
#define THEIRS(name)                                                            \
    ({                                                                          \
        static _Atomic(__typeof__(&name)) found_;                               \
        if (!found_)                                                            \
            found_ = (__typeof__(&name))their_function(#name);                  \
        found_;                                                                 \
    })

void *own_mark(void *handle, const char *name)
{
    static const struct own_function own[] = {
        {"roctxRangePushA", (void *)roctxRangePushA},       {"roctxRangePop", (void *)roctxRangePop},
        {"roctxRangeStartA", (void *)roctxRangeStartA},     {"roctxRangeStop", (void *)roctxRangeStop},
        {"roctxProfilerPause", (void *)roctxProfilerPause}, {"roctxProfilerResume", (void *)roctxProfilerResume}};
    for (size_t i = 0; strncmp(name, "roctx", 5) == 0 && i < sizeof own / sizeof *own; i++) {
        void *theirs = strcmp(own[i].name, name) == 0 ? next_dlsym()(handle, name) : NULL;
        if (theirs && theirs != own[i].function) /* which the program's own handle leads to */
            library = handle;
        if (theirs)
            return own[i].function;
    }
    return NULL;
}

int roctxRangePushA(const char *name)
{
    int level = range_push(name);
    return THEIRS(roctxRangePushA) ? THEIRS(roctxRangePushA)(name) : level;
}

int roctxRangePop(void)
{
    int level = range_pop();
    return THEIRS(roctxRangePop) ? THEIRS(roctxRangePop)() : level;
}

uint64_t roctxRangeStartA(const char *name)
{
    static atomic_ulong ids;
    uint64_t id = THEIRS(roctxRangeStartA) ? THEIRS(roctxRangeStartA)(name) : ++ids;
    range_start(name, id);
    return id;
}

void roctxRangeStop(uint64_t id)
{
    range_stop(id);
    if (THEIRS(roctxRangeStop))
        THEIRS(roctxRangeStop)(id);
}

/* For all threads, whichever is named, as rocprofv3 has it. */
int roctxProfilerPause(uint64_t thread)
{
    tool_active(false);
    return THEIRS(roctxProfilerPause) ? THEIRS(roctxProfilerPause)(thread) : 0;
}

int roctxProfilerResume(uint64_t thread)
{
    tool_active(true);
    return THEIRS(roctxProfilerResume) ? THEIRS(roctxProfilerResume)(thread) : 0;
}

/* Ask the worker once for each range in which anything is launched. */
static bool is_chosen(struct range *range)
{
    uint64_t asked = 2 * (uint64_t)tool_number; /* and 1 if it is */
    if (range->note < asked)
        range->note = asked + tool_chooses(range->name);
    return range->note & 1;
}

static bool in_chosen(void) { return ranges_any(is_chosen); }

__attribute__((constructor)) static void be_asked(void) { select_by(in_chosen); }
