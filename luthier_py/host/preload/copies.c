/* Code objects of the program, and the instrumented copies of their kernels, one for each device that launches them.
 *
 * At a kernel's first launch its code object goes to the tool's worker, which makes a copy of the kernel with the tool in
 * it; that is loaded with the runtime's own loader, as a module of its own. It uses the program's variables where the program
 * has them: a loader keeps all of a code object together, so where one variable is says where everything is. A kernel that
 * uses something of its code object runs as it is where that has variables, none of which can be found.
 */
#include "images.h"

#include <stdlib.h>
#include <string.h>

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

static bool find_initial(const struct copy *copy, const char *variable, void **address)
{
    static const char behind[] = ".initial";
    char *name = malloc(strlen(variable) + sizeof behind);
    size_t bytes;
    if (!name)
        return false;
    strcpy(stpcpy(name, variable), behind);
    bool good = REAL(hipModuleGetGlobal)(address, &bytes, copy->module, name) == hipSuccess;
    free(name);
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
        const struct declared *declared = &clone->variables[i];
        struct tool_variable *variable = &copy->variables[copy->variable_count++];
        variable->role = declared->role;
        copy->begins |= variable->role == CHANNEL || variable->role == PARAMETER;
        copy->sized |= variable->role == SIZED || (variable->role == TABLE && settings.per_launch);
        good = REAL(hipModuleGetGlobal)(&variable->address, &variable->bytes, copy->module, declared->name) == hipSuccess;
        if (good && variable->role == STATE && declared->number)
            good = find_initial(copy, declared->name, &variable->initial);
        if (good && variable->role == CHANNEL) {
            void *head = ring_head(declared, copy->device);
            good = head && tool_copies(variable->address, &head, sizeof head, COPY_TO_DEVICE) == hipSuccess;
        }
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
    copy->original = (struct original){whole ? ORIGINAL_IN_COPY : known ? ORIGINAL_AT_BASE : ORIGINAL_UNUSED, base};
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
    copy->given = clone.given;
    copy->arguments = clone.arguments;
    copy->argument_count = clone.argument_count;
    clone.arguments = NULL;
    if (answer == REFUSED || (answer == CLONED && !make_copy(copy, &clone))) {
        copy->clone = NULL;
        tool_refused();
    }
    copy->code = clone.code;
    clone.code = NULL;
    clone_free(&clone);
}

static struct copy *new_copy(struct image *image, const char *name, int device, bool beside)
{
    struct copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = (struct copy){.next = image->copies, .is_beside = beside, .image = image, .name = strdup(name), .device = device};
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

struct copy *copy_of(struct image *image, const char *name, int device)
{
    struct copy *copy = image->copies;
    while (copy && (copy->is_beside || copy->device != device || strcmp(copy->name, name) != 0))
        copy = copy->next;
    return copy ? copy : new_copy(image, name, device, false);
}

struct copy *copy_free(struct copy *copy, stream_t stream)
{
    while (told_elsewhere(copy, stream)) {
        if (!copy->beside)
            copy->beside = new_copy(copy->image, copy->name, copy->device, true);
        copy = copy->beside;
        if (!copy || !copy->clone)
            return NULL;
    }
    return copy;
}

static void drop(struct copy *copy)
{
    if (copy->module)
        REAL(hipModuleUnload)(copy->module);
    free(copy->code);
    free(copy->variables);
    free(copy->arguments);
    free(copy->unread.ranges.text);
    free(copy->name);
    free(copy);
}

/* Everything that the tool knows of it, told and forgotten. */
void copies_forget(struct image *image)
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
