"""What generated code calls and what runs waves, as LLVM IR: memory, atomics, matrices, clocks, schedulers."""
