/* What all native code shares: its types, the records, the names by which generated code calls it.

   In: records.h, which generate.py makes of records/layout.py, and LANES, the size of the waves for which a source is
   compiled. Out: declarations. Invariant: nothing here depends on the host: sources are compiled for a virtual machine
   of 64 bits, little endian, whose calls pass vectors as they are; LLVM makes the host's code of that later. */
#ifndef LUTHIER_NATIVE_H
#define LUTHIER_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#include "records.h"

/* A function that generated code, or Python, finds by its name and the size of the waves. */
#define JOIN(name, lanes) luthier_##name##_w##lanes
#define NAME(name, lanes) JOIN(name, lanes)
#define SUPPORT(name) NAME(name, LANES)

/* Each use of such a function has code of its own, for arguments that are constants there. */
#define GENERIC static inline __attribute__((always_inline))

GENERIC struct worker *worker_of(const struct wave *wave)
{
    return (struct worker *)wave->worker;
}

#endif
