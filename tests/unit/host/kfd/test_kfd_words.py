"""Words of memory that change in one step, from the first time on."""

from __future__ import annotations

import subprocess
import sys

from patience import PATIENCE

PROGRAM = """
import ctypes, sys, threading
from luthier_py.host.worker.native import load_worker_library
from luthier_py.host.kfd import words
from luthier_py.host.worker.native import load_worker_library
sys.setswitchinterval(1e-6)
word = ctypes.c_uint64()
for turn in range(30):
    load_worker_library.cache_clear()
    start = threading.Barrier(6)
    def add():
        start.wait()
        words.add(ctypes.addressof(word), -1)
    threads = [threading.Thread(target=add) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print(-word.value % (1 << 64))
"""


def test_several_threads_may_be_the_first() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "180\n"), done.stderr
