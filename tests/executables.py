"""Scripts in the place of programs."""

from __future__ import annotations

from pathlib import Path


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
