/* Graphs under a tool: beside each graph that is ready to launch a shadow, in which clones replace the kernels.
 *
 * The shadow is made when the graph is instantiated, while its nodes are there; it gets every later change as well, and is
 * launched instead when the tool selects the launch. Results are those of the whole graph: one for each kernel in it.
 * Where there can be no shadow (nodes that allocate), or it cannot be changed alike, the graph runs as it is.
 */
#include "graphed.h"

#include <stdlib.h>
#include <string.h>

static struct executable *executables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all this; one graph is prepared, changed or launched at a time */

void graphs_lock(void) { pthread_mutex_lock(&lock); }
void graphs_unlock(void) { pthread_mutex_unlock(&lock); }

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

struct executable *graphs_find(const struct graph *graph)
{
    struct executable *found = executables;
    while (found && found->graph != graph)
        found = found->next;
    return found;
}

static bool add_launch(struct executable *to, struct node *node)
{
    struct graph_launch *larger = realloc(to->launches, (to->count + 1) * sizeof *larger);
    if (!larger)
        return false;
    to->launches = larger;
    larger[to->count++] = (struct graph_launch){.node = node};
    return true;
}

/* The number of the first node type: HIP 5 counts types from 1 (its hip_runtime_api.h), later ones from 0. An empty
 * node's type shows it in any runtime; -1: not known. */
static int first_type(void)
{
    static int first = -1;
    int type;
    struct graph *graph;
    struct node *node;
    if (first < 0 && REAL(hipGraphCreate)(&graph, 0) == hipSuccess) {
        if (REAL(hipGraphAddEmptyNode)(&node, graph, NULL, 0) == hipSuccess &&
            REAL(hipGraphNodeGetType)(node, &type) == hipSuccess)
            first = type - NODE_EMPTY;
        REAL(hipGraphDestroy)(graph);
    }
    return first;
}

/* The launches of a graph and of those that are nodes of it. */
bool launches_list(struct executable *to, struct graph *graph)
{
    size_t count = 0;
    int first = first_type();
    if (first < 0 || REAL(hipGraphGetNodes)(graph, NULL, &count) != hipSuccess)
        return false;
    struct node **nodes = calloc(count + 1, sizeof *nodes);
    bool good = nodes && REAL(hipGraphGetNodes)(graph, nodes, &count) == hipSuccess;
    for (size_t i = 0; good && i < count; i++) {
        int type;
        struct graph *child;
        good = REAL(hipGraphNodeGetType)(nodes[i], &type) == hipSuccess;
        if (good && type - first == NODE_LAUNCH)
            good = add_launch(to, nodes[i]);
        else if (good && type - first == NODE_GRAPH)
            good = REAL(hipGraphChildGraphNodeGetGraph)(nodes[i], &child) == hipSuccess && launches_list(to, child);
    }
    free(nodes);
    return good;
}

/* Where a launch has a clone, put that into `params`. */
static void find_clone(struct graph_launch *launch, struct launch_params *params)
{
    const char *name = NULL;
    struct image *image = image_of(params->function, &name);
    struct copy *copy = NULL;
    if (image && name) {
        image_lock(image);
        copy = copy_of(image, name, device_of(NULL));
        image_unlock(image);
    }
    launch->copy = copy && copy->clone ? copy : NULL;
    launch->explained = copy && copy->asked.explained && !copy->asked.made.given; /* graphs report no arguments */
    launch->shape = (struct launch_shape){.grid = params->grid, .block = params->block};
    if (launch->copy)
        params->function = launch->copy->clone;
}

/* The kernel that the program sets there, or its clone. */
void launch_set(struct executable *executable, struct graph_launch *launch, struct launch_params params)
{
    find_clone(launch, &params);
    if (REAL(hipGraphExecKernelNodeSetParams)(executable->shadow, launch->node, &params) != hipSuccess)
        launch->copy = NULL;
}

void shadow_drop(struct executable *executable)
{
    if (executable->shadow)
        REAL(hipGraphExecDestroy)(executable->shadow);
    executable->shadow = NULL;
}

/* Its launches are what counts: it is neither uploaded nor launched from the device. */
static hipError_t make_shadow(struct executable *executable, struct graph *graph)
{
    enum { UPLOAD = 2, FROM_DEVICE = 4 };
    unsigned long long flags = executable->flags & ~(unsigned long long)(UPLOAD | FROM_DEVICE);
    return flags ? REAL(hipGraphInstantiateWithFlags)(&executable->shadow, graph, flags)
                             : REAL(hipGraphInstantiate)(&executable->shadow, graph, NULL, NULL, 0);
}

/* The clone instead of the program's kernel in a node, until `clone_restore`. */
bool clone_put(struct graph_launch *launch)
{
    struct launch_params params;
    if (REAL(hipGraphKernelNodeGetParams)(launch->node, &params) != hipSuccess)
        return false;
    launch->original = params.function;
    find_clone(launch, &params);
    if (launch->copy && REAL(hipGraphKernelNodeSetParams)(launch->node, &params) != hipSuccess)
        launch->copy = NULL;
    return launch->copy != NULL;
}

void clone_restore(const struct graph_launch *launch)
{
    struct launch_params params;
    if (!launch->copy || REAL(hipGraphKernelNodeGetParams)(launch->node, &params) != hipSuccess)
        return;
    params.function = launch->original;
    REAL(hipGraphKernelNodeSetParams)(launch->node, &params);
}

/* The graph itself has the clones while the shadow is made of it: nodes of child graphs cannot be changed later. */
void shadow_prepare(struct executable *executable, struct graph *graph)
{
    hipError_t before = REAL(hipPeekAtLastError)();
    shadow_drop(executable);
    executable->count = 0;
    if (!launches_list(executable, graph) || !executable->count || !tool_on())
        return;
    bool any = false;
    for (size_t i = 0; i < executable->count; i++)
        any |= clone_put(&executable->launches[i]);
    if (any && make_shadow(executable, graph) != hipSuccess) {
        executable->shadow = NULL;
        say("luthier: a graph runs as it is: it cannot be instantiated twice");
    }
    for (size_t i = 0; i < executable->count; i++)
        clone_restore(&executable->launches[i]);
    restore_error(before);
}

static void adopt(struct graph *made, struct graph *graph, unsigned long long flags)
{
    struct executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return;
    pthread_mutex_lock(&lock);
    *executable = (struct executable){.next = executables, .graph = made, .flags = flags};
    executables = executable;
    shadow_prepare(executable, graph);
    pthread_mutex_unlock(&lock);
}

hipError_t hipGraphInstantiate(struct graph **executable, struct graph *graph, struct node **bad, char *log, size_t log_bytes)
{
    hipError_t error = REAL(hipGraphInstantiate)(executable, graph, bad, log, log_bytes);
    if (!error)
        adopt(*executable, graph, 0);
    return error;
}

hipError_t hipGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags)
{
    hipError_t error = REAL(hipGraphInstantiateWithFlags)(executable, graph, flags);
    if (!error)
        adopt(*executable, graph, flags);
    return error;
}

hipError_t hipGraphInstantiateWithParams(struct graph **executable, struct graph *graph, struct instantiate_params *params)
{
    hipError_t error = REAL(hipGraphInstantiateWithParams)(executable, graph, params);
    if (!error)
        adopt(*executable, graph, params->flags);
    return error;
}

hipError_t hipGraphExecDestroy(struct graph *graph)
{
    pthread_mutex_lock(&lock);
    for (struct executable **place = &executables, *found; (found = *place); place = &found->next)
        if (found->graph == graph) {
            *place = found->next;
            shadow_drop(found);
            free(found->launches);
            free(found);
            break;
        }
    pthread_mutex_unlock(&lock);
    return REAL(hipGraphExecDestroy)(graph);
}

void graphs_drop(void)
{
    pthread_mutex_lock(&lock);
    for (struct executable *executable = executables; executable; executable = executable->next)
        shadow_drop(executable);
    pthread_mutex_unlock(&lock);
}

/* The first launch of the copy in that one's node, of those that are on. */
static const struct graph_launch *first_of(const struct executable *executable, size_t index)
{
    const struct copy *copy = executable->launches[index].copy;
    for (size_t i = 0; copy && i < executable->count; i++)
        if (executable->launches[i].copy == copy && !executable->launches[i].off)
            return &executable->launches[i];
    return NULL;
}

/* For each copy of a kernel once, however many launches of it there are. */
static bool is_first(const struct executable *executable, size_t index)
{
    return first_of(executable, index) == &executable->launches[index];
}

static bool same(struct dim3 a, struct dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

/* Launches of one copy share its variables, also those that are as large as a launch. */
static bool sizes_agree(const struct executable *executable)
{
    for (size_t i = 0; i < executable->count; i++) {
        const struct graph_launch *launch = &executable->launches[i], *first = first_of(executable, i);
        if (!first || launch->off || !launch->copy->loaded.sized ||
            (same(launch->shape.grid, first->shape.grid) && same(launch->shape.block, first->shape.block)))
            continue;
        say("luthier: a graph runs as it is: it launches kernel %s with grids of several sizes, and the tool has variables that "
            "are as large as a launch", launch->copy->name);
        return false;
    }
    return true;
}

static bool is_first_of_image(const struct executable *executable, size_t index)
{
    const struct copy *copy = executable->launches[index].copy;
    for (size_t i = 0; copy && i < index; i++)
        if (executable->launches[i].copy && executable->launches[i].copy->image == copy->image)
            return false;
    return copy != NULL;
}

/* The number that the worker uses for a copy when the graph is launched whose first launch is `index`: that of the
 * copy's last launch there, so that no two copies share one. */
static unsigned long number_of(const struct executable *executable, const struct copy *copy, unsigned long index)
{
    unsigned long number = index;
    for (size_t i = 0; i < executable->count; i++) {
        const struct graph_launch *launch = &executable->launches[i];
        if (!launch->off && launch->copy == copy)
            number = index;
        index += !launch->off;
    }
    return number;
}

/* False: something is missing. */
static bool prepare_shadow(const struct executable *executable, stream_t stream, unsigned long index)
{
    bool good = sizes_agree(executable);
    for (size_t i = 0; good && i < executable->count; i++) {
        const struct graph_launch *launch = &executable->launches[i];
        if (!is_first(executable, i))
            continue;
        struct told_of begun = launch_told(launch->copy, number_of(executable, launch->copy, index), &launch->shape);
        good = launch_prepare(launch->copy, &begun, stream);
        free(begun.ranges.text);
    }
    return good;
}

static hipError_t launch_shadow(struct executable *executable, stream_t stream, unsigned long index)
{
    hipError_t error = REAL(hipGraphLaunch)(executable->shadow, stream);
    for (size_t i = 0; !error && i < executable->count; i++) {
        const struct graph_launch *launch = &executable->launches[i];
        if (!launch->copy || launch->off)
            continue;
        struct told_of begun = launch_told(launch->copy, number_of(executable, launch->copy, index), &launch->shape);
        copy_note(&launch->copy->loaded, &begun);
    }
    if (error || !settings.per_launch || tool_waits(stream) != hipSuccess)
        return error;
    for (size_t i = 0; i < executable->count; i++)
        if (is_first(executable, i))
            copy_send(&executable->launches[i].copy->loaded, executable->launches[i].copy->memory);
    return hipSuccess;
}

/* False: the graph is to run as it is. */
static bool run_shadow(struct executable *executable, stream_t stream, unsigned long index, hipError_t *error)
{
    told_settle();
    bool prepared = prepare_shadow(executable, stream, index);
    if (prepared)
        *error = launch_shadow(executable, stream, index);
    for (size_t i = 0; i < executable->count; i++)
        if (is_first(executable, i))
            launch_ends(executable->launches[i].copy, stream);
    return prepared;
}

/* True when the shadow was launched, with `error` as the call's result. */
static bool taken(struct graph *graph, stream_t stream, hipError_t *error)
{
    if (capturing(stream))
        return false;
    pthread_mutex_lock(&lock);
    struct executable *executable = graphs_find(graph);
    size_t count = 0;
    for (size_t i = 0; executable && i < executable->count; i++)
        count += !executable->launches[i].off;
    unsigned long index = 0;
    bool take = count && tool_selects(count, &index);
    launch_counts()->selected += take ? count : 0;
    for (size_t i = 0; take && i < executable->count; i++)
        launch_counts()->explained += executable->launches[i].explained && !executable->launches[i].off;
    take = take && executable->shadow;
    for (size_t i = 0; take && i < executable->count; i++)
        if (is_first_of_image(executable, i))
            image_lock(executable->launches[i].copy->image);
    bool launched = take && run_shadow(executable, stream, index, error);
    launch_counts()->failed += launched && *error ? count : 0;
    for (size_t i = 0; take && i < executable->count; i++)
        if (is_first_of_image(executable, i))
            image_unlock(executable->launches[i].copy->image);
    pthread_mutex_unlock(&lock);
    return launched;
}

hipError_t hipGraphLaunch(struct graph *executable, stream_t stream)
{
    hipError_t error;
    return taken(executable, stream, &error) ? error : REAL(hipGraphLaunch)(executable, stream);
}

hipError_t hipGraphLaunch_spt(struct graph *executable, stream_t stream)
{
    stream_t own = stream ? stream : (stream_t)STREAM_PER_THREAD;
    hipError_t error;
    return taken(executable, own, &error) ? error : REAL(hipGraphLaunch_spt)(executable, stream);
}
