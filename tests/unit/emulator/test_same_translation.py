"""The same code is translated into the same text in each process: machine code is kept by that text."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.translation.host_functions import DividedFunction
from luthier_py.isa import instruction_set
from luthier_py.base.llvm import Effort
from luthier_py.binary.loader import load
from luthier_py.binary.loader.origins import read_origins
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import SAMPLES, sample as sample_called
from luthier_py.rewrite.tool import load_tool

codes = {sample.name: load(sample.path.read_bytes()) for sample in SAMPLES}
copied = instrument(sample_called("bitonic_sort").path.read_bytes(), load_tool("loop_counts", {}))  # masks of one lane
for of, code in {**codes, "copy": load(copied.data)}.items():
    for kernel in code.kernels:
        lanes = kernel.descriptor.wave_size
        isa = instruction_set(code.target, lanes)
        decode = lambda pc: isa.decode(code.read(pc, 24))
        settings = Settings(lanes, 0xF0, code.target)
        function = DividedFunction(discover(decode, kernel.entry), kernel.entry, settings,
                                   read_origins(code.elf))
        for effort in (Effort.FAST, Effort.GENERATE):
            for part in function.parts:
                print(of, part, effort.name, function.translate_part(part, effort).digest)
"""


def translations(seed: int) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True,
                          text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_a_process_s_hashes_do_not_matter() -> None:
    once, *others = map(translations, (0, 1, 2, 3, 4, 5))
    assert len(once) > 30
    assert all(other == once for other in others)
