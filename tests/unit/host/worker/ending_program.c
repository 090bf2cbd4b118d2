/* CODE HOW: queues launches, and ends as HOW says: exit, quick, _exit, exec or signal. `closed` closes all its files and goes
 * on until that fails, `cleared` its environment before it comes to HIP; both say what HIP's last answer was. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **kernel, void *module, const char *name);
int hipMalloc(void **address, size_t bytes);
int hipDeviceSynchronize(void);
int hipModuleLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned lds_bytes, void *stream, void **args, void **extra);

enum { LAUNCHES = 20, MOST_FILES = 1024 };

int main(int count, char **words)
{
    static char image[1 << 16];
    void *module, *kernel, *buffer, *args[] = {&buffer, &buffer, &buffer};
    FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
    const char *how = file ? words[2] : "";
    if (strcmp(how, "cleared") == 0)
        clearenv();
    if (!file || !fread(image, 1, sizeof image, file) || hipMalloc(&buffer, 4096) || hipModuleLoadData(&module, image) ||
        hipModuleGetFunction(&kernel, module, "vector_add"))
        return 1;
    for (int i = 0; i < LAUNCHES; i++)
        if (hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL))
            return 2;
    if (strcmp(how, "quick") == 0)
        quick_exit(0);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
    if (strcmp(how, "signal") == 0)
        raise(SIGTERM);
    if (strcmp(how, "closed") == 0) {
        hipDeviceSynchronize();
        for (int i = 3; i < MOST_FILES; i++)
            close(i);
        while (!hipDeviceSynchronize()) /* until the worker knows it */
            hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL);
    }
    printf("%d\n", hipDeviceSynchronize());
    return 0;
}
