/* Where the runtime meets the tool: ROCr calls OnLoad of the libraries in HSA_TOOLS_LIB in hsa_init, rocprofiler-register
 * calls rocprofiler_set_api_table. Both give tables of functions, through which ROCr's public calls go: ours come first.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"
#include "hsa_tool.h"

static atomic_int users; /* calls of hsa_init that no hsa_shut_down has met */

static int is_hip(struct dl_phdr_info *object, size_t size, void *found)
{
    static const char name[] = "libamdhip64.so";
    const char *path = object->dlpi_name ? object->dlpi_name : "", *file = strrchr(path, '/');
    (void)size;
    *(bool *)found |= strncmp(file ? file + 1 : path, name, sizeof name - 1) == 0;
    return *(bool *)found;
}

/* Where the tool is there at both levels, a HIP program is HIP's. */
static bool leave_to_hip(void)
{
    const char *level = setting("LUTHIER_LEVEL");
    bool hip = false;
    if (level && strcmp(level, "auto") == 0)
        dl_iterate_phdr(is_hip, &hip);
    return hip;
}

/* The program ends, or its last use of HSA. */
static void collect(void)
{
    if (!runtime_there)
        return;
    queues_drain();
    in_flight_wait(NULL);
    kernels_each(instances_send);
}

/* The program releases the runtime. The worker stays: the program may begin again. */
static void let_go(void)
{
    if (!runtime_there)
        return;
    if (tool_runs())
        collect();
    executables_drop();
    channels_drop();
    awaited_drop();
    dependencies_drop();
    runtime_there = false;
}

static hsa_status_t tool_init(void)
{
    hsa_status_t status = rocr.hsa_init();
    users += status == HSA_SUCCESS;
    return status;
}

/* rocprofiler-register does not report the last user's end. */
static hsa_status_t tool_shut_down(void)
{
    if (users > 0 && --users == 0)
        let_go();
    return rocr.hsa_shut_down();
}

static bool stand_before(struct tables *tables)
{
    if (!tables || tables->bytes < sizeof *tables) {
        say("luthier: this HSA runtime's tables are of an unknown form; the tool is not there");
        return false;
    }
    struct table *core = tables->core;
    if (rocr_has(core, AT_hsa_queue_create) && core->functions[AT_hsa_queue_create] == (void *)tool_queue_create)
        return true; /* both ways in were taken */
    if (!tool_named() || leave_to_hip())
        return true;
    if (!rocr_take(tables))
        return false;
    users = 1; /* whose hsa_init has brought us here */
    core->functions[AT_hsa_init] = (void *)tool_init;
    core->functions[AT_hsa_shut_down] = (void *)tool_shut_down;
    core->functions[AT_hsa_queue_create] = (void *)tool_queue_create;
    core->functions[AT_hsa_queue_destroy] = (void *)tool_queue_destroy;
    core->functions[AT_hsa_executable_freeze] = (void *)tool_executable_freeze;
    core->functions[AT_hsa_executable_destroy] = (void *)tool_executable_destroy;
    runtime_there = true;
    collect_by(collect);
    tool_prepare();
    return true;
}

/* hsa_api_trace.h */
API bool OnLoad(struct tables *tables, uint64_t version, uint64_t failed, const char *const *names);
API void OnUnload(void);

bool OnLoad(struct tables *tables, uint64_t version, uint64_t failed, const char *const *names)
{
    (void)version, (void)failed, (void)names;
    return stand_before(tables);
}

void OnUnload(void) { let_go(); }

/* rocprofiler-register, since ROCm 6.2: called for each runtime by its name. 0: taken. */
API int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count);

int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count)
{
    (void)version, (void)instance;
    return name && strcmp(name, "hsa") == 0 && count >= 1 && !stand_before(tables[0]);
}
