/* What the tool lets HSA do (host/tool/driver.h): at once, by the agents' own functions.
 *
 * Host memory is of a pool that devices copy to and from directly: the program's would have to be pinned for each copy.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hsa_tool.h"

enum { AGENTS = 64 };
static hsa_agent_t agents[AGENTS]; /* by number */

static hsa_status_t note_agent(hsa_agent_t agent, void *data)
{
    int *count = data;
    uint32_t type = 0;
    if (rocr.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_SUCCESS && type == HSA_DEVICE_TYPE_GPU &&
        *count < AGENTS)
        agents[(*count)++] = agent;
    return HSA_SUCCESS;
}

int agent_number(hsa_agent_t agent)
{
    int count = 0;
    rocr.hsa_iterate_agents(note_agent, &count);
    while (--count >= 0 && agents[count].handle != agent.handle)
        continue;
    return count;
}

/* "amdgcn-amd-amdhsa--" and the target ID. */
static bool describe(int device, uint32_t *form, char properties[static PROPERTIES_BYTES])
{
    hsa_isa_t isa;
    uint32_t length = 0;
    *form = FORM_ISA;
    return rocr.hsa_agent_get_info(agents[device], HSA_AGENT_INFO_ISA, &isa) == HSA_SUCCESS &&
           rocr.hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length) == HSA_SUCCESS && length < PROPERTIES_BYTES &&
           rocr.hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, properties) == HSA_SUCCESS;
}

struct wanted { uint32_t flags; hsa_pool_t found; }; /* the first pool that has these */

static hsa_status_t take_pool(hsa_pool_t pool, void *data)
{
    struct wanted *wanted = data;
    uint32_t segment = 0, flags = 0;
    if (!wanted->found.handle && rocr.hsa_amd_memory_pool_get_info(pool, HSA_POOL_INFO_SEGMENT, &segment) == HSA_SUCCESS &&
        rocr.hsa_amd_memory_pool_get_info(pool, HSA_POOL_INFO_FLAGS, &flags) == HSA_SUCCESS &&
        segment == HSA_SEGMENT_GLOBAL && flags & wanted->flags)
        wanted->found = pool;
    return HSA_SUCCESS;
}

static hsa_status_t take_agent(hsa_agent_t agent, void *data)
{
    uint32_t type = HSA_DEVICE_TYPE_GPU;
    if (rocr.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_SUCCESS && type == HSA_DEVICE_TYPE_CPU)
        rocr.hsa_amd_agent_iterate_memory_pools(agent, take_pool, data);
    return HSA_SUCCESS;
}

/* A pool is valid until hsa_shut_down, so it is looked up each time. */
static void *host_memory(int device, size_t bytes)
{
    struct wanted wanted = {.flags = HSA_POOL_FINE_GRAINED};
    void *memory = NULL;
    rocr.hsa_iterate_agents(take_agent, &wanted);
    if (!wanted.found.handle || rocr.hsa_amd_memory_pool_allocate(wanted.found, bytes + 1, 0, &memory) != HSA_SUCCESS)
        return NULL;
    if (rocr.hsa_amd_agents_allow_access(1, &agents[device], NULL, memory) == HSA_SUCCESS)
        return memory;
    rocr.hsa_amd_memory_pool_free(memory);
    return NULL;
}

static void *device_memory(int device, size_t bytes)
{
    struct wanted wanted = {.flags = HSA_POOL_COARSE_GRAINED};
    void *memory = NULL;
    rocr.hsa_amd_agent_iterate_memory_pools(agents[device], take_pool, &wanted);
    if (!wanted.found.handle || rocr.hsa_amd_memory_pool_allocate(wanted.found, bytes, 0, &memory) != HSA_SUCCESS)
        return NULL;
    return memory;
}

static bool copy(void *to, const void *from, size_t bytes) { return rocr.hsa_memory_copy(to, from, bytes) == HSA_SUCCESS; }
static void give_back(void *memory) { rocr.hsa_amd_memory_pool_free(memory); }

/* Save a variable's content as loaded, for resets. */
static bool keep_initial(struct tool_variable *variable, int device)
{
    variable->initial = host_memory(device, variable->bytes);
    return variable->initial && copy(variable->initial, variable->address, variable->bytes);
}

bool find_symbol(hsa_executable_t executable, int device, const char *name, const char *suffix, hsa_symbol_t *symbol)
{
    char *full;
    if (asprintf(&full, "%s%s", name, suffix) < 0)
        return false;
    bool found = rocr.hsa_executable_get_symbol_by_name(executable, full, &agents[device], symbol) == HSA_SUCCESS;
    free(full);
    return found;
}

static bool find(const struct loaded *loaded, const struct declared *declared, struct tool_variable *variable)
{
    hsa_symbol_t symbol;
    uint32_t bytes = 0;
    hsa_executable_t executable = ((const struct instance *)loaded)->executable;
    bool good = find_symbol(executable, loaded->device, declared->name, "", &symbol) &&
                rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_VARIABLE_ADDRESS, &variable->address) == HSA_SUCCESS &&
                rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_VARIABLE_SIZE, &bytes) == HSA_SUCCESS;
    variable->bytes = bytes;
    return good && (variable->role != STATE || keep_initial(variable, loaded->device));
}

static bool set(void *to, const uint32_t *words, size_t count, void *turn)
{
    (void)turn;
    return copy(to, words, count * sizeof *words);
}

static bool reset(const struct tool_variable *variable, void *turn)
{
    (void)turn;
    return copy(variable->address, variable->initial, variable->bytes);
}

static bool allocate(struct launch_memory *memory, int device, void *turn)
{
    size_t words = memory->bytes / 4 + 1;
    (void)turn;
    memory->at = device_memory(device, words * 4);
    return memory->at && rocr.hsa_amd_memory_fill(memory->at, 0, words) == HSA_SUCCESS;
}

static void release(struct launch_memory *memory, int device, void *turn)
{
    (void)device, (void)turn;
    give_back(memory->at);
}

__attribute__((constructor)) static void drive(void)
{
    static const struct driver hsa = {
        .describe = describe, .find = find, .write = copy, .read = copy, .set = set, .reset = reset,
        .allocate = allocate, .release = release, .buffer = host_memory, .free_buffer = give_back,
        .device = device_memory, .shared = host_memory, .free_device = give_back, .free_shared = give_back,
        .counted = clone_counted};
    drive_by(&hsa);
}
