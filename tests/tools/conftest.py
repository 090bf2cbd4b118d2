"""Tools run under programs of tests/programs."""

from hip_programs import program

__all__ = ["program"]
