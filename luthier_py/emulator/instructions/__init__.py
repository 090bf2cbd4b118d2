"""Each kind of instruction as LLVM IR, for one wave."""
