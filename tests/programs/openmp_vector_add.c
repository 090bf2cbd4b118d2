// Adds two vectors in a target region, with sections of arrays mapped there and back.
#include <omp.h>
#include "openmp_check.h"

enum { N = 1000 };

int main(void)
{
    static float a[N], b[N], c[N];
    int host = 1;
    for (int i = 0; i < N; i++) {
        a[i] = 0.5f * i;
        b[i] = 1000.0f - i;
    }
    REQUIRE(omp_get_num_devices() > 0);
#pragma omp target teams distribute parallel for num_teams(4) thread_limit(64) map(to : a, b) map(from : c) map(tofrom : host)
    for (int i = 0; i < N; i++) {
        if (i == N - 1)
            host = omp_is_initial_device();
        c[i] = a[i] + b[i];
    }
    REQUIRE(!host);
    for (int i = 0; i < N; i++)
        REQUIRE(c[i] == a[i] + b[i]);
    return passed();
}
