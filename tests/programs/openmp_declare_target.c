// Functions and variables of the device: `declare target`, and `target update` in both directions.
#include "openmp_check.h"

enum { N = 200 };

#pragma omp declare target
int table[4] = {2, 3, 5, 7};
unsigned calls;

__attribute__((noinline)) static int scaled(int value, int how)
{
#pragma omp atomic
    calls++;
    return value * table[how % 4];
}
#pragma omp end declare target

int main(void)
{
    int results[N];
    for (int pass = 0; pass < 2; pass++) {
#pragma omp target teams distribute parallel for num_teams(2) thread_limit(64) map(from : results)
        for (int i = 0; i < N; i++)
            results[i] = scaled(i, i);
        for (int i = 0; i < N; i++)
            REQUIRE(results[i] == i * table[i % 4]);
#pragma omp target update from(calls)
        REQUIRE(calls == (unsigned)N * (pass + 1));
        table[1] = 30;
#pragma omp target update to(table)
    }
    return passed();
}
