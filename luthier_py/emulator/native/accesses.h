/* What loads and stores of a whole wave have in common: accesses.c, and for lanes one by one move_lanes.c. */
#ifndef LUTHIER_ACCESSES_H
#define LUTHIER_ACCESSES_H

#include "native.h"

/* NEAR: base + a row of u32. FAR: base + two rows, low and high halves. FLAT_OR_FAR: the same, and apertures are seen.
   LDS and SCRATCH: base + a row of u32, in the work-group's LDS, or in the lane's private memory. */
enum addresses { NEAR, FAR, FLAT_OR_FAR, LDS, SCRATCH };
enum operation { LOAD, STORE, GATHER };

struct shape { /* of one function */
    enum addresses addresses;
    enum operation operation;
    u32 bytes; /* of an element */
    bool is_signed, pair;
};

/* A call. A pair's second element lies `distance` bytes (>= 0) behind the first, and has rows of its own. */
struct access {
    struct wave *wave;
    u64 exec, base;
    const u32 *addresses;
    u32 *data[2];
    struct site *site;
    u64 distance;
};

GENERIC u32 words_of(struct shape shape)
{
    return shape.bytes < 4 ? 1 : shape.bytes / 4;
}

GENERIC bool has_high_half(struct shape shape)
{
    return shape.addresses == FAR || shape.addresses == FLAT_OR_FAR;
}

/* Each lane's address for itself: another allocation than last time, an aperture, or a fault (move_lanes.h). */
bool SUPPORT(move_lanes)(const struct access *access, const struct shape *shape);

#endif
