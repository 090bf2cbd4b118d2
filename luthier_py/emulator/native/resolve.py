"""Flags of luthier_resolve (resolve.h), for callers in text."""

WRITES, FLAT, ALIGNED, IN_LDS, IN_SCRATCH, FLOAT_ATOMIC = 1, 2, 4, 8, 16, 32
