"""Hooks as authors write them: device functions, their types, assembly, what they print."""
