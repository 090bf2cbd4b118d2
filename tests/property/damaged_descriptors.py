"""Kernels whose descriptors are damaged, in a process of its own: ``damaged_descriptors.py SEED COUNT``.

In: a seed, how many. Out: exit code 0 if each was refused with an error of ours or ran to an end; analysis of its
registers likewise. What must not happen is another exception, or that this process dies.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from emulated import ISA, KERNARG_BYTES, LANES, code_object  # noqa: E402

from luthier_py.base.errors import LuthierError  # noqa: E402
from luthier_py.binary.loader import load  # noqa: E402
from luthier_py.binary.loader.descriptor import DESCRIPTOR_BYTES  # noqa: E402
from luthier_py.emulator import EmulatorDevice, LaunchOptions  # noqa: E402
from luthier_py.isa import agpr, sgpr, vgpr  # noqa: E402
from luthier_py.program.analysis.registers import compute_allocated_registers, initial_registers  # noqa: E402

ROWS = [
    ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("v_mov_b32", vgpr(200), 0), ("v_accvgpr_write_b32", agpr(9), 1),
    ("scratch_load_dword", vgpr(1), vgpr(200), "off"), ("ds_read_b32", vgpr(2), vgpr(200)), ("s_endpgm",),
]


def main(seed: int, count: int) -> None:
    rng = random.Random(seed)
    data = code_object({"k": ROWS}, vgprs=201, agprs=16, scratch_bytes=16)
    place = data.index(load(data).kernel("k").descriptor.raw)
    device = EmulatorDevice(ISA.target, options=LaunchOptions(time_limit=60))
    for number in range(count):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            bits = rng.choice((1 << rng.randrange(8), rng.randrange(1, 256)))
            damaged[place + rng.randrange(DESCRIPTOR_BYTES)] ^= bits
        print(number, damaged[place : place + DESCRIPTOR_BYTES].hex(), file=sys.stderr)
        try:
            module = device.load(bytes(damaged))
            handle = module.kernel("k")
            (compute_allocated_registers(ISA.target, handle.record.descriptor),
             initial_registers(ISA.target, handle.record.descriptor))
            device.launch(handle, (3, 1, 1), (rng.choice((1, LANES, 1024)), 1, 1), bytes(KERNARG_BYTES))
            module.unload()
        except LuthierError:
            pass


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
