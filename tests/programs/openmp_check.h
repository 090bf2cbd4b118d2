// What the OpenMP programs share: the last line says how it went.
#pragma once
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                                 \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                 \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

static inline int passed(void)
{
    printf("PASSED\n");
    return 0;
}
