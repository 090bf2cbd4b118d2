"""A tool under a running program: its kernels are patched, and its reports come out."""
