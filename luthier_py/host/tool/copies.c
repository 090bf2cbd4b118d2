/* A copy's variables: found when it is loaded, set before launches, read after them.
 *
 * For a tool that requests each launch they are read after it. For other tools they accumulate: they are read when the
 * program or its code object ends, or on request.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static bool lead_to_ring(const struct tool_variable *variable, const struct declared *declared, int device)
{
    void *head = channel_head(declared, device);
    return head && driver()->write(variable->address, &head, sizeof head);
}

bool copy_open(struct loaded *copy, const struct clone *made)
{
    bool good = (copy->variables = calloc(made->variable_count + 1u, sizeof *copy->variables));
    for (uint32_t i = 0; good && i < made->variable_count; i++) {
        const struct declared *declared = &made->variables[i];
        struct tool_variable *variable = &copy->variables[copy->variable_count++];
        variable->role = declared->role;
        copy->begins |= variable->role == CHANNEL || variable->role == PARAMETER;
        copy->sized |= has_memory(variable);
        good = driver()->find(copy, declared, variable);
        copy->bytes += variable->role == STATE ? variable->bytes : 0;
        if (good && variable->role == CHANNEL)
            good = lead_to_ring(variable, declared, copy->device);
    }
    return good && (copy->values = driver()->buffer(copy->device, copy->bytes));
}

void copy_close(struct loaded *copy)
{
    if (copy->values)
        driver()->free_buffer(copy->values);
    free(copy->variables);
    free(copy->unread.ranges.text);
}

struct told_of copy_told(const struct loaded *copy, unsigned long index, const struct shape *shape)
{
    struct counted counted = {copy->image, (uint32_t)copy->device, (uint32_t)index, 1, *shape};
    return (struct told_of){counted, copy->kernel, {NULL, 0}};
}

/* Report the launch to the worker, which returns the parameters. */
static bool set_words(const struct loaded *copy, const struct told_of *launch, void *turn)
{
    size_t words = 0, at = 0;
    for (uint32_t i = 0; i < copy->variable_count; i++)
        words += 2 * (copy->variables[i].role == PARAMETER);
    uint32_t *values = calloc(words + 1, sizeof *values);
    bool good = values && clone_begins(launch, values, words);
    for (uint32_t i = 0; good && i < copy->variable_count; i++) {
        const struct tool_variable *variable = &copy->variables[i];
        if (variable->role == CHANNEL)
            good = driver()->set((char *)variable->address + sizeof(void *), &launch->counted.index, 1, turn);
        if (variable->role == PARAMETER) {
            good = driver()->set(variable->address, values + at, variable->bytes > sizeof *values ? 2 : 1, turn);
            at += 2;
        }
    }
    free(values);
    return good;
}

static bool lead_to_memory(const struct loaded *copy, const struct launch_memory *memory, void *turn)
{
    bool good = true;
    for (uint32_t i = 0; good && memory && i < copy->variable_count; i++) {
        uint64_t address = (uintptr_t)memory[i].at;
        uint32_t halves[] = {(uint32_t)address, (uint32_t)(address >> 32)};
        if (has_memory(&copy->variables[i]))
            good = driver()->set(copy->variables[i].address, halves, 2, turn);
    }
    return good;
}

bool copy_begin(const struct loaded *copy, const struct told_of *launch, const struct launch_memory *memory, void *turn)
{
    return (!copy->begins || set_words(copy, launch, turn)) && lead_to_memory(copy, memory, turn);
}

bool copy_clear(const struct loaded *copy, void *turn)
{
    bool good = true;
    for (uint32_t i = 0; good && i < copy->variable_count; i++)
        if (copy->variables[i].role == STATE)
            good = driver()->reset(&copy->variables[i], turn);
    return good;
}

/* What is read of a variable after a launch. */
static const void *content_of(const struct tool_variable *variable, const struct launch_memory *memory, size_t *bytes)
{
    bool sized = variable->role == SIZED && memory;
    *bytes = variable->role == STATE ? variable->bytes : sized ? memory->bytes : 0;
    return sized ? memory->at : variable->address;
}

static bool read_all(const struct loaded *copy, const struct launch_memory *memory, char *to)
{
    bool good = to != NULL;
    for (uint32_t i = 0; good && i < copy->variable_count; i++) {
        size_t bytes;
        const void *content = content_of(&copy->variables[i], memory ? &memory[i] : NULL, &bytes);
        good = !bytes || driver()->read(to, content, bytes);
        to += bytes;
    }
    return good;
}

bool copy_read(const struct loaded *copy, const struct told_of *launch, const struct launch_memory *memory)
{
    size_t more = 0, bytes;
    for (uint32_t i = 0; memory && i < copy->variable_count; i++)
        more += copy->variables[i].role == SIZED ? memory[i].bytes : 0;
    bytes = copy->bytes + more;
    char *values = more ? driver()->buffer(copy->device, bytes) : copy->values;
    if (copy->begins)
        channels_flush(copy->device);
    bool good = read_all(copy, memory, values);
    if (good)
        driver()->counted(launch, values, bytes);
    if (more && values)
        driver()->free_buffer(values);
    return good;
}

static bool has(const struct names *names, const char *name)
{
    for (uint32_t at = 0; at < names->bytes; at += (uint32_t)strlen(names->text + at) + 1)
        if (strcmp(names->text + at, name) == 0)
            return true;
    return false;
}

static void keep_common(struct names *names, const struct names *others)
{
    uint32_t kept = 0;
    for (uint32_t at = 0, bytes; at < names->bytes; at += bytes) {
        bytes = (uint32_t)strlen(names->text + at) + 1;
        if (!has(others, names->text + at))
            continue;
        memmove(names->text + kept, names->text + at, bytes);
        kept += bytes;
    }
    names->bytes = kept;
}

void copy_note(struct loaded *copy, struct told_of *launch)
{
    struct told_of *all = &copy->unread, before = *all;
    *all = *launch;
    all->counted.launches += before.counted.launches;
    if (before.counted.launches)
        keep_common(&all->ranges, &before.ranges);
    free(before.ranges.text);
    launch->ranges = (struct names){0};
}

bool copy_send(struct loaded *copy, const struct launch_memory *memory)
{
    bool good = copy_read(copy, &copy->unread, memory);
    free(copy->unread.ranges.text);
    copy->unread = (struct told_of){0};
    return good;
}
