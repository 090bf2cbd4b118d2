/* Code objects of the program, and the instrumented copies of their kernels, one for each device that launches them.
 *
 * At a kernel's first launch its code object goes to the tool's worker, which makes a copy of the kernel with the tool in
 * it; that is loaded with the runtime's own loader, as a module of its own. It uses the program's variables where the program
 * has them: a loader keeps all of a code object together, so where one variable is says where everything is. A kernel that
 * uses something of its code object runs as it is where that has variables, none of which can be found.
 */
#include "preloaded.h"

#include <stdlib.h>
#include <string.h>

struct symbol { struct symbol *next; char *name; void *address; bool managed; };
struct told { struct told *next; int device; bool good; }; /* the worker has it for this device, or refuses it */

struct image {
    struct image *next, *next_spare;
    uint32_t number;
    const void *data;
    size_t bytes;
    void *own; /* the data, if they are a copy */
    struct told *told;
    struct module *module; /* where the program loaded it as one */
    struct symbol *symbols;
    struct copy *copies;
    pthread_mutex_t lock; /* one launch at a time: the tool's variables are of one launch */
};

static struct image *images; /* none ever leaves this list, so that it can be walked without a lock */
static struct image *spare;  /* those whose module was unloaded: for the next ones */
static uint32_t last_number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of symbols */

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

void image_lock(struct image *image) { pthread_mutex_lock(&image->lock); }
void image_unlock(struct image *image) { pthread_mutex_unlock(&image->lock); }
bool image_module(const struct image *image) { return image && image->module; }
uint32_t image_number(const struct image *image) { return image->number; }

static struct image *take_spare(void)
{
    pthread_mutex_lock(&lock);
    struct image *image = spare;
    if (image)
        spare = image->next_spare;
    else if ((image = calloc(1, sizeof *image))) {
        pthread_mutex_init(&image->lock, NULL);
        image->next = images;
        images = image;
    }
    if (image)
        image->number = ++last_number;
    pthread_mutex_unlock(&lock);
    return image;
}

struct image *image_new(const void *data, size_t bytes, bool lasting)
{
    bytes = bytes ? bytes : data ? image_bytes(data) : 0;
    void *own = bytes && !lasting ? malloc(bytes) : NULL;
    struct image *image = bytes && (lasting || own) ? take_spare() : NULL;
    if (!image) {
        free(own);
        return NULL;
    }
    image_lock(image);
    image->data = lasting ? data : memcpy(own, data, bytes);
    image->own = own;
    image->bytes = bytes;
    image_unlock(image);
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

enum found { UNKNOWN, DEVICE, MANAGED };

/* A runtime that knows the managed variables of a module names their memory, and not the pointers to it. */
static enum found find_in_module(const struct image *image, const char *name, void **here)
{
    struct pointer_attributes attributes = {0};
    size_t bytes;
    if (REAL(hipModuleGetGlobal)(here, &bytes, image->module, name) != hipSuccess)
        return UNKNOWN;
    bool known = REAL(hipPointerGetAttributes)(&attributes, *here) == hipSuccess;
    return known && attributes.managed ? MANAGED : DEVICE;
}

/* MANAGED: `*here` is its memory. */
static enum found find_here(const struct image *image, const char *name, void **here)
{
    if (image->module)
        return find_in_module(image, name, here);
    for (const struct symbol *symbol = image->symbols; symbol; symbol = symbol->next)
        if (strcmp(symbol->name, name) == 0) {
            if (symbol->managed)
                memcpy(here, symbol->address, sizeof *here);
            return symbol->managed                                                    ? MANAGED
                   : REAL(hipGetSymbolAddress)(here, symbol->address) == hipSuccess ? DEVICE
                                                                                      : UNKNOWN;
        }
    return UNKNOWN;
}

/* Where the original object is, in `*base`; false where the copy must not run, and says why. */
static bool find_original(const struct copy *copy, const struct clone *clone, uint64_t *base, bool *known)
{
    bool good = true, hidden = false;
    for (uint32_t i = 0; good && i < clone->program_count; i++) {
        const struct program_variable *variable = &clone->program[i];
        void *here = NULL;
        enum found found = find_here(copy->image, variable->name, &here);
        uint64_t start = (uint64_t)(uintptr_t)here - variable->where;
        hidden |= found == UNKNOWN && variable->changes;
        good = !(found == DEVICE && *known && *base != start);
        if (found == DEVICE) {
            *known = true;
            *base = start;
        }
    }
    if (!good || (hidden && !*known))
        say("luthier: kernel %s runs as it is: the variables of its code object cannot be found in the program",
            copy->name);
    return good && (*known || !hidden);
}

/* Managed variables are pointers, which do not change: where nothing else is known, the copy has its own. */
static bool copy_pointers(const struct copy *copy, const struct clone *clone)
{
    bool good = true;
    for (uint32_t i = 0; good && i < clone->program_count; i++) {
        const char *name = clone->program[i].name;
        void *here, *there;
        size_t bytes;
        if (find_here(copy->image, name, &here) == MANAGED)
            good = REAL(hipModuleGetGlobal)(&there, &bytes, copy->module, name) == hipSuccess &&
                   tool_copies(there, &here, sizeof here, COPY_DEFAULT) == hipSuccess;
    }
    return good;
}

/* The worker chooses the code object for the device from its properties, in the form that this runtime has. */
static bool send_image(struct image *image, int device)
{
    struct told *told = image->told;
    while (told && told->device != device)
        told = told->next;
    if (told || !(told = calloc(1, sizeof *told)))
        return told && told->good;
    *told = (struct told){image->told, device, false};
    image->told = told;
    char properties[PROPERTIES_BYTES] = {0};
    bool newer = real_function("hipGetDevicePropertiesR0600") != NULL;
    hipError_t error = newer ? REAL(hipGetDevicePropertiesR0600)(properties, device)
                             : REAL(hipGetDeviceProperties)(properties, device);
    uint32_t form = newer ? FORM_R0600 : FORM_R0000;
    told->good = !error && image->data &&
                 clone_image(image->number, device, form, properties, image->data, image->bytes);
    return told->good;
}

static bool load(struct copy *copy, const struct clone *clone)
{
    bool good = REAL(hipModuleLoadData)(&copy->module, clone->code) == hipSuccess &&
                REAL(hipModuleGetFunction)(&copy->clone, copy->module, clone->name) == hipSuccess &&
                (copy->variables = calloc(clone->variable_count + 1u, sizeof *copy->variables));
    for (uint32_t i = 0; good && i < clone->variable_count; i++) {
        struct tool_variable *variable = &copy->variables[copy->variable_count++];
        good = REAL(hipModuleGetGlobal)(&variable->address, &variable->bytes, copy->module, clone->variables[i]) == hipSuccess;
    }
    return good;
}

static enum answer ask(const struct copy *copy, bool whole, struct clone *clone)
{
    return clone_ask(copy->image->number, copy->device, copy->name, whole, clone);
}

/* A clone that needs the original object finds it, or comes with all of it. */
static bool make_copy(struct copy *copy, struct clone *clone)
{
    uint64_t base = 0;
    bool known = false, needs = clone->binding_count != 0;
    if (needs && !find_original(copy, clone, &base, &known))
        return false;
    bool whole = needs && !known;
    if (whole) {
        clone_free(clone);
        if (ask(copy, whole, clone) != CLONED)
            return false; /* the worker has said why */
    }
    bool good = (!known || clone_bind(clone, base)) && load(copy, clone) && (!whole || copy_pointers(copy, clone));
    if (!good)
        say("luthier: kernel %s runs as it is: the runtime does not load its instrumented copy", copy->name);
    return good;
}

static void instrument(struct copy *copy)
{
    struct clone clone = {0};
    enum answer answer = REFUSED;
    copy->selected = copy->explained = true;
    if (!send_image(copy->image, copy->device))
        copy->explained = false;
    else
        answer = ask(copy, false, &clone);
    copy->selected = answer != NOT_CHOSEN;
    copy->explained &= answer != CLONED;
    if (answer == REFUSED || (answer == CLONED && !make_copy(copy, &clone))) {
        copy->clone = NULL;
        tool_refused();
    }
    clone_free(&clone);
}

struct copy *copy_of(struct image *image, const char *name, int device)
{
    struct copy *copy = image->copies;
    while (copy && (copy->device != device || strcmp(copy->name, name) != 0))
        copy = copy->next;
    if (copy || !(copy = calloc(1, sizeof *copy)))
        return copy;
    *copy = (struct copy){.next = image->copies, .image = image, .name = strdup(name), .device = device};
    image->copies = copy;
    hipError_t before = REAL(hipPeekAtLastError)();
    int current = device;
    REAL(hipGetDevice)(&current);
    if (current != device)
        REAL(hipSetDevice)(device);
    instrument(copy);
    restore_error(before);
    if (current != device)
        REAL(hipSetDevice)(current);
    return copy;
}

static void drop(struct copy *copy)
{
    if (copy->module)
        REAL(hipModuleUnload)(copy->module);
    free(copy->variables);
    free(copy->name);
    free(copy);
}

/* With the image locked: everything that the tool knows of it, told and forgotten. */
static void forget(struct image *image)
{
    for (struct copy *copy; (copy = image->copies);) {
        image->copies = copy->next;
        drop(copy);
    }
    for (struct told *told; (told = image->told);) {
        image->told = told->next;
        free(told);
    }
}

void image_unloaded(struct image *image)
{
    image_lock(image);
    for (struct copy *copy = image->copies; copy; copy = copy->next)
        send_results(copy);
    if (image->told)
        tool_forget(image->number);
    forget(image);
    free(image->own);
    image->data = image->own = NULL;
    image->module = NULL;
    image_unlock(image);
    pthread_mutex_lock(&lock);
    image->next_spare = spare;
    spare = image;
    pthread_mutex_unlock(&lock);
}

static struct image *first_image(void)
{
    pthread_mutex_lock(&lock);
    struct image *first = images;
    pthread_mutex_unlock(&lock);
    return first;
}

void copies_collect(void)
{
    for (struct image *image = first_image(); image; image = image->next) {
        image_lock(image);
        for (struct copy *copy = image->copies; copy; copy = copy->next)
            send_results(copy);
        image_unlock(image);
    }
}

/* Everything on the device goes, and so do copies; they are made again when they are needed. */
hipError_t hipDeviceReset(void)
{
    copies_collect();
    graphs_drop();
    copies_drop();
    return REAL(hipDeviceReset)();
}

void copies_drop(void)
{
    for (struct image *image = first_image(); image; image = image->next) {
        image_lock(image);
        if (image->copies)
            REAL(hipDeviceSynchronize)();
        forget(image);
        image_unlock(image);
    }
}
