// Every device does its share, with memory of its own that the host copies to and from by omp_target_memcpy.
#include <omp.h>
#include "openmp_check.h"

enum { N = 300 };

int main(void)
{
    int count = omp_get_num_devices(), host = omp_get_initial_device();
    int all[N], back[N];
    REQUIRE(count > 0 && host == count);
    for (int device = 0; device < count; device++) {
        int *memory = omp_target_alloc(sizeof all, device);
        REQUIRE(memory);
        for (int i = 0; i < N; i++)
            all[i] = i * (device + 2);
        REQUIRE(omp_target_memcpy(memory, all, sizeof all, 0, 0, device, host) == 0);
        int seen = -1;
#pragma omp target teams distribute parallel for num_teams(2) thread_limit(64) device(device) is_device_ptr(memory) map(tofrom : seen)
        for (int i = 0; i < N; i++) {
            memory[i] += 1;
            if (i == 0)
                seen = omp_get_device_num();
        }
        REQUIRE(seen == device);
        REQUIRE(omp_target_memcpy(back, memory, sizeof all, 0, 0, host, device) == 0);
        for (int i = 0; i < N; i++)
            REQUIRE(back[i] == all[i] + 1);
        omp_target_free(memory, device);
    }
    printf("%d devices\n", count);
    return passed();
}
