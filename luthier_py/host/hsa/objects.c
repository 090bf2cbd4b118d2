/* The program's code objects and kernels, from the moment when their executable is frozen and they have addresses.
 *
 * ROCr's loader says of each loaded code object where its bytes are, on which agent it lies and what loading has added to
 * its addresses (hsa_ven_amd_loader); an executable's symbols name its kernels. The bytes are copied: a reader may go.
 */
#include <stdlib.h>
#include <string.h>

#include "hsa_tool.h"

enum { ROWS = 4096 };
static struct kernel *table[ROWS]; /* by the descriptor's address */
static struct image *images;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both */

static struct kernel **row_of(uint64_t object) { return &table[(object >> 6) * 0x9E3779B97F4A7C15u >> 52]; }

struct kernel *kernel_at(uint64_t object)
{
    pthread_mutex_lock(&lock);
    struct kernel *kernel = *row_of(object);
    while (kernel && kernel->object != object)
        kernel = kernel->next;
    pthread_mutex_unlock(&lock);
    return kernel;
}

void kernels_each(void (*action)(struct kernel *kernel))
{
    pthread_mutex_lock(&lock);
    for (struct image *image = images; image; image = image->next)
        for (struct kernel *kernel = image->kernels; kernel; kernel = kernel->next_of_image)
            action(kernel);
    pthread_mutex_unlock(&lock);
}

enum answer image_ask(struct image *image, const char *kernel, struct asked *asked)
{
    pthread_mutex_lock(&image->lock);
    enum answer answer = kernel_ask(&image->object, image->device, kernel, asked);
    pthread_mutex_unlock(&image->lock);
    return answer;
}

static bool info(hsa_loaded_t loaded, uint32_t what, void *value)
{
    return rocr.loader.info(loaded, what, value) == HSA_SUCCESS;
}

static struct image *image_new(hsa_executable_t executable, hsa_loaded_t loaded)
{
    uint32_t kind = 0, storage = 0;
    uint64_t data = 0, bytes = 0;
    struct image found = {.executable = executable};
    bool known = info(loaded, LOADED_KIND, &kind) && kind == LOADED_KIND_AGENT && info(loaded, LOADED_AGENT, &found.agent) &&
                 info(loaded, LOADED_STORAGE, &storage) && storage == LOADED_STORAGE_MEMORY &&
                 info(loaded, LOADED_DATA, &data) && info(loaded, LOADED_BYTES, &bytes) && data && bytes &&
                 info(loaded, LOADED_DELTA, &found.delta) && info(loaded, LOADED_BASE, &found.base) &&
                 info(loaded, LOADED_SIZE, &found.size);
    found.device = known ? agent_number(found.agent) : -1;
    struct image *image = found.device >= 0 ? malloc(sizeof *image) : NULL;
    void *copy = image ? malloc(bytes) : NULL;
    if (!copy) {
        free(image);
        return NULL;
    }
    *image = found;
    image->data = memcpy(copy, (const void *)(uintptr_t)data, bytes);
    image->object = (struct code_object){code_object_number(), copy, bytes, NULL};
    pthread_mutex_init(&image->lock, NULL);
    return image;
}

/* The symbol is the descriptor's: the kernel's name and ".kd". */
static char *kernel_name(hsa_symbol_t symbol)
{
    static const char suffix[] = ".kd";
    uint32_t length = 0;
    if (rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_NAME_LENGTH, &length) != HSA_SUCCESS)
        return NULL;
    char *name = calloc(length + 1u, 1);
    if (name && rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_NAME, name) == HSA_SUCCESS &&
        length >= sizeof suffix && strcmp(name + length - (sizeof suffix - 1), suffix) == 0)
        name[length - (sizeof suffix - 1)] = 0;
    return name;
}

static hsa_status_t note_kernel(hsa_executable_t executable, hsa_agent_t agent, hsa_symbol_t symbol, void *data)
{
    static const char own[] = "__amd_rocclr_";
    struct image *image = data;
    uint32_t type = 0;
    uint64_t object = 0;
    (void)executable, (void)agent;
    if (rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_TYPE, &type) != HSA_SUCCESS ||
        type != HSA_SYMBOL_KIND_KERNEL ||
        rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_KERNEL_OBJECT, &object) != HSA_SUCCESS ||
        object - image->base >= image->size)
        return HSA_SUCCESS;
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel || !(kernel->name = kernel_name(symbol))) {
        free(kernel);
        return HSA_SUCCESS;
    }
    rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_PRIVATE_BYTES, &kernel->private_bytes);
    rocr.hsa_executable_symbol_get_info(symbol, HSA_SYMBOL_INFO_GROUP_BYTES, &kernel->group_bytes);
    kernel->own = strncmp(kernel->name, own, sizeof own - 1) == 0;
    kernel->object = object;
    kernel->image = image;
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->next_of_image = image->kernels;
    image->kernels = kernel;
    return HSA_SUCCESS;
}

static hsa_status_t note_loaded(hsa_executable_t executable, hsa_loaded_t loaded, void *data)
{
    struct image *image = image_new(executable, loaded);
    (void)data;
    if (!image)
        return HSA_SUCCESS;
    rocr.hsa_executable_iterate_agent_symbols(executable, image->agent, note_kernel, image);
    pthread_mutex_lock(&lock);
    image->next = images;
    images = image;
    for (struct kernel *kernel = image->kernels; kernel; kernel = kernel->next_of_image) {
        struct kernel **row = row_of(kernel->object);
        kernel->next = *row;
        *row = kernel;
    }
    pthread_mutex_unlock(&lock);
    return HSA_SUCCESS;
}

static bool loader_known(void)
{
    return rocr.loader.info || (rocr.hsa_system_get_major_extension_table(EXTENSION_AMD_LOADER, 1, sizeof rocr.loader,
                                                                           &rocr.loader) == HSA_SUCCESS && rocr.loader.info);
}

bool objects_note(hsa_executable_t executable)
{
    bool known = loader_known();
    if (known)
        rocr.loader.each(executable, note_loaded, NULL);
    return known;
}

static void leave_table(const struct kernel *kernel)
{
    struct kernel **place = row_of(kernel->object);
    while (*place && *place != kernel)
        place = &(*place)->next;
    if (*place)
        *place = kernel->next;
}

struct image *objects_take(hsa_executable_t executable, bool any)
{
    pthread_mutex_lock(&lock);
    struct image **place = &images;
    while (*place && !any && (*place)->executable.handle != executable.handle)
        place = &(*place)->next;
    struct image *image = *place;
    if (image)
        *place = image->next;
    for (struct kernel *kernel = image ? image->kernels : NULL; kernel; kernel = kernel->next_of_image)
        leave_table(kernel);
    pthread_mutex_unlock(&lock);
    return image;
}

struct kernel *image_take_kernel(struct image *image)
{
    struct kernel *kernel = image->kernels;
    if (kernel)
        image->kernels = kernel->next_of_image;
    return kernel;
}

void image_free(struct image *image)
{
    code_object_forget(&image->object);
    free(image->data);
    free(image);
}
