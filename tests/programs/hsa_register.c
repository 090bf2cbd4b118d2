/* What rocprofiler-register does with a tool's library, for a runtime that knows HSA_TOOLS_LIB only: its table is handed on.
 *
 * A library for HSA_TOOLS_LIB; ROCPROFILER_REGISTER_LIBRARY names the tool's. Nobody tells the tool when the runtime goes.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef int set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count);

bool OnLoad(void *table, uint64_t version, uint64_t failed, const char *const *names)
{
    void *tool = dlopen(getenv("ROCPROFILER_REGISTER_LIBRARY"), RTLD_LAZY | RTLD_GLOBAL);
    set_api_table *set = tool ? (set_api_table *)dlsym(tool, "rocprofiler_set_api_table") : NULL;
    void *tables[] = {table};
    (void)version, (void)failed, (void)names;
    return set && set("hsa", 60200, 0, tables, 1) == 0;
}

void OnUnload(void) {}
