"""LLVM's text and bitcode of hooks, made whole: what they call, their private memory, their recursion."""
