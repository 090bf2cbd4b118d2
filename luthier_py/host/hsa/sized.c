/* Variables of the tool that are as large as a launch: the agent's memory, from the launch's packet until its results were read.
 *
 * The worker says how much. In the copy stands a cell with the memory's address, which is set in the launch's turn: each
 * waits for those before it that have the same instance.
 */
#include <stdlib.h>

#include "hsa_tool.h"

static void *zeros(hsa_agent_t agent, size_t bytes)
{
    size_t words = bytes / 4 + 1;
    void *memory = memory_of(agent, words * 4);
    if (!memory || rocr.hsa_amd_memory_fill(memory, 0, words) == HSA_SUCCESS)
        return memory;
    rocr.hsa_amd_memory_pool_free(memory);
    return NULL;
}

static bool allocate(const struct instance *instance, const uint64_t *sizes, struct launch_memory *memory)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    bool good = true;
    for (uint32_t i = 0; good && i < instance->variable_count; i++) {
        if (instance->variables[i].role != SIZED)
            continue;
        memory[i].bytes = *sizes++;
        good = (memory[i].at = zeros(image_agent(instance->kernel->image), memory[i].bytes)) != NULL;
        if (!good && !atomic_flag_test_and_set(&said))
            say("luthier: launches run as they are, as one of kernel %s: there are no %zu bytes for what the tool keeps of it",
                instance->kernel->name, memory[i].bytes);
    }
    return good;
}

struct launch_memory *sized_allocate(const struct instance *instance, const struct told_of *launch)
{
    size_t count = 0;
    for (uint32_t i = 0; i < instance->variable_count; i++)
        count += instance->variables[i].role == SIZED;
    struct launch_memory *memory = calloc(instance->variable_count + 1u, sizeof *memory);
    uint64_t *sizes = calloc(count + 1, sizeof *sizes);
    bool known = memory && sizes && clone_sizes(launch, sizes, count);
    launch_counts()->explained += !known;
    bool good = known && allocate(instance, sizes, memory);
    free(sizes);
    if (good)
        return memory;
    sized_free(instance, memory);
    return NULL;
}

bool sized_connect(const struct instance *instance, const struct launch_memory *memory)
{
    bool good = true;
    for (uint32_t i = 0; good && memory && i < instance->variable_count; i++)
        if (instance->variables[i].role == SIZED)
            good = rocr.hsa_memory_copy(instance->variables[i].address, &memory[i].at, sizeof memory[i].at) == HSA_SUCCESS;
    return good;
}

size_t sized_bytes(const struct instance *instance, const struct launch_memory *memory)
{
    size_t bytes = 0;
    for (uint32_t i = 0; memory && i < instance->variable_count; i++)
        bytes += memory[i].bytes;
    return bytes;
}

void sized_free(const struct instance *instance, struct launch_memory *memory)
{
    for (uint32_t i = 0; memory && i < instance->variable_count; i++)
        if (memory[i].at)
            rocr.hsa_amd_memory_pool_free(memory[i].at);
    free(memory);
}
