"""Random hooks about structures, proved and on the emulator: what they leave is what CPython leaves."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hook_files import load_text
from observing import LANES, launch
from structure_programs import Program

from luthier_py.isa import vgpr
from luthier_py.rewrite.tool import Mutator, Tool, Variable


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    program, numbers = Program(random.Random(seed)), np.random.default_rng(seed)
    text = program.text()
    module = load_text(tmp_path, text)
    begin, read = program.filled(LANES, numbers), program.filled(LANES, numbers)

    class Changed(Tool):
        v = Variable(module.S, initial=begin)
        w = Variable(module.S, initial=read)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], module.h, self.v, self.w, vgpr(0), 2)

    found = launch(Changed(), LANES)
    v, w = found[Changed.v], found[Changed.w]
    assert isinstance(v, np.ndarray) and isinstance(w, np.ndarray)
    assert v.tolist() == program.run(text, begin, read, 2), text
    assert w.tolist() == read.tolist()
