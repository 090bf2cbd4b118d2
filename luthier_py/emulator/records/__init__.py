"""Where native code, generated code and Python find what they share, and how hand-written LLVM IR names it."""
