/* Instrumented copies of kernels, loaded as executables of their own on the agent that has the original.
 *
 * The worker is asked once for each kernel, at its first selected launch. A copy may be loaded several times, each with
 * variables of its own: then launches on different queues need not wait for each other, which could be for ever.
 */
#include <stdlib.h>
#include <string.h>

#include "channels.h"
#include "hsa_tool.h"

static void ask(struct kernel *kernel)
{
    enum answer answer = REFUSED;
    kernel->asked = true;
    kernel->explained = image_send(kernel->image);
    if (kernel->explained)
        answer = clone_ask(image_number(kernel->image), image_device(kernel->image), kernel->name, false, &kernel->clone);
    kernel->selected = answer != NOT_CHOSEN;
    kernel->explained &= answer != CLONED && !kernel->clone.given; /* arguments are not told from here */
    bool good = answer != REFUSED;
    if (answer == CLONED && !clone_bind(&kernel->clone, image_delta(kernel->image))) {
        clone_free(&kernel->clone);
        good = false;
    }
    if (!good)
        tool_refused();
}

static bool symbol_info(const struct instance *instance, const char *name, const char *suffix, hsa_symbol_t *symbol)
{
    hsa_agent_t agent = image_agent(instance->kernel->image);
    char *full = malloc(strlen(name) + strlen(suffix) + 1);
    if (!full)
        return false;
    strcpy(stpcpy(full, name), suffix);
    bool found = rocr.hsa_executable_get_symbol_by_name(instance->executable, full, &agent, symbol) == HSA_SUCCESS;
    free(full);
    return found;
}

static bool get(hsa_symbol_t symbol, uint32_t what, void *value)
{
    return rocr.hsa_executable_symbol_get_info(symbol, what, value) == HSA_SUCCESS;
}

/* What variables are as they have been loaded: that is what they are set to again. */
static bool read_initial(struct instance *instance)
{
    instance->values = memory_for(image_agent(instance->kernel->image), 2 * instance->bytes + 1);
    char *at = instance->values ? instance->values + instance->bytes : NULL;
    bool good = at != NULL;
    for (uint32_t i = 0; good && i < instance->variable_count; i++) {
        const struct tool_variable *variable = &instance->variables[i];
        if (variable->role != STATE)
            continue;
        good = rocr.hsa_memory_copy(at, variable->address, variable->bytes) == HSA_SUCCESS;
        at += variable->bytes;
    }
    return good;
}

static bool find_variables(struct instance *instance, const struct clone *clone)
{
    bool good = (instance->variables = calloc(clone->variable_count + 1u, sizeof *instance->variables));
    for (uint32_t i = 0; good && i < clone->variable_count; i++) {
        struct tool_variable *variable = &instance->variables[instance->variable_count++];
        hsa_symbol_t symbol;
        uint32_t bytes = 0;
        good = symbol_info(instance, clone->variables[i].name, "", &symbol) &&
               get(symbol, HSA_SYMBOL_INFO_VARIABLE_ADDRESS, &variable->address) &&
               get(symbol, HSA_SYMBOL_INFO_VARIABLE_SIZE, &bytes);
        variable->bytes = bytes;
        variable->role = clone->variables[i].role;
        instance->bytes += variable->role == STATE ? bytes : 0;
        instance->begins |= variable->role == CHANNEL || variable->role == PARAMETER;
        instance->sized |= variable->role == SIZED;
        if (good && variable->role == CHANNEL) {
            void *head = ring_head(&clone->variables[i], instance->kernel->image);
            good = head && rocr.hsa_memory_copy(variable->address, &head, sizeof head) == HSA_SUCCESS;
        }
    }
    return good && read_initial(instance);
}

static bool load(struct instance *instance, const struct clone *clone)
{
    hsa_agent_t agent = image_agent(instance->kernel->image);
    uint32_t profile = 0;
    hsa_symbol_t symbol;
    return rocr.hsa_agent_get_info(agent, HSA_AGENT_INFO_PROFILE, &profile) == HSA_SUCCESS &&
           rocr.hsa_code_object_reader_create_from_memory(clone->code, clone->bytes, &instance->reader) == HSA_SUCCESS &&
           rocr.hsa_executable_create_alt(profile, 0, NULL, &instance->executable) == HSA_SUCCESS &&
           rocr.hsa_executable_load_agent_code_object(instance->executable, agent, instance->reader, NULL, NULL) == HSA_SUCCESS &&
           rocr.hsa_executable_freeze(instance->executable, NULL) == HSA_SUCCESS &&
           symbol_info(instance, clone->name, ".kd", &symbol) && get(symbol, HSA_SYMBOL_INFO_KERNEL_OBJECT, &instance->object) &&
           get(symbol, HSA_SYMBOL_INFO_PRIVATE_BYTES, &instance->private_bytes) &&
           get(symbol, HSA_SYMBOL_INFO_GROUP_BYTES, &instance->group_bytes) && find_variables(instance, clone);
}

static void drop(struct instance *instance)
{
    if (instance->executable.handle)
        rocr.hsa_executable_destroy(instance->executable);
    if (instance->reader.handle)
        rocr.hsa_code_object_reader_destroy(instance->reader);
    if (instance->values)
        rocr.hsa_amd_memory_pool_free(instance->values);
    dependency_leave(instance->dependency);
    free(instance->variables);
    free(instance);
}

static struct instance *load_instance(struct kernel *kernel, const struct queue *queue)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return NULL;
    instance->kernel = kernel;
    instance->queue = queue;
    if (load(instance, &kernel->clone)) {
        instance->next = kernel->instances;
        kernel->instances = instance;
        return instance;
    }
    drop(instance);
    say("luthier: kernel %s runs as it is: the runtime does not load its instrumented copy", kernel->name);
    clone_free(&kernel->clone);
    tool_refused();
    return NULL;
}

/* With the kernel locked: this queue's, or one that no queue has, nor a launch that was left behind. */
static struct instance *find_instance(const struct kernel *kernel, const struct queue *queue)
{
    struct instance *instance = kernel->instances;
    while (instance && (instance->queue != queue || (!queue && instance->dependency && dependency_shut(instance->dependency))))
        instance = instance->next;
    return instance;
}

struct instance *instance_for(struct kernel *kernel, const struct queue *queue)
{
    pthread_mutex_lock(&kernel->lock);
    if (!kernel->asked)
        ask(kernel);
    const struct queue *owner = settings.per_launch ? queue : NULL;
    struct instance *instance = kernel->clone.name ? find_instance(kernel, owner) : NULL;
    if (!instance && kernel->clone.name && (instance = find_instance(kernel, NULL)))
        instance->queue = owner;
    if (!instance && kernel->clone.name)
        instance = load_instance(kernel, owner);
    launch_counts()->selected += kernel->selected;
    launch_counts()->explained += kernel->selected && kernel->explained;
    pthread_mutex_unlock(&kernel->lock);
    return instance;
}

static const struct queue *leaving;

static void leave(struct kernel *kernel)
{
    pthread_mutex_lock(&kernel->lock);
    for (struct instance *instance = kernel->instances; instance; instance = instance->next)
        if (instance->queue == leaving)
            instance->queue = NULL;
    pthread_mutex_unlock(&kernel->lock);
}

void instances_leave(const struct queue *queue)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    leaving = queue;
    kernels_each(leave);
    pthread_mutex_unlock(&lock);
}

struct told_of instance_told(const struct instance *instance, unsigned long index, uint32_t launches, const struct shape *shape)
{
    const struct image *image = instance->kernel->image;
    struct counted counted = {image_number(image), (uint32_t)image_device(image), (uint32_t)index, launches,
                              {shape->grid[0], shape->grid[1], shape->grid[2]},
                              {shape->block[0], shape->block[1], shape->block[2]}};
    return (struct told_of){counted, instance->kernel->name, {NULL, 0}};
}

/* The worker is told of the launch, and says the parameters. */
static bool set_words(const struct instance *instance, unsigned long index, const struct shape *shape)
{
    struct told_of launch = instance_told(instance, index, 1, shape);
    uint32_t number = (uint32_t)index;
    size_t words = 0, at = 0;
    for (uint32_t i = 0; i < instance->variable_count; i++)
        words += 2 * (instance->variables[i].role == PARAMETER);
    uint32_t *values = calloc(words + 1, sizeof *values);
    bool good = values && clone_begins(&launch, values, words);
    for (uint32_t i = 0; good && i < instance->variable_count; i++) {
        const struct tool_variable *variable = &instance->variables[i];
        if (variable->role == CHANNEL)
            good = rocr.hsa_memory_copy((char *)variable->address + sizeof(void *), &number, sizeof number) == HSA_SUCCESS;
        if (variable->role == PARAMETER) {
            good = rocr.hsa_memory_copy(variable->address, values + at, variable->bytes) == HSA_SUCCESS;
            at += 2;
        }
    }
    free(values);
    return good;
}

void instance_begin(const struct instance *instance, unsigned long index, const struct shape *shape,
                    const struct launch_memory *memory)
{
    bool good = !instance->begins || set_words(instance, index, shape);
    if (!good || !sized_connect(instance, memory))
        say("luthier: launch %lu of kernel %s has the number and the parameters of another one", index, instance->kernel->name);
}

void instance_note(struct instance *instance, unsigned long index, const struct shape *shape)
{
    pthread_mutex_lock(&instance->kernel->lock);
    instance->unread++;
    instance->last_index = index;
    instance->last = *shape;
    pthread_mutex_unlock(&instance->kernel->lock);
}

void instance_read(struct instance *instance, uint32_t launches, unsigned long index, const struct shape *shape,
                   const struct launch_memory *memory)
{
    const struct kernel *kernel = instance->kernel;
    size_t more = sized_bytes(instance, memory);
    char *values = more ? memory_for(image_agent(kernel->image), instance->bytes + more) : instance->values;
    char *at = values, *initial = instance->values + instance->bytes;
    bool good = values != NULL;
    if (instance->begins)
        channels_flush(image_device(kernel->image));
    for (uint32_t i = 0; good && i < instance->variable_count; i++) {
        const struct tool_variable *variable = &instance->variables[i];
        if (variable->role == STATE) {
            good = rocr.hsa_memory_copy(at, variable->address, variable->bytes) == HSA_SUCCESS &&
                   rocr.hsa_memory_copy(variable->address, initial, variable->bytes) == HSA_SUCCESS;
            at += variable->bytes;
            initial += variable->bytes;
        } else if (variable->role == SIZED && memory && memory[i].bytes) {
            good = rocr.hsa_memory_copy(at, memory[i].at, memory[i].bytes) == HSA_SUCCESS;
            at += memory[i].bytes;
        }
    }
    struct told_of launch = instance_told(instance, index, launches, shape);
    if (good)
        clone_counted(&launch, values, instance->bytes + more);
    if (more && values)
        rocr.hsa_amd_memory_pool_free(values);
    if (!good)
        say("luthier: what a launch of kernel %s has counted cannot be read", kernel->name);
}

void instances_send(struct kernel *kernel)
{
    for (struct instance *instance = kernel->instances; instance; instance = instance->next)
        if (instance->unread) {
            instance_read(instance, (uint32_t)instance->unread, instance->last_index, &instance->last, NULL);
            instance->unread = 0;
        }
}

void instances_drop(struct kernel *kernel)
{
    for (struct instance *instance; (instance = kernel->instances);) {
        kernel->instances = instance->next;
        drop(instance);
    }
}
