"""LLVM IR as text: values of scalars and of chunks of lanes, and runs of vector instructions as loops."""
