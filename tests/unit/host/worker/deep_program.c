/* LIBRARY CODE: opens a library that finds its own symbols first, as frameworks open theirs, and has it launch. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words)
{
    static char image[1 << 16];
    FILE *file = count == 3 ? fopen(words[2], "rb") : NULL;
    void *library = file && fread(image, 1, sizeof image, file) ? dlopen(words[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    int (*launch_twice)(const void *) = library ? (int (*)(const void *))dlsym(library, "launch_twice") : NULL;
    int error = launch_twice ? launch_twice(image) : -1;
    printf("%d%s\n", error, error == -1 ? dlerror() : "");
    return error != 0;
}
