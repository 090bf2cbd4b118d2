"""100,000 asynchronous operations on 16 streams from 8 threads: what they leave is what a model in Python says."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import case_programs
import numpy as np
import pytest
from compiled_programs import HEADERS, NO_HEADERS, compiled
from rocm_stack import lacking

from luthier_py.host.hip import runtime_folder

OPERATIONS, STREAMS, LANES = 100_000, 16, 64
FILL, MIX, TO_HOST, FROM_HOST, CALL, STORE, FETCH, SEND, RECEIVE, ASK = range(10)
WEIGHTS = (6, 12, 16, 12, 10, 12, 12, 6, 0, 8)  # a message is received where its plan says
GROWTH_KIB = 24 << 10
"""What memory may grow between a fifth of the operations and the end: a leak of 300 bytes for each would be more."""

Operation = tuple[int, int, int, int]


def plan(seed: int, count: int) -> list[Operation]:
    """Kind, stream, a, b. Messages in flight are received by any stream, a while after they were sent."""
    rng = random.Random(seed)
    operations: list[Operation] = []
    flying: list[int] = []
    sent = 0
    while len(operations) < count:
        stream = rng.randrange(STREAMS)
        if len(flying) > 20 or (flying and rng.random() < 0.06):
            operations.append((RECEIVE, stream, flying.pop(rng.randrange(len(flying))), 0))
            continue
        kind = rng.choices(range(10), WEIGHTS)[0]
        if kind == SEND:
            flying.append(sent)
            sent += 1
        operations.append((kind, stream, sent - 1 if kind == SEND else rng.getrandbits(32), 0))
    return operations + [(RECEIVE, 0, message, 0) for message in flying]


def model(operations: list[Operation]) -> list[tuple[int, int, int]]:
    """Of each stream: its vector as a number, what its host functions saw, how many they were."""
    x, y, host = (np.zeros((STREAMS, LANES), np.uint32) for _ in range(3))
    hashes, calls = [0] * STREAMS, [0] * STREAMS
    messages: dict[int, np.ndarray] = {}
    lanes = np.arange(LANES, dtype=np.uint32)
    for kind, s, a, _ in operations:
        if kind == FILL:
            x[s] = a
        elif kind == MIX:
            x[s] = x[s] * np.uint32(3) + np.uint32(a) + lanes
        elif kind == TO_HOST:
            host[s] = x[s]
        elif kind == FROM_HOST:
            x[s] = host[s]
        elif kind == CALL:
            host[s] = host[s] * np.uint32(5) + np.uint32(a)
            hashes[s] = (hashes[s] * 1099511628211 + int(host[s][-1])) % 2**64
            calls[s] += 1
        elif kind == STORE:
            y[s] = x[s]
        elif kind == FETCH:
            x[s] = y[s]
        elif kind == SEND:
            messages[a] = x[s].copy()
        elif kind == RECEIVE:
            x[s] = messages.pop(a)
    return [(number(x[s]), hashes[s], calls[s]) for s in range(STREAMS)]


def number(vector: np.ndarray) -> int:
    total = 0
    for value in vector.tolist():
        total = (total * 31 + value) % 2**32
    return total


@pytest.fixture(scope="module")
def program(require_tool: Callable[[str], str]) -> Path:
    require_tool("clang++-22")
    require_tool("cc")
    if not HEADERS:
        lacking(NO_HEADERS)
    return compiled(case_programs.recipe(Path(__file__).with_name("order.hip"), HEADERS[max(HEADERS)]))


@pytest.mark.parametrize("seed", (1,))
def test_order(seed: int, program: Path, tmp_path: Path) -> None:
    operations = plan(seed, OPERATIONS)
    (tmp_path / "plan").write_bytes(b"".join(struct.pack("<4I", *operation) for operation in operations))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(runtime_folder()), "LUTHIER_DEVICE": "emulator:gfx90a"}
    done = subprocess.run([program, tmp_path / "plan"], capture_output=True, text=True, env=environment, timeout=1200)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    *streams, memory = ([int(word) for word in line.split()] for line in done.stdout.splitlines())
    assert [tuple(stream) for stream in streams] == model(operations)
    assert memory[1] - memory[0] < GROWTH_KIB
