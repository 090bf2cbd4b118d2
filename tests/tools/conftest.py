"""The tutorial's program is one of tests/programs."""

from hip_programs import program

__all__ = ["program"]
