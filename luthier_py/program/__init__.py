"""A code object's code as functions and blocks, and what analyses say of it."""
