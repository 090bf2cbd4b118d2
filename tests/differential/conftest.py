"""What tests against other tools share: programs that somebody has to compile."""

from __future__ import annotations

from compiled_programs import program

__all__ = ["program"]
