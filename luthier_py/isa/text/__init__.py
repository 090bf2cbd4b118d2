"""Between instructions and LLVM's assembly text."""
