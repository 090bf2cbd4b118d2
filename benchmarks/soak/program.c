/* A HIP program that goes on for long: FILE LOADS LAUNCHES STEPS.
 *
 * It loads the code object of vector_add LOADS times, with a launch of each, then launches one kernel LAUNCHES times, and
 * checks what was computed. STEPS times in each of the two parts it writes "loads N" or "launches N" to stdout and waits
 * for a byte on stdin, so that whoever measures finds it between two calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module *module_t;
typedef struct kernel *kernel_t;
int hipModuleLoadData(module_t *module, const void *image);
int hipModuleUnload(module_t module);
int hipModuleGetFunction(kernel_t *kernel, module_t module, const char *name);
int hipModuleLaunchKernel(kernel_t kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned lds_bytes, void *stream, void **args, void **extra);
int hipMalloc(void **address, size_t bytes);
int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
int hipDeviceSynchronize(void);

enum { ITEMS = 64, TO_DEVICE = 1, TO_HOST = 2 };

static void must(int error, const char *what)
{
    if (error)
        fprintf(stderr, "%s gave %d\n", what, error), exit(1);
}

#define MUST(call) must(call, #call)

static float *buffers[3];

static void launch(kernel_t kernel)
{
    void *args[] = {&buffers[0], &buffers[1], &buffers[2]};
    MUST(hipModuleLaunchKernel(kernel, 1, 1, 1, ITEMS, 1, 1, 0, NULL, args, NULL));
}

static kernel_t load(module_t *module, const char *image)
{
    kernel_t kernel;
    MUST(hipModuleLoadData(module, image));
    MUST(hipModuleGetFunction(&kernel, *module, "vector_add"));
    return kernel;
}

static void step(const char *what, long done, long of, long steps)
{
    if (done % (of / steps ? of / steps : 1) && done != of)
        return;
    MUST(hipDeviceSynchronize());
    printf("%s %ld\n", what, done);
    fflush(stdout);
    if (getchar() == EOF)
        exit(1);
}

int main(int count, char **words)
{
    FILE *file = fopen(count == 5 ? words[1] : "", "rb");
    if (!file)
        return fprintf(stderr, "usage: program FILE LOADS LAUNCHES STEPS\n"), 2;
    static char image[1 << 16];
    if (fread(image, 1, sizeof image, file) == sizeof image)
        return fprintf(stderr, "%s is too large\n", words[1]), 2;
    long loads = atol(words[2]), launches = atol(words[3]), steps = atol(words[4]);
    float a[ITEMS], c[ITEMS];
    module_t module;
    for (int i = 0; i < 3; i++)
        MUST(hipMalloc((void **)&buffers[i], sizeof a));
    for (int i = 0; i < ITEMS; i++)
        a[i] = (float)i;
    for (int i = 0; i < 2; i++)
        MUST(hipMemcpy(buffers[i], a, sizeof a, TO_DEVICE));
    for (long i = 1; i <= loads; i++) {
        launch(load(&module, image));
        MUST(hipModuleUnload(module));
        step("loads", i, loads, steps);
    }
    kernel_t kernel = load(&module, image);
    for (long i = 1; i <= launches; i++) {
        launch(kernel);
        step("launches", i, launches, steps);
    }
    MUST(hipMemcpy(c, buffers[2], sizeof c, TO_HOST));
    for (int i = 0; i < ITEMS; i++)
        if (c[i] != 2 * a[i])
            return fprintf(stderr, "element %d is %g\n", i, c[i]), 1;
    MUST(hipModuleUnload(module));
    return 0;
}
