"""LLVM IR as text: values of scalars and of strips of lanes, and runs of vector instructions as loops."""
