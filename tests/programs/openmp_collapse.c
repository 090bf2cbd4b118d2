// Nested loops that become one: `collapse`; and a region in generic mode, whose threads work in the loop inside.
#include "openmp_check.h"

enum { ROWS = 37, COLUMNS = 29, DEPTH = 5 };

int main(void)
{
    static int cube[ROWS][COLUMNS][DEPTH];
    int sums[ROWS] = {0};
#pragma omp target teams distribute parallel for collapse(3) num_teams(4) thread_limit(64) map(from : cube)
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            for (int k = 0; k < DEPTH; k++)
                cube[i][j][k] = 10000 * i + 100 * j + k;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            for (int k = 0; k < DEPTH; k++)
                REQUIRE(cube[i][j][k] == 10000 * i + 100 * j + k);
#pragma omp target teams distribute num_teams(4) thread_limit(64) map(to : cube) map(tofrom : sums)
    for (int i = 0; i < ROWS; i++) {
        int sum = 1;
#pragma omp parallel for reduction(+ : sum)
        for (int j = 0; j < COLUMNS; j++)
            sum += cube[i][j][DEPTH - 1];
        sums[i] = sum;
    }
    for (int i = 0; i < ROWS; i++)
        REQUIRE(sums[i] == 1 + COLUMNS * (10000 * i + DEPTH - 1) + 100 * COLUMNS * (COLUMNS - 1) / 2);
    return passed();
}
