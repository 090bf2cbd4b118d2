"""The tutorial's program is one of tests/programs."""

from compiled_programs import program

__all__ = ["program"]
