// Reductions over teams and their threads: a sum of integers, a sum of reals, a maximum.
#include "openmp_check.h"

enum { N = 3000 };

int main(void)
{
    static int values[N];
    long sum = 5, expected = 5;
    double halves = 0, expected_halves = 0;
    int largest = -1, expected_largest = -1;
    for (int i = 0; i < N; i++) {
        values[i] = i * 7919 % 4001;
        expected += values[i];
        expected_halves += 0.5 * values[i]; // exact: no rounding, whatever the order
        if (values[i] > expected_largest)
            expected_largest = values[i];
    }
#pragma omp target data map(to : values)
    {
#pragma omp target teams distribute parallel for num_teams(3) thread_limit(128) reduction(+ : sum)
        for (int i = 0; i < N; i++)
            sum += values[i];
#pragma omp target teams distribute parallel for num_teams(2) thread_limit(64) reduction(+ : halves) reduction(max : largest)
        for (int i = 0; i < N; i++) {
            halves += 0.5 * values[i];
            if (values[i] > largest)
                largest = values[i];
        }
    }
    REQUIRE(sum == expected);
    REQUIRE(halves == expected_halves);
    REQUIRE(largest == expected_largest);
    return passed();
}
