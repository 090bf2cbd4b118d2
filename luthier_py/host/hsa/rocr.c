/* ROCr's own functions, from the tables that it gives. */
#include <dlfcn.h>

#include "hsa_tool.h"

struct runtime rocr;
atomic_bool runtime_there;

bool rocr_has(const struct table *table, size_t place)
{
    return table && table->bytes >= offsetof(struct table, functions) + (place + 1) * sizeof(void *) && table->functions[place];
}

/* AMD's table got two functions in its middle (ROCm 5.5), which ROCr exports since; later ones came to its end. */
static size_t amd_place(const struct table *core, size_t place)
{
    enum { GROWN_AT = 17, GROWN_BY = 2 };
    Dl_info about;
    void *library = dladdr(core->functions[AT_hsa_agent_get_info], &about) ? dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    bool grown = library && dlsym(library, "hsa_amd_memory_async_copy_on_engine");
    if (library)
        dlclose(library);
    return place >= GROWN_AT && grown ? place + GROWN_BY : place;
}

bool rocr_take(const struct tables *tables)
{
    const struct table *core = tables->core, *amd = tables->amd;
#define TAKE(table, place, result, name, parameters)                                      \
    if (!rocr_has(table, place)) {                                                             \
        say("luthier: this HSA runtime gives tools no %s; the tool is not there", #name); \
        return false;                                                                     \
    }                                                                                     \
    rocr.name = (result(*) parameters)table->functions[place];
#define TAKE_CORE(place, result, name, parameters) TAKE(core, place, result, name, parameters)
#define TAKE_AMD(place, result, name, parameters) TAKE(amd, amd_place(core, place), result, name, parameters)
    CORE_FUNCTIONS(TAKE_CORE)
    AMD_FUNCTIONS(TAKE_AMD)
    return true;
}
