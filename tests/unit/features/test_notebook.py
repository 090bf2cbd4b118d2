"""What notebooks show: by the methods and formatters that IPython calls, without IPython."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import luthier_py
from luthier_py import load, show
from luthier_py.base.errors import Invalid
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Done, Ran, run_instrumented
from luthier_py.program.ir import Kernel, lift
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.samples import sample

NAME = "bitonic_sort"


def ran_with(tool: Tool) -> tuple[Instrumented, Ran]:
    code = sample(NAME).path.read_bytes()
    device, made = EmulatorDevice(load(code, NAME).target), instrument(code, tool)
    return made, run_instrumented(device, made, tool, launch_of(sample(NAME)))


@pytest.fixture(scope="module")
def counted() -> tuple[Instrumented, Ran]:
    return ran_with(load_tool("hot_blocks"))


def test_each_kind_of_thing(counted: tuple[Instrumented, Ran]) -> None:
    made, ran = counted
    (kernel,) = made.program.kernels
    for thing in (made.obj, made.program, made, ran.result):
        shown = show(thing)
        assert shown._repr_svg_() is None and f"<td>{NAME}</td>" in shown._repr_html_()
    block = kernel.function.blocks[0]
    assert show(block)._repr_html_().count("<tr>") == 1 + len(block.instrs)
    for thing in (kernel, kernel.function):
        svg = show(thing)._repr_svg_()
        assert svg is not None and svg in show(thing)._repr_html_() and " times" not in svg
    with pytest.raises(Invalid, match="there is no picture of a int; there is one of Block, CodeObject, "):
        show(3)


def test_counts_are_in_the_drawing(counted: tuple[Instrumented, Ran]) -> None:
    made, ran = counted
    (kernel,) = made.program.kernels
    svg = show(kernel, ran).svg
    assert svg is not None and svg == show(kernel, ran.report).svg
    assert f"{NAME}, 7 blocks, 2 loops" in svg and ran.text.split("\n")[0] in show(ran).html
    for row in ran.report["blocks"]:
        assert f">{row['executions']:,} times<" in svg
    twice = show(kernel, [ran.report, ran.report]).svg
    assert twice is not None and f">{2 * ran.report['blocks'][0]['executions']:,} times<" in twice
    done = Done(Path(), ran, EmulatorDevice(made.obj.target), load_tool("hot_blocks"), None)
    assert show(done).svg == show(ran).svg and show(done).html.count("<tr>") == 8


def test_the_extension_registers_what_shows_them(counted: tuple[Instrumented, Ran]) -> None:
    known: dict[str, dict[type, Callable[[Any], Any]]] = {"text/html": {}, "image/svg+xml": {}}
    formatters = {name: SimpleNamespace(for_type=kinds.__setitem__) for name, kinds in known.items()}
    luthier_py.load_ipython_extension(SimpleNamespace(display_formatter=SimpleNamespace(formatters=formatters)))
    assert known["text/html"].keys() == known["image/svg+xml"].keys() and object not in known["text/html"]
    (kernel,) = counted[0].program.kernels
    assert known["image/svg+xml"][Kernel](kernel) == show(kernel).svg
    assert known["text/html"][Kernel](kernel) == show(kernel).html


def test_texts_of_a_program_are_escaped() -> None:
    obj = load(sample(NAME).path.read_bytes(), "<script>alert(1)</script>\x1b[2J")
    (kernel,) = lift(obj).kernels
    evil = replace(kernel.function, name="<script>alert(1)</script>&\x1b[2J")
    svg = show(evil).svg
    assert svg is not None and "<script" not in svg + show(obj).html and "\x1b" not in svg + show(obj).html
    assert "<script>alert(1)</script>&" in "".join(ElementTree.fromstring(svg).itertext())
