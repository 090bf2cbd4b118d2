/* Memory of channels at the level of HSA. */
#include "channels.h"
#include "hsa_tool.h"

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
