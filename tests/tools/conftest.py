"""Tools run under programs of tests/programs."""

from compiled_programs import program

__all__ = ["program"]
