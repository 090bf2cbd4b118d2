// What every program here shares: calls are checked, and the last line says how it went.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        hipError_t check_error = (call);                                                                   \
        if (check_error != hipSuccess) {                                                                   \
            std::printf("%s:%d: %s gave %s\n", __FILE__, __LINE__, #call, hipGetErrorName(check_error));   \
            std::exit(1);                                                                                  \
        }                                                                                                  \
    } while (0)

#define REQUIRE(condition)                                                                                 \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                            \
            std::exit(1);                                                                                  \
        }                                                                                                  \
    } while (0)

inline int passed()
{
    std::printf("PASSED\n");
    return 0;
}
