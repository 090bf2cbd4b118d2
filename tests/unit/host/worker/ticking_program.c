/* Launches saxpy of no elements for each line that it reads, and says so. Its code object is the first argument. */
#include <stdio.h>

int hipModuleLoad(void **module, const char *path);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int hipDeviceSynchronize(void);

int main(int count, char **words)
{
    void *module, *function, *x = NULL;
    unsigned n = 0;
    float a = 1;
    char line[16];
    void *arguments[] = {&n, &a, &x, &x};
    if (count < 2 || hipModuleLoad(&module, words[1]) || hipModuleGetFunction(&function, module, "saxpy"))
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        if (hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL) || hipDeviceSynchronize())
            return 2;
        puts("launched");
        fflush(stdout);
    }
    return 0;
}
