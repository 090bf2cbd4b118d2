/* The HIP runtime's own functions, wherever it is: what the program calls may be ours. */
#include "preloaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static void *_Atomic runtime; /* of dlopen, where the program itself is not linked to it */
static const struct own_function *_Atomic known; /* the runtime's; NULL: names lead to it */
static size_t known_count;

/* The C library's. Looked up by the first call, which may come from another library's constructor, before ours ran. */
dlsym_function *next_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    static _Atomic(dlsym_function *) found;
    for (int i = 0; !found && i < 3; i++)
        found = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!found) {
        say("luthier: this C library has no dlsym that can be interposed; unset LD_PRELOAD");
        abort();
    }
    return found;
}

static int find_runtime(struct dl_phdr_info *object, size_t size, void *found)
{
    static const char name[] = "libamdhip64.so";
    const char *path = object->dlpi_name ? object->dlpi_name : "", *file = strrchr(path, '/');
    (void)size;
    if (strncmp(file ? file + 1 : path, name, sizeof name - 1) != 0)
        return 0;
    *(char **)found = strdup(path);
    return 1;
}

void *loaded_runtime(void)
{
    char *path = NULL;
    dl_iterate_phdr(find_runtime, &path);
    void *handle = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    free(path);
    return handle;
}

void use_runtime(void *handle) { runtime = handle; }
void *used_runtime(void) { return runtime; }

void use_functions(const struct own_function *functions, size_t count)
{
    known_count = count;
    known = functions;
}

static void *redirected(const char *name)
{
    for (size_t i = 0; known && i < known_count; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].function;
    return NULL;
}

void *real_function(const char *name)
{
    void *function = redirected(name);
    if (!function && runtime)
        function = next_dlsym()(runtime, name);
    if (!function)
        function = next_dlsym()(RTLD_NEXT, name);
    if (!function && !runtime && (runtime = loaded_runtime())) /* by dlopen of a library that needs it, for it alone */
        function = next_dlsym()(runtime, name);
    return function;
}

void *required_function(const char *name)
{
    void *function = real_function(name);
    if (!function) {
        say("luthier: the HIP runtime has no %s; unset LD_PRELOAD", name);
        abort();
    }
    return function;
}

void restore_error(hipError_t before)
{
    if (before == hipSuccess)
        REAL(hipGetLastError)();
}
