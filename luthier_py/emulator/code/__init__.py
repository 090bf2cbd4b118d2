"""LLVM IR as machine code: compiled, kept on disk, run."""
