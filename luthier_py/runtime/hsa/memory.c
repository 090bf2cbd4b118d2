/* Host memory that a device copies to and from as it is: the program's own would have to be pinned for each copy. */
#include "hsa_tool.h"

static hsa_pool_t host; /* of the first CPU that has one */

static hsa_status_t take_pool(hsa_pool_t pool, void *unused)
{
    uint32_t segment = 0, flags = 0;
    (void)unused;
    if (!host.handle && rocr.hsa_amd_memory_pool_get_info(pool, HSA_POOL_INFO_SEGMENT, &segment) == HSA_SUCCESS &&
        rocr.hsa_amd_memory_pool_get_info(pool, HSA_POOL_INFO_FLAGS, &flags) == HSA_SUCCESS &&
        segment == HSA_SEGMENT_GLOBAL && flags & HSA_POOL_FINE_GRAINED)
        host = pool;
    return HSA_SUCCESS;
}

static hsa_status_t take_agent(hsa_agent_t agent, void *unused)
{
    uint32_t type = HSA_DEVICE_TYPE_GPU;
    if (rocr.hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_SUCCESS && type == HSA_DEVICE_TYPE_CPU)
        rocr.hsa_amd_agent_iterate_memory_pools(agent, take_pool, unused);
    return HSA_SUCCESS;
}

void *memory_for(hsa_agent_t agent, size_t bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *memory = NULL;
    pthread_mutex_lock(&lock);
    host.handle = 0; /* a pool is good until hsa_shut_down */
    rocr.hsa_iterate_agents(take_agent, NULL);
    hsa_pool_t pool = host;
    pthread_mutex_unlock(&lock);
    if (!pool.handle || rocr.hsa_amd_memory_pool_allocate(pool, bytes, 0, &memory) != HSA_SUCCESS)
        return NULL;
    if (rocr.hsa_amd_agents_allow_access(1, &agent, NULL, memory) == HSA_SUCCESS)
        return memory;
    rocr.hsa_amd_memory_pool_free(memory);
    return NULL;
}
