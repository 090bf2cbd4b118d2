/* A tool under a program: at a kernel's first launch its code object goes to the worker, which puts the tool in; the
 * copy is loaded with the runtime's own loader, and its clone is launched in the kernel's place.
 *
 * Whatever fails here, the original runs and one line says so. Results are read after each launch, on its stream.
 *
 * The copy has variables of its own. The program's are copied into them before a launch, and back after it; a kernel
 * whose code object has a variable that cannot be found in the program runs as it is.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tool_variable { char *name; void *address; size_t bytes; };

/* A variable of the program: where it is, and where the copy has it. `managed`: `here` is a pointer on the host. */
struct shared { void *here, *there; size_t bytes; bool managed; };
struct symbol { struct symbol *next; char *name; void *address; bool managed; };

/* A kernel of an image, once it was launched; `clone` is NULL where the original is to run. */
struct patched {
    struct patched *next;
    char *name;
    struct module *module;
    struct kernel *clone;
    struct tool_variable *variables;
    uint32_t variable_count;
    struct shared *shared;
    uint32_t shared_count;
};

struct image {
    uint32_t id;
    void *data;
    size_t bytes;
    bool sent;
    struct module *module; /* where the program loaded it as one */
    struct symbol *symbols;
    struct patched *kernels;
    pthread_mutex_t lock; /* one launch at a time: variables are of one launch */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wire wire = {.fd = -1};
static enum { COLD, READY, BROKEN } state;
static uint32_t next_image = 1;
static bool used; /* something was launched */
static atomic_ulong launches;
static atomic_bool active = true;
static unsigned long first_launch, last_launch = -1ul;

static unsigned long number(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

static void finish(void)
{
    struct reply reply;
    uint64_t seen = launches;
    pthread_mutex_lock(&lock);
    if (state == READY && wire_call(&wire, MESSAGE_FINISH, &(struct part){&seen, sizeof seen}, 1, &reply))
        free(reply.data);
    state = BROKEN;
    pthread_mutex_unlock(&lock);
}

static void after_fork(void)
{
    wire_close(&wire);
    if (state == READY)
        state = used ? BROKEN : COLD; /* nor can the child use a GPU that its parent has used */
    pthread_mutex_init(&lock, NULL);
}

void tool_active(bool now) { active = now; }

__attribute__((constructor)) static void read_settings(void)
{
    first_launch = number("START_GRID_NUM", 0);
    last_launch = number("END_GRID_NUM", -1ul);
    active = number("ACTIVE_FROM_START", 1) != 0;
#ifdef LUTHIER_TOOL
    setenv("LUTHIER_TOOL", LUTHIER_TOOL, 0);
    setenv("LUTHIER_TOOL_OPTIONS", LUTHIER_TOOL_OPTIONS, 0);
#endif
}

static bool ready(void)
{
    static bool registered;
    if (state == COLD) {
        state = wire_start(&wire, "tool", -1) ? READY : BROKEN;
        if (!registered) {
            atexit(finish);
            pthread_atfork(NULL, NULL, after_fork);
        }
        registered = true;
    }
    return state == READY;
}

void tool_prepare(void)
{
    pthread_mutex_lock(&lock);
    ready();
    pthread_mutex_unlock(&lock);
}

struct image *image_new(const void *data, size_t bytes)
{
    struct image *image = calloc(1, sizeof *image);
    bytes = bytes ? bytes : data ? image_bytes(data) : 0;
    if (!image || !bytes || !(image->data = malloc(bytes))) {
        free(image);
        return NULL;
    }
    memcpy(image->data, data, bytes);
    image->bytes = bytes;
    pthread_mutex_init(&image->lock, NULL);
    pthread_mutex_lock(&lock);
    image->id = next_image++;
    pthread_mutex_unlock(&lock);
    return image;
}

void image_loaded(struct image *image, struct module *module)
{
    if (image)
        image->module = module;
}

void image_variable(struct image *image, const char *name, void *address, bool managed)
{
    struct symbol *symbol = image ? malloc(sizeof *symbol) : NULL;
    if (!symbol)
        return;
    pthread_mutex_lock(&lock);
    *symbol = (struct symbol){image->symbols, strdup(name), address, managed};
    image->symbols = symbol;
    pthread_mutex_unlock(&lock);
}

static bool find_here(const struct image *image, const char *name, struct shared *shared)
{
    size_t bytes;
    if (image->module)
        return REAL(hipModuleGetGlobal)(&shared->here, &bytes, image->module, name) == hipSuccess;
    for (const struct symbol *symbol = image->symbols; symbol; symbol = symbol->next)
        if (strcmp(symbol->name, name) == 0) {
            shared->managed = symbol->managed;
            shared->here = symbol->address;
            return symbol->managed || REAL(hipGetSymbolAddress)(&shared->here, symbol->address) == hipSuccess;
        }
    return false;
}

/* The program's variables, from the reply: name, and whether it can change. */
static bool share(const struct image *image, struct patched *kernel, struct cursor *cursor)
{
    uint32_t count = take32(cursor);
    kernel->shared = calloc(count + 1u, sizeof *kernel->shared);
    for (uint32_t i = 0; kernel->shared && i < count; i++) {
        struct shared *shared = &kernel->shared[kernel->shared_count];
        uint32_t bytes = take32(cursor);
        const char *text = take(cursor, bytes);
        bool changes = take32(cursor) != 0;
        char *name = text ? strndup(text, bytes) : NULL;
        bool here = name && find_here(image, name, shared);
        bool there = here && REAL(hipModuleGetGlobal)(&shared->there, &shared->bytes, kernel->module, name) == hipSuccess;
        kernel->shared_count += there;
        if (!there && (changes || !name))
            say("luthier: kernel %s runs as it is: its code object has variable %s, which the program does not share",
                kernel->name, name ? name : "?");
        free(name);
        if (!there && changes)
            return false;
    }
    return kernel->shared && !cursor->bad;
}

static hipError_t copy_shared(const struct patched *kernel, bool back, stream_t stream)
{
    enum { DEFAULT = 4 };
    hipError_t error = hipSuccess;
    for (uint32_t i = 0; !error && i < kernel->shared_count; i++) {
        const struct shared *s = &kernel->shared[i];
        if (!back)
            error = REAL(hipMemcpyAsync)(s->there, s->here, s->bytes, DEFAULT, stream);
        else if (!s->managed)
            error = REAL(hipMemcpyAsync)(s->here, s->there, s->bytes, DEFAULT, stream);
    }
    return error;
}

void image_unloaded(struct image *image)
{
    pthread_mutex_lock(&lock);
    for (struct patched *kernel = image->kernels; kernel; kernel = kernel->next) {
        if (kernel->module)
            REAL(hipModuleUnload)(kernel->module);
        kernel->module = NULL;
        kernel->clone = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* The worker chooses the code object for the device from its properties, in the form that this runtime has. */
static bool send_image(struct image *image)
{
    char properties[PROPERTIES_BYTES] = {0};
    int device = 0;
    REAL(hipGetDevice)(&device);
    bool newer = real_function("hipGetDevicePropertiesR0600") != NULL;
    hipError_t error = newer ? REAL(hipGetDevicePropertiesR0600)(properties, device)
                             : REAL(hipGetDeviceProperties)(properties, device);
    uint32_t head[2] = {image->id, newer};
    struct part parts[] = {{head, sizeof head}, {properties, sizeof properties}, {image->data, image->bytes}};
    struct reply reply;
    if (error || !wire_call(&wire, MESSAGE_IMAGE, parts, 3, &reply))
        return false;
    free(reply.data);
    return reply.status == 0; /* if not, the worker has said why */
}

/* The original runs from here on, unless LUTHIER_STRICT says that this is an error. */
static void give_up(void)
{
    state = BROKEN;
    if (!number("LUTHIER_STRICT", 0))
        return;
    say("luthier: stopped, since LUTHIER_STRICT is set");
    _exit(1);
}

/* clone's name, code object; name of each variable of the tool; then the program's variables. */
static bool read_clone(const struct image *image, const struct reply *reply, struct patched *kernel)
{
    struct cursor cursor = {reply->data, reply->data + reply->bytes, false};
    uint32_t bytes = take32(&cursor);
    const char *clone_text = take(&cursor, bytes);
    char *clone = clone_text ? strndup(clone_text, bytes) : NULL;
    uint32_t code_bytes = take32(&cursor);
    const char *code_text = take(&cursor, code_bytes);
    uint32_t count = take32(&cursor);
    void *code = code_text ? malloc(code_bytes) : NULL; /* aligned, as a loader may expect */
    bool good = clone && code && (kernel->variables = calloc(count + 1u, sizeof *kernel->variables));
    if (good) {
        memcpy(code, code_text, code_bytes);
        good = REAL(hipModuleLoadData)(&kernel->module, code) == hipSuccess &&
               REAL(hipModuleGetFunction)(&kernel->clone, kernel->module, clone) == hipSuccess;
    }
    for (uint32_t i = 0; good && i < count; i++) {
        struct tool_variable *variable = &kernel->variables[kernel->variable_count++];
        bytes = take32(&cursor);
        const char *name = take(&cursor, bytes);
        variable->name = name ? strndup(name, bytes) : NULL;
        good = variable->name && REAL(hipModuleGetGlobal)(&variable->address, &variable->bytes, kernel->module,
                                                          variable->name) == hipSuccess;
    }
    free(clone);
    free(code);
    if (!good)
        say("luthier: kernel %s runs as it is: the runtime does not load its instrumented copy", kernel->name);
    return good && share(image, kernel, &cursor);
}

static void instrument(struct image *image, struct patched *kernel)
{
    struct part parts[] = {{&image->id, sizeof image->id}, {kernel->name, strlen(kernel->name)}};
    struct reply reply = {-1, 0, NULL};
    if (!image->sent)
        image->sent = send_image(image);
    if (image->sent && wire_call(&wire, MESSAGE_INSTRUMENT, parts, 2, &reply) && reply.status == 0 && reply.bytes &&
        !read_clone(image, &reply, kernel)) {
        kernel->clone = NULL;
        reply.status = -1;
    }
    free(reply.data);
    if (wire_gone(&wire))
        say("luthier: the tool's worker has ended; kernels run as they are");
    if (wire_gone(&wire) || (reply.status && number("LUTHIER_STRICT", 0)))
        give_up();
}

static struct patched *find(struct image *image, const char *name)
{
    struct patched *kernel = image->kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (kernel || !(kernel = calloc(1, sizeof *kernel)))
        return kernel;
    kernel->name = strdup(name);
    kernel->next = image->kernels;
    image->kernels = kernel;
    instrument(image, kernel);
    return kernel;
}

static bool capturing(stream_t stream)
{
    int status = 0;
    return stream && REAL(hipStreamIsCapturing)(stream, &status) == hipSuccess && status != 0;
}

static hipError_t launch_clone(const struct patched *kernel, const struct shape *s)
{
    if (s->cooperative)
        return REAL(hipModuleLaunchCooperativeKernel)(kernel->clone, s->grid.x, s->grid.y, s->grid.z, s->block.x, s->block.y,
                                                      s->block.z, s->lds_bytes, s->stream, s->args);
    return REAL(hipModuleLaunchKernel)(kernel->clone, s->grid.x, s->grid.y, s->grid.z, s->block.x, s->block.y, s->block.z,
                                       s->lds_bytes, s->stream, s->args, s->extra);
}

static void send_result(const struct image *image, const struct patched *kernel, const struct shape *s, unsigned long index)
{
    size_t bytes = 0, at = 0;
    for (uint32_t i = 0; i < kernel->variable_count; i++)
        bytes += kernel->variables[i].bytes;
    char *values = malloc(bytes + 1);
    hipError_t error = values ? REAL(hipStreamSynchronize)(s->stream) : hipErrorOutOfMemory;
    for (uint32_t i = 0; !error && i < kernel->variable_count; at += kernel->variables[i++].bytes)
        error = REAL(hipMemcpy)(values + at, kernel->variables[i].address, kernel->variables[i].bytes, 2);
    uint32_t head[] = {image->id,   (uint32_t)index, s->grid.x, s->grid.y, s->grid.z,
                       s->block.x, s->block.y, s->block.z, (uint32_t)strlen(kernel->name)};
    struct part parts[] = {{head, sizeof head}, {kernel->name, strlen(kernel->name)}, {values, bytes}};
    if (!error)
        wire_send(&wire, MESSAGE_RESULT, parts, 3);
    free(values);
}

bool tool_launch(struct image *image, const char *name, const struct shape *shape, hipError_t *error)
{
    unsigned long index = launches++;
    if (!image || !active || index < first_launch || index > last_launch || capturing(shape->stream))
        return false;
    pthread_mutex_lock(&lock);
    used = true;
    struct patched *kernel = ready() ? find(image, name) : NULL;
    pthread_mutex_unlock(&lock);
    if (!kernel || !kernel->clone)
        return false;
    pthread_mutex_lock(&image->lock);
    hipError_t failed = copy_shared(kernel, false, shape->stream);
    for (uint32_t i = 0; !failed && i < kernel->variable_count; i++)
        failed = REAL(hipMemsetAsync)(kernel->variables[i].address, 0, kernel->variables[i].bytes, shape->stream);
    if (!failed) {
        *error = launch_clone(kernel, shape);
        if (*error == hipSuccess)
            *error = copy_shared(kernel, true, shape->stream);
        if (*error == hipSuccess)
            send_result(image, kernel, shape, index);
    }
    pthread_mutex_unlock(&image->lock);
    return !failed;
}
