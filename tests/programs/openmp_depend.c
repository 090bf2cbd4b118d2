// Target tasks that nobody waits for (`nowait`) in the order that `depend` gives them, and several at the same time.
#include "openmp_check.h"

enum { N = 256, CHAINS = 3 };

int main(void)
{
    static int data[CHAINS][N];
#pragma omp target enter data map(to : data)
#pragma omp parallel num_threads(4)
#pragma omp single
    for (int chain = 0; chain < CHAINS; chain++) {
        int *values = data[chain];
#pragma omp target teams distribute parallel for num_teams(2) thread_limit(64) nowait depend(out : values[0]) map(tofrom : values[0 : N])
        for (int i = 0; i < N; i++)
            values[i] = i + chain;
#pragma omp target teams distribute parallel for num_teams(2) thread_limit(64) nowait depend(inout : values[0]) map(tofrom : values[0 : N])
        for (int i = 0; i < N; i++)
            values[i] = values[i] * 3;
#pragma omp target teams distribute parallel for num_teams(2) thread_limit(64) nowait depend(inout : values[0]) map(tofrom : values[0 : N])
        for (int i = 0; i < N; i++)
            values[i] -= 1;
    }
#pragma omp target exit data map(from : data)
    for (int chain = 0; chain < CHAINS; chain++)
        for (int i = 0; i < N; i++)
            REQUIRE(data[chain][i] == (i + chain) * 3 - 1);
    return passed();
}
