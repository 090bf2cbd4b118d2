"""Between bytes and instructions: tables of encodings, what LLVM's records lack of them, decoding and encoding."""
