"""What generated code calls and what runs waves: C, kept as LLVM bitcode, and what Python writes beside it."""
