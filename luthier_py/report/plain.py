"""What all reports are made of: plain data, which JSON can hold."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
