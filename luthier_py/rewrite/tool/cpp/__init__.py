"""Hooks in HIP C++: what bitcode declares, and Hooks that tools take from it."""
