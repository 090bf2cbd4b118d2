"""A function of GPU code as host functions in LLVM IR."""
