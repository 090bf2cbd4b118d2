/* Functions that programs look up by name, names that they look up by number, and callbacks that are never called. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "api_names.h" /* generated from api_names.txt */
#include "luthier.h"

enum { OF_THREAD = 2 }; /* the form whose default stream is that of the thread, where there is one */
enum { FOUND = 0, NOT_FOUND = 1, HIP_6 = 600, LONGEST = 256 };

/* What is preloaded comes first, as for linked calls. */
static void *look_up(const char *name, const char *suffix)
{
    char whole[LONGEST];
    bool fits = snprintf(whole, sizeof whole, "%s%s", name, suffix) < (int)sizeof whole;
    return fits ? dlsym(RTLD_DEFAULT, whole) : NULL;
}

static hipError_t find(const char *name, const char *suffix, void **function, int *status)
{
    void *found = *suffix ? look_up(name, suffix) : NULL;
    if (!found)
        found = look_up(name, "");
    *function = found;
    if (status)
        *status = found ? FOUND : NOT_FOUND;
    return found ? hipSuccess : hipErrorInvalidValue;
}

/* Since HIP 6 these two names mean functions with another structure. */
hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    if (!*symbol)
        return hipErrorInvalidValue;
    if (!strcmp(symbol, "hipGetDeviceProperties") || !strcmp(symbol, "hipChooseDevice"))
        return find(symbol, version >= HIP_6 ? "R0600" : "", function, status);
    return find(symbol, flags == OF_THREAD ? "_spt" : "", function, status);
}

hipError_t hipGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *status)
{
    int version;
    hipError_t error = hipRuntimeGetVersion(&version);
    return error ? error : hipGetProcAddress(symbol, function, version / 100000, flags, status);
}

hipError_t hipGetDriverEntryPoint_spt(const char *symbol, void **function, unsigned long long flags, int *status)
{
    return hipGetDriverEntryPoint(symbol, function, flags ? flags : OF_THREAD, status);
}

const char *hipApiName(unsigned id)
{
    static const struct { unsigned id; const char *name; } NAMES[] = {
#define API_NAME(id, name) {id, #name},
        ALL_API_NAMES(API_NAME)
#undef API_NAME
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].id == id)
            return NAMES[i].name;
    return "unknown";
}

/* For profilers beside the runtime (roctracer): nothing reports calls to them. */
hipError_t hipRegisterApiCallback(unsigned id, void *function, void *data)
{
    return (void)id, (void)function, (void)data, hipErrorNotSupported;
}

hipError_t hipRemoveApiCallback(unsigned id) { return (void)id, hipErrorNotSupported; }
hipError_t hipRegisterActivityCallback(unsigned id, void *function, void *data)
{
    return (void)id, (void)function, (void)data, hipErrorNotSupported;
}

hipError_t hipRemoveActivityCallback(unsigned id) { return (void)id, hipErrorNotSupported; }
bool hipEnableActivityCallback(unsigned id, bool on) { return (void)id, (void)on, false; }
void hipInitActivityCallback(void *make, void *call, void *data) { (void)make, (void)call, (void)data; }
void hipRegisterTracerCallback(void *function) { (void)function; }
const char *hipGetCmdName(unsigned id) { return (void)id, "unknown"; }
