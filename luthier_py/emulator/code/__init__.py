"""LLVM IR as machine code: compiled, cached on disk, run."""
