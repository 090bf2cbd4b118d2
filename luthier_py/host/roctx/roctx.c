/* A stand-in for ROCm's libroctx64 and librocprofiler-sdk-roctx: what these do without a profiler, and for a trace. */
#include <stdatomic.h>
#include <stddef.h>

#include "protocol.h"
#include "traced.h"

#define API __attribute__((visibility("default")))

API uint32_t roctx_version_major(void);
API uint32_t roctx_version_minor(void);
API void roctxMarkA(const char *message);
API int roctxRangePushA(const char *message);
API int roctxRangePop(void);
API uint64_t roctxRangeStartA(const char *message);
API void roctxRangeStop(uint64_t id);
API int roctxProfilerPause(uint64_t thread);
API int roctxProfilerResume(uint64_t thread);
API int roctxNameOsThread(const char *name);
API int roctxNameHsaAgent(const char *name, const void *agent);
API int roctxNameHipDevice(const char *name, int device);
API int roctxNameHipStream(const char *name, const void *stream);
API int roctxGetThreadId(uint64_t *thread);

static __thread int level;
static atomic_ulong ids;

static void tell(struct traced record, const char *name)
{
    record.begin = traced_now();
    trace(record, name);
}

uint32_t roctx_version_major(void) { return 4; }
uint32_t roctx_version_minor(void) { return 1; }

void roctxMarkA(const char *message) { tell((struct traced){.kind = TRACED_MARK}, message); }

int roctxRangePushA(const char *message)
{
    tell((struct traced){.kind = TRACED_PUSH}, message);
    return level++;
}

int roctxRangePop(void)
{
    if (!level)
        return -1;
    tell((struct traced){.kind = TRACED_POP}, NULL);
    return --level;
}

uint64_t roctxRangeStartA(const char *message)
{
    uint64_t id = ++ids;
    tell((struct traced){.kind = TRACED_START, .number = id}, message);
    return id;
}

void roctxRangeStop(uint64_t id) { tell((struct traced){.kind = TRACED_STOP, .number = id}, NULL); }

/* For a profiler, of which there is none here; a tool intercepts these. */
int roctxProfilerPause(uint64_t thread) { return (void)thread, 0; }
int roctxProfilerResume(uint64_t thread) { return (void)thread, 0; }

int roctxNameOsThread(const char *name) { return tell((struct traced){.kind = TRACED_THREAD}, name), 0; }
int roctxNameHsaAgent(const char *name, const void *agent) { return (void)name, (void)agent, 0; }

int roctxNameHipDevice(const char *name, int device)
{
    return tell((struct traced){.kind = TRACED_DEVICE, .device = (uint32_t)device}, name), 0;
}

int roctxNameHipStream(const char *name, const void *stream)
{
    return tell((struct traced){.kind = TRACED_STREAM, .handle = (uintptr_t)stream}, name), 0;
}

int roctxGetThreadId(uint64_t *thread)
{
    if (thread)
        *thread = traced_thread();
    return thread ? 0 : -1;
}
