"""Damaged code objects: loaded, patched by hand."""

from __future__ import annotations

import random
from pathlib import Path

from fuzzer import Case, Fuzzer
from object_mutations import like, mutated
from seed_objects import seeds

from luthier_py.binary.link import Chunk, NewKernel, NewVariable, Patch, link
from luthier_py.binary.loader import load


def _make(rng: random.Random) -> Case:
    return Case(mutated(rng))


def _trial(case: Case, folder: Path) -> None:
    obj = load(case.data)
    if not obj.kernels:
        return
    kernel = NewKernel("new", "new", obj.kernels[0].descriptor, obj.kernels[0].name)
    patched = load(link(obj, Patch((Chunk("new", bytes(8)),), (kernel,), (NewVariable("more", 8),))))
    assert len(patched.kernels) == len(obj.kernels) + 1, "the new kernel is not there"
    assert [k.entry for k in patched.kernels[:-1]] == [k.entry for k in obj.kernels], "old kernels moved"


FUZZER = Fuzzer("loader", _make, _trial, lambda folder: _trial(Case(seeds()[0].data), folder), like, False)
