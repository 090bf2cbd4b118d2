"""What is in a file: its kernels, its disassembly, its calls; and a copy with a tool in it."""
