"""Hooks, device functions and intrinsics as objects: signatures, and what is refused when they are declared."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import luthier_py
from luthier_py import intrinsics as builtin
from luthier_py.base.errors import HookError
from luthier_py.rewrite import tool
from luthier_py.rewrite.tool import (
    F32,
    U32,
    U64,
    Effects,
    Intrinsic,
    Ir,
    Lane,
    Lanes,
    Parameter,
    Pointer,
    Result,
    Tool,
    Value,
    bool_,
    device,
    f32,
    hook,
    intrinsic,
    intrinsics,
    ptr,
    u32,
    u64,
)


class Example(Tool):
    @hook
    def add(count: u64, n: Lane[u32], p: ptr[u32]) -> u64:
        return count

    @hook(lanes="one")
    def two(x: f32, flag: bool_) -> tuple[u32, f32]:
        return 1, x

    @hook
    @staticmethod
    def three() -> None:
        pass


@device
def double(x: u32) -> u32:
    return 2 * x


def test_signatures() -> None:
    add, two = Example.add, Example.two
    assert (add.name, add.lanes) == ("add", Lanes.ACTIVE)
    assert add.place == f"{__file__}:{add.function.__code__.co_firstlineno}"
    assert add.signature.parameters == (
        Parameter("count", U64, False), Parameter("n", U32, True), Parameter("p", Pointer(U32), False),
    )
    assert add.signature.results == (Parameter("", U64, False),)
    assert two.lanes is Lanes.ONE and [r.type for r in two.signature.results] == [U32, F32]
    assert Example.three.signature.results == () and Example().add is add


def test_device_functions_run_on_the_host() -> None:
    assert double(21) == 42


def declare(text: str) -> None:
    exec(compile(text, "declared.py", "exec", dont_inherit=True), dict(vars(tool)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@hook\ndef h(x) -> None: pass", "declared.py:1: h: parameter x has no type; annotate it, as in `x: u32`"),
        ("@hook\ndef h(x: u32): pass", "declared.py:1: h: the result has no type; annotate it"),
        ("@hook\ndef h(x: int) -> None: pass", "declared.py:1: h: x: int is not a device type; use u8 i8"),
        ("@hook\ndef h(x: u32) -> int: pass", "h: result: int is not a device type"),
        ("@hook\ndef h(x: u32) -> tuple[u32, str]: pass", "h: 1: str is not a device type"),
        ("@hook\ndef h(x: 'u33') -> None: pass", "annotation 'u33' cannot be read: name 'u33' is not defined"),
        ("@hook\ndef h(x: 'ptr[bool_]') -> None: pass", r"declared.py:1: h: ptr\[bool_\] is not a type"),
        ("@hook\ndef h(x: u32 = 3) -> None: pass", "parameter x: only plain positional parameters without defaults"),
        ("@hook\ndef h(*x: u32) -> None: pass", "parameter x: only plain positional parameters"),
        ("@hook\ndef h(*, x: u32) -> None: pass", "parameter x: only plain positional parameters"),
        ("@hook(lanes='two')\ndef h() -> None: pass", "declared.py:1: lanes='two' is unknown; choose one of active"),
        ("@hook(lanes='one')\ndef h(x: Lane[u32]) -> None: pass",
         r"has a single lane; x cannot be Lane\[u32\]: declare u32, or take a plain @hook .*is_first_lane\(\)"),
        ("@hook(lanes='one')\ndef h() -> Lane[u32]: pass", "a single lane; its result cannot be"),
        ("@hook\ndef h() -> bool_: pass", "a hook cannot return bool_"),
        ("hook(3)", "@hook marks a function, not int"),
        ("@device\nclass A: pass", "@device marks a function, not type"),
    ],
)
def test_wrong_signatures(text: str, message: str) -> None:
    with pytest.raises(HookError, match=message):
        declare(text)


def test_types_of_an_enclosing_function() -> None:
    number = u32

    @hook
    def h(x: number) -> number:  # type: ignore[valid-type]
        return x + number(1)

    assert h.signature.parameters[0].type == U32


def test_intrinsics_are_device_code() -> None:
    assert builtin.atomic_add.effects == Effects(Result.LANE)
    assert builtin.read_lane.effects.uniform == (1,) and builtin.read_lane.arity == 2
    for name in builtin.__all__:
        one = getattr(builtin, name)
        assert isinstance(one, Intrinsic) and one.name == name and one.__doc__
        with pytest.raises(HookError, match=f"{name} is device code: call it from a @hook"):
            one()


@intrinsic(result=Result.UNIFORM)
def answer(ir: Ir) -> Value:
    """42"""
    return ir.value(42, U32)


def test_anybody_registers_intrinsics_by_the_same_door(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(answer=answer, again=answer, other=3)
    entries: list[Any] = [SimpleNamespace(value="theirs", load=lambda: module)]
    groups = {"luthier_py.intrinsics": entries}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: groups.get(group, []))
    intrinsics.cache_clear()
    assert intrinsics() == {"answer": ("theirs",), "again": ("theirs",)}
    twin = SimpleNamespace(answer=Intrinsic(answer.lower, answer.effects))

    def broken() -> None:
        raise ImportError("no such module")

    entries += [SimpleNamespace(value="broken", load=broken), SimpleNamespace(value="more", load=lambda: twin)]
    intrinsics.cache_clear()
    assert intrinsics()["answer"] == ("theirs", "more")
    intrinsics.cache_clear()


def test_the_built_in_intrinsics_are_registered() -> None:
    assert intrinsics() == {name: ("luthier_py.intrinsics",) for name in builtin.__all__}


def test_importing_tools_does_not_load_llvm() -> None:
    script = "import sys, luthier_py.rewrite.tool, luthier_py.rewrite.jit; sys.exit('llvmlite' in sys.modules)"
    root = Path(luthier_py.__file__).parent.parent
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root)


def test_type_checkers_see_plain_python(tmp_path: Path) -> None:
    if not any(d.metadata["Name"] == "mypy" for d in importlib.metadata.distributions()):
        pytest.skip("mypy is not installed")
    script = tmp_path / "typed_tool.py"
    script.write_text(
        "from __future__ import annotations\n"
        "from luthier_py import Lane, Mutator, Option, Tool, Variable, WaveVariable, device, hook, ptr, u32, u64\n"
        "@device\ndef twice(x: u32) -> u32:\n    return x + x\n"
        "class Mine(Tool):\n"
        "    total = Variable(u64)\n    count = WaveVariable(u64)\n    level = Option('wave')\n"
        "    @hook\n    def add(count: u64, n: u32, x: Lane[u32], p: ptr[u32]) -> u64:\n"
        "        p[x] = twice(n)\n        (p + 1)[0] += u32(p[n] + u64(p))\n        return count + u64(n) * 3\n"
        "    def instrument(self, m: Mutator) -> None:\n"
        "        for kernel in m.kernels:\n            m.at_exit(kernel, self.add, self.count, into=self.count)\n"
        "        print(self.level.upper())\n"
    )
    root = Path(luthier_py.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(script)],
        capture_output=True, text=True, cwd=root,
    )
    assert done.returncode == 0, done.stdout


def shown_tools() -> dict[str, str]:
    """Those that README and manual show whole, by names of files."""
    root = Path(luthier_py.__file__).parent.parent
    readme = (root / "README.md").read_text()
    whole = readme[readme.index("    from luthier_py import Mutator") : readme.index("Save it as")]
    found = {"count.py": textwrap.dedent(whole)}
    for page in sorted((root / "docs").glob("*.md")):
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)):
            if "import" in code and "(Tool)" in code:
                found[f"{page.stem}_{number}.py"] = code
    return found


@pytest.mark.parametrize(
    "checker", ["mypy --strict --python-executable", "basedpyright --pythonpath"], ids=["mypy", "pyright"]
)
def test_editors_accept_tools_that_are_shown(checker: str, tmp_path: Path) -> None:
    """In a folder of its own, with this installation; and they refuse what is wrong, so they have seen the types."""
    name, *options = checker.split()
    command = Path(sys.executable).with_name(name)
    if not command.exists():
        pytest.skip(f"{name} is not installed")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    tools = shown_tools()
    for file, text in tools.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "wrong.py").write_text('from luthier_py.intrinsics import popcount\n\nx: str = popcount("a")\n')
    run = [command, *options, sys.executable, *tools, "wrong.py"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert re.findall(r"(\S+\.py):\d", done.stdout.replace(f"{tmp_path}/", "")) == ["wrong.py"] * 2, done.stdout


def test_no_tool_has_a_hook_where_editors_expect_self() -> None:
    """None that is shown, and none that is shipped."""
    root = Path(luthier_py.__file__).parent.parent
    shipped = {str(path): path.read_text() for folder in ("tools", "docs") for path in (root / folder).rglob("*.py")}
    tools = shown_tools() | shipped
    classes = {name: [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
               for name, text in tools.items()}  # fmt: skip
    marked = {f"{name}: {ast.unparse(part)}" for name, found in classes.items() for node in found for part in node.body
              if getattr(part, "decorator_list", ())}  # fmt: skip
    assert len(shipped) > 80 and sum(bool(found) for found in classes.values()) > 60
    assert not [text for text in marked if "@hook" in text and "@staticmethod" not in text]


def test_type_checkers_know_the_signatures_of_intrinsics() -> None:
    stub = ast.parse(Path(builtin.__file__).with_suffix(".pyi").read_text())
    known = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert sorted(known) == sorted(builtin.__all__)
    for name, node in known.items():
        code = getattr(builtin, name).lower.__code__
        assert [argument.arg for argument in node.args.args] == list(code.co_varnames[1 : code.co_argcount])
        assert "Any" not in ast.unparse(node) and node.returns and all(one.annotation for one in node.args.args)
        assert ast.get_docstring(node) == getattr(builtin, name).__doc__.partition("\n")[0]


def test_every_intrinsic_is_in_the_manual() -> None:
    manual = (Path(luthier_py.__file__).parent.parent / "docs" / "device-python.md").read_text()
    assert [name for name in builtin.__all__ if not re.search(rf"[`| ]{name}[(` ]", manual)] == []
