/* Instrumented copies of kernels, loaded as separate executables on the agent that has the original.
 *
 * The tool requests a copy from the worker once for each kernel, at its first selected launch. It may load the copy
 * several times, each with separate variables: so launches on different queues never wait for each other, possibly for
 * ever.
 */
#include <stdlib.h>

#include "hsa_tool.h"

static void ask(struct kernel *kernel)
{
    struct asked *asked = &kernel->asked;
    enum answer answer = image_ask(kernel->image, kernel->name, asked);
    bool good = answer != REFUSED;
    kernel->known = true;
    asked->explained &= !asked->made.given; /* HSA reports no arguments */
    if (answer == CLONED && !clone_bind(&asked->made, kernel->image->delta)) {
        clone_free(&asked->made);
        good = false;
    }
    if (!good)
        tool_refused();
}

static bool get(hsa_symbol_t symbol, uint32_t what, void *value)
{
    return rocr.hsa_executable_symbol_get_info(symbol, what, value) == HSA_SUCCESS;
}

static bool load(struct instance *instance, const struct clone *made)
{
    hsa_agent_t agent = instance->kernel->image->agent;
    uint32_t profile = 0;
    hsa_symbol_t symbol;
    return rocr.hsa_agent_get_info(agent, HSA_AGENT_INFO_PROFILE, &profile) == HSA_SUCCESS &&
           rocr.hsa_code_object_reader_create_from_memory(made->code, made->bytes, &instance->reader) == HSA_SUCCESS &&
           rocr.hsa_executable_create_alt(profile, 0, NULL, &instance->executable) == HSA_SUCCESS &&
           rocr.hsa_executable_load_agent_code_object(instance->executable, agent, instance->reader, NULL, NULL) == HSA_SUCCESS &&
           rocr.hsa_executable_freeze(instance->executable, NULL) == HSA_SUCCESS &&
           find_symbol(instance->executable, instance->loaded.device, made->name, ".kd", &symbol) &&
           get(symbol, HSA_SYMBOL_INFO_KERNEL_OBJECT, &instance->object) &&
           get(symbol, HSA_SYMBOL_INFO_PRIVATE_BYTES, &instance->private_bytes) &&
           get(symbol, HSA_SYMBOL_INFO_GROUP_BYTES, &instance->group_bytes) && copy_open(&instance->loaded, made);
}

static void drop(struct instance *instance)
{
    if (instance->executable.handle)
        rocr.hsa_executable_destroy(instance->executable);
    if (instance->reader.handle)
        rocr.hsa_code_object_reader_destroy(instance->reader);
    for (uint32_t i = 0; i < instance->loaded.variable_count; i++)
        if (instance->loaded.variables[i].initial)
            rocr.hsa_amd_memory_pool_free(instance->loaded.variables[i].initial);
    copy_close(&instance->loaded);
    dependency_leave(instance->dependency);
    free(instance);
}

static struct instance *load_instance(struct kernel *kernel, const struct queue *queue)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return NULL;
    const struct image *image = kernel->image;
    instance->loaded = (struct loaded){.kernel = kernel->name, .image = image->object.number, .device = image->device,
                                       .original = {ORIGINAL_AT_BASE, image->delta}};
    instance->kernel = kernel;
    instance->queue = queue;
    if (load(instance, &kernel->asked.made)) {
        instance->next = kernel->instances;
        kernel->instances = instance;
        return instance;
    }
    drop(instance);
    say("luthier: kernel %s runs as it is: the runtime does not load its instrumented copy", kernel->name);
    clone_free(&kernel->asked.made);
    tool_refused();
    return NULL;
}

/* With the kernel locked: this queue's instance, or one that neither a queue nor an abandoned launch uses. */
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
    if (!kernel->known)
        ask(kernel);
    const struct asked *asked = &kernel->asked;
    const struct queue *owner = settings.per_launch ? queue : NULL;
    struct instance *instance = asked->made.name ? find_instance(kernel, owner) : NULL;
    if (!instance && asked->made.name && (instance = find_instance(kernel, NULL)))
        instance->queue = owner;
    if (!instance && asked->made.name)
        instance = load_instance(kernel, owner);
    launch_counts()->selected += asked->selected;
    launch_counts()->explained += asked->selected && asked->explained;
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

void instance_begin(const struct instance *instance, const struct told_of *launch, const struct launch_memory *memory)
{
    if (!copy_begin(&instance->loaded, launch, memory, NULL))
        say("luthier: launch %u of kernel %s has the number and the parameters of another one", launch->counted.index,
            launch->kernel);
}

void instance_note(struct instance *instance, struct told_of *launch)
{
    pthread_mutex_lock(&instance->kernel->lock);
    copy_note(&instance->loaded, launch);
    pthread_mutex_unlock(&instance->kernel->lock);
}

void instance_end(const struct instance *instance, const struct told_of *launch, const struct launch_memory *memory)
{
    if (!copy_read(&instance->loaded, launch, memory) || !copy_clear(&instance->loaded, NULL))
        say("luthier: what a launch of kernel %s has counted cannot be read", launch->kernel);
}

void instances_send(struct kernel *kernel)
{
    for (struct instance *instance = kernel->instances; instance; instance = instance->next) {
        struct told_of *unread = &instance->loaded.unread;
        if (unread->counted.launches)
            instance_end(instance, unread, NULL);
        *unread = (struct told_of){0};
    }
}

void instances_drop(struct kernel *kernel)
{
    for (struct instance *instance; (instance = kernel->instances);) {
        kernel->instances = instance->next;
        drop(instance);
    }
}
