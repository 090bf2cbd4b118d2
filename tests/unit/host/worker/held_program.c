/* CODE STREAMS: on each stream a host function that waits until all is launched, and a kernel behind it; the default stream
 * waits for none. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **kernel, void *module, const char *name);
int hipMalloc(void **address, size_t bytes);
int hipDeviceSynchronize(void);
int hipStreamCreateWithFlags(void **stream, unsigned flags);
int hipLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int hipModuleLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned lds_bytes, void *stream, void **args, void **extra);

enum { NON_BLOCKING = 1 };
static atomic_int go;

static void wait(void *unused)
{
    (void)unused;
    while (!go)
        continue;
}

int main(int count, char **words)
{
    static char image[1 << 16];
    void *module, *kernel, *buffer, *args[] = {&buffer, &buffer, &buffer}, *stream;
    FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
    if (!file || !fread(image, 1, sizeof image, file) || hipMalloc(&buffer, 4096) || hipModuleLoadData(&module, image) ||
        hipModuleGetFunction(&kernel, module, "vector_add"))
        return 1;
    for (int i = 0; i < atoi(words[2]); i++)
        if (hipStreamCreateWithFlags(&stream, NON_BLOCKING) || hipLaunchHostFunc(stream, wait, NULL) ||
            hipModuleLaunchKernel(kernel, (unsigned)i + 1, 1, 1, 64, 1, 1, 0, stream, args, NULL))
            return 2;
    go = 1;
    printf("%d\n", hipDeviceSynchronize());
    return 0;
}
