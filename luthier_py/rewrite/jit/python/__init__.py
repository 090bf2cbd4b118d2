"""Device code in Python to LLVM IR."""
