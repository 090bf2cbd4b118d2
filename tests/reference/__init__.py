"""A second reader of isa.semantics, for clarity only: one lane at a time, in Python integers and fractions.

In: a wave's state as plain Python, and instructions. Out: the state after them. Nothing of luthier_py.emulator is
imported; what both share is the tables of luthier_py.isa, which are compared with LLVM, and the meanings themselves.
The reader takes decoded operands as they are (which register, which constant); what modifiers, EXEC and partial
writes do with them is written here a second time.
"""
