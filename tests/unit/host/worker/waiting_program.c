/* CODE: launches a kernel, says so, and waits for a signal; the exit code is 42 for the signal that words[2] names. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **kernel, void *module, const char *name);
int hipMalloc(void **address, size_t bytes);
int hipDeviceSynchronize(void);
int hipModuleLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned lds_bytes, void *stream, void **args, void **extra);

static void take(int number)
{
    (void)number;
    exit(42);
}

int main(int count, char **words)
{
    static char image[1 << 16];
    void *module, *kernel, *buffer, *args[] = {&buffer, &buffer, &buffer};
    FILE *file = count >= 2 ? fopen(words[1], "rb") : NULL;
    if (!file || !fread(image, 1, sizeof image, file) || hipMalloc(&buffer, 4096) || hipModuleLoadData(&module, image) ||
        hipModuleGetFunction(&kernel, module, "vector_add") ||
        hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL) || hipDeviceSynchronize())
        return 1;
    if (count > 2)
        signal(atoi(words[2]), take);
    puts("launched");
    fflush(stdout);
    for (;;)
        pause();
}
