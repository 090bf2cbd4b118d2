/* Memory of the tool's own: of the host, that a device copies to and from as it is (the program's own would have to be
 * pinned for each copy), and of a device. */
#include "channels.h"
#include "hsa_tool.h"

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

/* A pool is good until hsa_shut_down, so it is looked for each time. */
void *memory_for(hsa_agent_t agent, size_t bytes)
{
    struct wanted wanted = {.flags = HSA_POOL_FINE_GRAINED};
    void *memory = NULL;
    rocr.hsa_iterate_agents(take_agent, &wanted);
    if (!wanted.found.handle || rocr.hsa_amd_memory_pool_allocate(wanted.found, bytes, 0, &memory) != HSA_SUCCESS)
        return NULL;
    if (rocr.hsa_amd_agents_allow_access(1, &agent, NULL, memory) == HSA_SUCCESS)
        return memory;
    rocr.hsa_amd_memory_pool_free(memory);
    return NULL;
}

void *memory_of(hsa_agent_t agent, size_t bytes)
{
    struct wanted wanted = {.flags = HSA_POOL_COARSE_GRAINED};
    void *memory = NULL;
    rocr.hsa_amd_agent_iterate_memory_pools(agent, take_pool, &wanted);
    if (!wanted.found.handle || rocr.hsa_amd_memory_pool_allocate(wanted.found, bytes, 0, &memory) != HSA_SUCCESS)
        return NULL;
    return memory;
}

/* Rings of channels. */

enum { AGENTS = 64 };
static hsa_agent_t agents[AGENTS]; /* by number */

static void *device_memory(int device, size_t bytes) { return memory_of(agents[device], bytes); }
static void *shared_memory(int device, size_t bytes) { return memory_for(agents[device], bytes); }

static bool copy(void *to, const void *from, size_t bytes) { return rocr.hsa_memory_copy(to, from, bytes) == HSA_SUCCESS; }
static void give_back(void *memory) { rocr.hsa_amd_memory_pool_free(memory); }

void *ring_head(const struct declared *about, const struct image *image)
{
    static const struct channel_memory memory = {device_memory, shared_memory, copy, copy, give_back, give_back};
    int device = image_device(image);
    if (device < 0 || device >= AGENTS)
        return NULL;
    agents[device] = image_agent(image);
    return channel_head(about, device, &memory);
}
