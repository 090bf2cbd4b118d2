"""What decides how code is translated, beside the code and the settings: the sources of the translator.

Invariant: whatever writes a translation is in ROOMS (tests/test_architecture.py follows the imports), so that a change
of anything else leaves what was translated as it is. Of the loader that is what distinguishes inserted code from the
application's.
"""

from __future__ import annotations

from luthier_py.base.storage import sources

ROOMS = ("base/errors", "base/llvm", "binary/loader/origins", "emulator", "isa")


def translator() -> str:
    """A name for the sources of these rooms."""
    return sources(*ROOMS)
