/* Loads and stores of one lane after the other, the slow path, in code that all shapes share. */
#include "move_lanes.h"

bool SUPPORT(move_lanes)(const struct access *access, const struct shape *shape)
{
    return move_lanes(access, *shape);
}
