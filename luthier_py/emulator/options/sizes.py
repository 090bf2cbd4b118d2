"""How many instructions go into what LLVM compiles at once.

In: nothing. Out: numbers. Invariant: a cached translation is found by these, too.
"""

BLOCK, PART = 250, 1000
"""Of a block, and about so many of a host function."""
LARGE = 2 * BLOCK
"""Functions with more are compiled fast at first."""
