"""What every house stands on: errors, names, storage, lazily loaded exports, LLVM.

In: nothing of the project. Invariant: it knows no GPU and no code object.
"""
