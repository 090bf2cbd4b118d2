/* Copies as all functions say them in the end: a box of bytes from one place to another. */
#ifndef LUTHIER_TRANSFERS_H
#define LUTHIER_TRANSFERS_H

#include "operations.h"

/* An array: elements of one format, one after another, without gaps between rows and layers. Its beginning is as HIP 5 shows it
 * to programs; later it is hidden. */
struct array {
    void *data;
    struct channel_desc desc;
    unsigned type, width, height, depth; /* 0: it does not have that dimension */
    int format;
    unsigned channels;
    bool of_driver;
    unsigned texture_type;
    /* The rest is arrays.c's. */
    unsigned flags;
    size_t element_bytes;
    struct array *next;
};
struct extent array_extent(const struct array *array); /* width in bytes, nothing 0 */
struct array *array_at(const void *address);           /* whose elements are there, or NULL */

struct place {
    void *address;         /* of memory, or */
    array_t array;
    bool known;            /* must be memory of HIP's */
    size_t pitch, height;  /* of memory; 0: rows, and layers, lie one after another */
    struct position at;    /* x in bytes */
};
struct box { struct place to, from; struct extent extent; }; /* width in bytes */

/* boxes.c */
hipError_t box_prepare(const struct box *box, struct operation *operation);
hipError_t array_holds(const struct array *array, struct position at, struct extent extent); /* x and width in bytes */
bool is_pageable(const void *address);

/* transfers.c */
hipError_t copy_perform(struct operation *operation, bool wait, stream_t stream);
hipError_t box_copy(const struct box *box, bool wait, stream_t stream);
hipError_t copy3d(const struct copy3d *all, bool wait, stream_t stream);

/* prepared_transfers.c: whether a kind says that one side is the device's. */
bool to_device(int kind);
bool from_device(int kind);

/* boxes.c, prepared_transfers.c: checked operations; with nothing to do they are OPERATION_NOTHING. */
hipError_t copy_prepare(const struct transfer *copy, struct operation *operation);
hipError_t line_prepare(void *to, const void *from, size_t bytes, int kind, struct operation *operation);
hipError_t copy3d_prepare(const struct copy3d *all, struct operation *operation);
void copy3d_describe(const struct transfer *copy, struct copy3d *all); /* as for hipMemcpy3D */
hipError_t fill_prepare(const struct fill *fill, struct operation *operation);
hipError_t symbol_place(const void *symbol, int device, size_t bytes, size_t offset, void **place);

/* Types of the ABI. */
struct driver_place { /* half of HIP_MEMCPY3D, as since HIP 6 */
    size_t x, y, z, level; int type; void *host, *device; array_t array; size_t pitch, height;
};
struct driver_copy { struct driver_place from, to; size_t width, height, depth; };
struct driver_rows { /* hip_Memcpy2D */
    struct { size_t x, y; int type; void *host, *device; array_t array; size_t pitch; } from, to;
    size_t width, height;
};
struct peer_box { /* hipMemcpy3DPeerParms */
    array_t from_array; struct position from_at; struct pitched from; int from_device;
    array_t to_array; struct position to_at; struct pitched to; int to_device;
    struct extent extent;
};
struct batch_place { /* hipMemcpy3DOperand */
    int type;
    union {
        struct { void *address; size_t row, layer; int location_type, location; } memory; /* in elements, and rows */
        struct { array_t array; struct position at; } array;                              /* in elements */
    };
};
struct batch_box { struct batch_place from, to; struct extent extent; int order; unsigned flags; };

/* prepared_transfers.c */
void driver_copy_read(const void *given, struct driver_copy *copy); /* of a HIP_MEMCPY3D, whose layout depends on the ABI */
hipError_t driver_copy_prepare(const struct driver_copy *copy, struct operation *operation);

#endif
