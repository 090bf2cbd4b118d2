"""Matrix instructions (MFMA), as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Matrix:
    rows: int
