"""wave_size(): the number of lanes in a wave."""

from __future__ import annotations

from luthier_py.rewrite.tool import wave_size

__all__ = ["wave_size"]
