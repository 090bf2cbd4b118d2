"""How large what a file holds may be: a malicious or damaged file must not exhaust the computer's memory.

In: the environment. Out: bytes. Invariant: an error about a limit names LIMIT.
"""

from __future__ import annotations

import os

from luthier_py.base.errors import Invalid

LIMIT = "LUTHIER_MAX_CODE_MB"
"""Environment variable: megabytes that a code object may have, and that what is compressed in a file may unpack to."""


SMALL_BYTES, RATIO = 64 << 20, 256
"""What is compressed in a file may unpack to so many bytes, or so many times its size: code compresses to a tenth."""


def compute_unpacked_limit(packed_bytes: int) -> int:
    """The number of bytes that so many compressed ones of a file may unpack to."""
    return limit_bytes(max(SMALL_BYTES, RATIO * packed_bytes))


def limit_bytes(default: int) -> int:
    """What the environment says, or ``default``."""
    text = os.environ.get(LIMIT, "")
    if not text:
        return default
    if not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise Invalid(f"{LIMIT} is {text!r}; give a number of megabytes")
    return int(text) << 20
