/* The worker's copies of kernels: requested and parsed; counts of their launches: sent back.
 *
 * A copy has the kernel's clone and what the tool adds. It is loaded as a separate code object, and uses the program's
 * variables where the program has them: references to the original (binary/link/bindings.py) are bound to its load
 * address.
 */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

enum { BINDING_BYTES = 24 };

bool clone_image(uint32_t image, int device, uint32_t form, const void *properties, const void *data, size_t bytes)
{
    uint32_t head[3] = {image, (uint32_t)device, form};
    struct part parts[] = {{head, sizeof head}, {properties, PROPERTIES_BYTES}, {data, bytes}};
    struct reply reply;
    if (!tool_ask(MESSAGE_IMAGE, parts, 3, &reply))
        return false;
    free(reply.data);
    return reply.status == 0; /* if not, the worker has printed why */
}

static char *take_text(struct cursor *cursor)
{
    uint32_t bytes = take32(cursor);
    const char *text = take(cursor, bytes);
    char *copy = text ? strndup(text, bytes) : NULL;
    cursor->bad |= copy == NULL;
    return copy;
}

/* Aligned, as a loader may expect. */
static char *take_bytes(struct cursor *cursor, size_t bytes)
{
    const void *data = take(cursor, bytes);
    char *copy = data ? malloc(bytes + 1) : NULL;
    cursor->bad |= copy == NULL;
    return copy ? memcpy(copy, data, bytes) : NULL;
}

/* How many things follow, each of which has a size itself; room for them in `*array`. */
static uint32_t take_count(struct cursor *cursor, void **array, size_t bytes)
{
    uint32_t count = take32(cursor);
    cursor->bad |= count > (size_t)(cursor->end - cursor->at);
    *array = cursor->bad ? NULL : calloc(count + 1u, bytes);
    cursor->bad |= *array == NULL;
    return cursor->bad ? 0 : count;
}

/* Where the program's arguments are. */
static void read_arguments(struct clone *clone, struct cursor *cursor)
{
    clone->argument_count = take_count(cursor, (void **)&clone->arguments, sizeof *clone->arguments);
    for (uint32_t i = 0; i < clone->argument_count; i++) {
        clone->arguments[i].offset = take32(cursor);
        clone->arguments[i].bytes = take32(cursor);
    }
}

/* clone's name, code object; each variable of the tool; the program's variables; what is to be bound. */
static void read_clone(struct clone *clone, struct cursor *cursor)
{
    clone->name = take_text(cursor);
    clone->bytes = take32(cursor);
    clone->code = take_bytes(cursor, clone->bytes);
    clone->variable_count = take_count(cursor, (void **)&clone->variables, sizeof *clone->variables);
    for (uint32_t i = 0; i < clone->variable_count; i++) {
        struct declared *variable = &clone->variables[i];
        variable->name = take_text(cursor);
        uint32_t *numbers[] = {&variable->role, &variable->number, &variable->capacity, &variable->slot_bytes, &variable->drops};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            *numbers[k] = take32(cursor);
    }
    clone->program_count = take_count(cursor, (void **)&clone->program, sizeof *clone->program);
    for (uint32_t i = 0; i < clone->program_count; i++) {
        clone->program[i].name = take_text(cursor);
        clone->program[i].where = take64(cursor);
        clone->program[i].changes = take32(cursor) != 0;
    }
    clone->binding_count = take32(cursor);
    clone->bindings = take_bytes(cursor, (size_t)clone->binding_count * BINDING_BYTES);
}

enum answer clone_ask(uint32_t image, int device, const char *kernel, bool whole, struct clone *clone)
{
    uint32_t head[] = {image, (uint32_t)device, whole};
    struct part parts[] = {{head, sizeof head}, {kernel, strlen(kernel)}};
    struct reply reply;
    *clone = (struct clone){0};
    if (!tool_ask(MESSAGE_INSTRUMENT, parts, 2, &reply))
        return REFUSED;
    struct cursor cursor = {reply.data, reply.data + reply.bytes, false};
    uint32_t choice = reply.status == 0 ? take32(&cursor) : 0;
    clone->given = choice == 2;
    if (clone->given)
        read_arguments(clone, &cursor);
    bool chosen = choice != 0, changed = chosen && cursor.at != cursor.end;
    if (changed)
        read_clone(clone, &cursor);
    bool good = reply.status == 0 && !cursor.bad;
    free(reply.data);
    if (!good)
        clone_free(clone);
    return !good ? REFUSED : !chosen ? NOT_CHOSEN : !changed ? NOT_CHANGED : CLONED;
}

/* Offsets of three dwords in the file: s_getpc_b64, which becomes a move, and the halves of the address. */
bool clone_bind(struct clone *clone, uint64_t base)
{
    struct cursor cursor = {clone->bindings, clone->bindings + (size_t)clone->binding_count * BINDING_BYTES, false};
    for (uint32_t i = 0; i < clone->binding_count; i++) {
        uint32_t getpc = take32(&cursor), move = take32(&cursor), low = take32(&cursor), high = take32(&cursor);
        uint64_t address = base + take64(&cursor), last = clone->bytes - 4;
        if (clone->bytes < 4 || getpc > last || low > last || high > last)
            return false;
        uint32_t half[] = {(uint32_t)address, (uint32_t)(address >> 32)};
        memcpy(clone->code + getpc, &move, 4);
        memcpy(clone->code + low, &half[0], 4);
        memcpy(clone->code + high, &half[1], 4);
    }
    return true;
}

void clone_free(struct clone *clone)
{
    for (uint32_t i = 0; i < clone->variable_count; i++)
        free(clone->variables[i].name);
    for (uint32_t i = 0; i < clone->program_count; i++)
        free(clone->program[i].name);
    free(clone->variables);
    free(clone->program);
    free(clone->arguments);
    free(clone->bindings);
    free(clone->name);
    free(clone->code);
    *clone = (struct clone){0};
}

void told_parts(const struct told_of *launch, struct part *parts, uint32_t *sizes)
{
    sizes[0] = (uint32_t)strlen(launch->kernel);
    sizes[1] = launch->ranges.bytes;
    parts[0] = (struct part){&launch->counted, sizeof launch->counted};
    parts[1] = (struct part){sizes, 2 * sizeof *sizes};
    parts[2] = (struct part){launch->kernel, sizes[0]};
    parts[3] = (struct part){sizes[1] ? launch->ranges.text : "", sizes[1]};
}

static void tell_of_launch(uint32_t code, const struct told_of *launch, const void *values, size_t bytes)
{
    uint32_t sizes[2];
    struct part parts[TOLD_PARTS + 1];
    told_parts(launch, parts, sizes);
    parts[TOLD_PARTS] = (struct part){values, bytes};
    tool_tell(code, parts, TOLD_PARTS + 1);
}

void clone_given(const struct told_of *launch, const void *arguments, size_t bytes)
{
    tell_of_launch(MESSAGE_ARGUMENTS, launch, arguments, bytes);
}

void clone_counted(const struct told_of *launch, const void *values, size_t bytes)
{
    tell_of_launch(MESSAGE_RESULT, launch, values, bytes);
}

/* The worker's answer about a launch, if it is of that size. */
static bool ask_of_launch(uint32_t code, const struct told_of *launch, void *answer, size_t bytes)
{
    uint32_t sizes[2];
    struct part parts[TOLD_PARTS];
    struct reply reply;
    told_parts(launch, parts, sizes);
    if (!tool_ask(code, parts, TOLD_PARTS, &reply))
        return false;
    bool good = reply.status == 0 && reply.bytes == bytes;
    if (good && bytes)
        memcpy(answer, reply.data, bytes);
    free(reply.data);
    return good;
}

void *clone_allocations(const struct told_of *launch, uint64_t cell, struct original original, const void *rows,
                        size_t row_bytes, size_t *bytes)
{
    uint32_t sizes[2];
    uint64_t places[] = {cell, original.where, original.base};
    struct part parts[TOLD_PARTS + 2];
    struct reply reply;
    told_parts(launch, parts, sizes);
    parts[TOLD_PARTS] = (struct part){places, sizeof places};
    parts[TOLD_PARTS + 1] = (struct part){rows, row_bytes};
    if (!tool_ask(MESSAGE_ALLOCATIONS, parts, TOLD_PARTS + 2, &reply))
        return NULL;
    *bytes = reply.bytes;
    if (reply.status == 0 && reply.bytes)
        return reply.data;
    free(reply.data);
    return NULL;
}

bool clone_begins(const struct told_of *launch, uint32_t *values, size_t words)
{
    return ask_of_launch(MESSAGE_BEGIN, launch, values, words * sizeof *values);
}

bool clone_sizes(const struct told_of *launch, uint64_t *sizes, size_t count)
{
    return ask_of_launch(MESSAGE_SIZES, launch, sizes, count * sizeof *sizes);
}
