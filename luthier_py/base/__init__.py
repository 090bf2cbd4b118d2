"""What all other packages use: errors, names, storage, lazily loaded exports, LLVM.

In: nothing of the project. Invariant: nothing here depends on a GPU or a code object.
"""
