"""Words on which processes wait for each other, see futex(2).

In: addresses of u32 words in memory that both see. Out: nothing. Invariant: where this computer's number of the call is
not known, the call fails, nobody sleeps, and nobody needs to be woken.
"""

from __future__ import annotations

import ctypes
import os

WAIT, WAKE = 0, 1
EVERYBODY = 2**31 - 1
SYS_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}.get(os.uname().machine, -1)
_libc = ctypes.CDLL(None, use_errno=True)


def futex_wake(address: int) -> None:
    """Everybody who waits for the word, in whichever process."""
    _libc.syscall(ctypes.c_long(SYS_FUTEX), ctypes.c_void_p(address), WAKE, EVERYBODY, None, None, 0)
