/* Code objects of the program, and the instrumented copies of their kernels, one for each device that launches them.
 *
 * At a kernel's first launch its code object is sent to the tool's worker, which makes a copy of the kernel with the
 * tool in it; the runtime's own loader loads that as a separate module. The copy uses the program's variables where the
 * program has them: a loader places a code object contiguously, so one variable's address gives all others. A kernel
 * that uses part of its code object runs as it is where that has variables, none of which can be found.
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

/* Managed variables are pointers, which do not change: where nothing else is known, the copy has separate ones. */
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

static bool load(struct copy *copy)
{
    const struct clone *made = &copy->asked.made;
    return REAL(hipModuleLoadData)(&copy->module, made->code) == hipSuccess &&
           REAL(hipModuleGetFunction)(&copy->clone, copy->module, made->name) == hipSuccess && copy_open(&copy->loaded, made);
}

/* A clone that needs the original object finds it, or comes with all of it. */
static bool make_copy(struct copy *copy)
{
    struct clone *made = &copy->asked.made;
    uint64_t base = 0;
    bool known = false, needs = made->binding_count != 0;
    if (needs && !find_original(copy, made, &base, &known))
        return false;
    bool whole = needs && !known;
    copy->loaded.original = (struct original){whole ? ORIGINAL_IN_COPY : known ? ORIGINAL_AT_BASE : ORIGINAL_UNUSED, base};
    if (whole) {
        clone_free(made);
        if (clone_ask(copy->image->object.number, copy->loaded.device, copy->name, whole, made) != CLONED)
            return false; /* the worker has said why */
    }
    bool good = (!known || clone_bind(made, base)) && load(copy) && (!whole || copy_pointers(copy, made));
    if (!good)
        say("luthier: kernel %s runs as it is: the runtime does not load its instrumented copy", copy->name);
    return good;
}

static void instrument(struct copy *copy)
{
    enum answer answer = kernel_ask(&copy->image->object, copy->loaded.device, copy->name, &copy->asked);
    if (answer == REFUSED || (answer == CLONED && !make_copy(copy))) {
        copy->clone = NULL;
        tool_refused();
    }
}

static struct copy *new_copy(struct image *image, const char *name, int device, bool beside)
{
    struct copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = (struct copy){.next = image->copies, .is_beside = beside, .image = image, .name = strdup(name)};
    copy->loaded = (struct loaded){.kernel = copy->name, .image = image->object.number, .device = device};
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
    while (copy && (copy->is_beside || copy->loaded.device != device || strcmp(copy->name, name) != 0))
        copy = copy->next;
    return copy ? copy : new_copy(image, name, device, false);
}

struct copy *copy_free(struct copy *copy, stream_t stream)
{
    while (told_elsewhere(copy, stream)) {
        if (!copy->beside)
            copy->beside = new_copy(copy->image, copy->name, copy->loaded.device, true);
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
    copy_close(&copy->loaded);
    clone_free(&copy->asked.made);
    free(copy->name);
    free(copy);
}

/* Report and delete all the tool's data about it. */
void copies_forget(struct image *image)
{
    for (struct copy *copy; (copy = image->copies);) {
        image->copies = copy->next;
        drop(copy);
    }
    code_object_forget(&image->object);
}
