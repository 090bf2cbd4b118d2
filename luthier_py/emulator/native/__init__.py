"""What generated code calls and what runs waves: C, stored as LLVM bitcode, and what Python writes beside it."""
