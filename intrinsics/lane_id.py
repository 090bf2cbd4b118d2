"""lane_id(): the number of this lane in its wave."""

from __future__ import annotations

from luthier_py.rewrite.tool import lane_id

__all__ = ["lane_id"]
