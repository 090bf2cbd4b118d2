/* Memory of single launches: variables of the tool that are as large as a launch, and the table of what it may access.
 *
 * The worker says how much. The copy has a cell for the memory's address, which is set in the launch's turn.
 */
#include "driver.h"

#include <stdlib.h>

/* Also without memory where there is no table: then the cell is null. */
static bool place(const struct loaded *copy, const struct told_of *launch, const struct tool_variable *variable,
                  struct launch_memory *memory, void *turn)
{
    if (variable->role == TABLE && !(memory->content = driver()->table(copy, launch, variable->address, &memory->bytes)))
        return true;
    return driver()->allocate(memory, copy->device, turn);
}

static bool place_all(const struct loaded *copy, const struct told_of *launch, const uint64_t *sizes,
                      struct launch_memory *memory, void *turn)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    bool good = true;
    for (uint32_t i = 0; good && i < copy->variable_count; i++) {
        const struct tool_variable *variable = &copy->variables[i];
        if (!has_memory(variable))
            continue;
        if (variable->role == SIZED)
            memory[i].bytes = *sizes++;
        good = place(copy, launch, variable, &memory[i], turn);
        if (!good && !atomic_flag_test_and_set(&said))
            say("luthier: launches run as they are, as one of kernel %s: there are no %zu bytes for what the tool keeps of it",
                copy->kernel, memory[i].bytes);
    }
    return good;
}

struct launch_memory *memory_begin(const struct loaded *copy, const struct told_of *launch, void *turn)
{
    size_t count = 0;
    for (uint32_t i = 0; i < copy->variable_count; i++)
        count += copy->variables[i].role == SIZED;
    struct launch_memory *memory = calloc(copy->variable_count + 1u, sizeof *memory);
    uint64_t *sizes = calloc(count + 1, sizeof *sizes);
    bool known = memory && sizes && (!count || clone_sizes(launch, sizes, count));
    launch_counts()->explained += !known;
    bool good = known && place_all(copy, launch, sizes, memory, turn);
    free(sizes);
    if (good)
        return memory;
    memory_end(copy, memory, turn);
    return NULL;
}

void memory_end(const struct loaded *copy, struct launch_memory *memory, void *turn)
{
    for (uint32_t i = 0; memory && i < copy->variable_count; i++) {
        if (memory[i].at)
            driver()->release(&memory[i], copy->device, turn);
        free(memory[i].content);
    }
    free(memory);
}
