"""Programs for ROCm's stack are kept as all programs of the tests are, by all that they are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
import stacked_programs
from rocm_stack import RocmStack
from stacked_programs import Programs


def test_what_decides_about_a_program_is_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options, sources, headers of the stack."""
    monkeypatch.setattr(stacked_programs, "compiled", lambda recipe: recipe.path)
    sources, stacks = tmp_path / "programs", [RocmStack(tmp_path / name) for name in ("one", "same", "other")]
    sources.mkdir()
    for stack in stacks:
        stack.headers.mkdir(parents=True)
        (stack.headers / "hip.h").write_text("other" if stack is stacks[2] else "one")
    for name in ("build.py", "a.c", "a.hip", "b.h"):
        (sources / name).write_text(name)
    monkeypatch.setattr(stacked_programs, "PROGRAMS", sources)

    def names() -> list[Path]:
        one, same, other = map(Programs, stacks)
        assert one.hip("a") == same.hip("a"), "by content"
        return [one.hip("a"), one.hsa("a"), one.hsa("a", "-shared"), one.openmp("a"), other.hip("a"), other.hsa("a"),
                one.code_object("saxpy")]  # fmt: skip

    first = names()
    assert len({*first}) == len(first) and {path.name for path in first} == {"a", "saxpy.co"} and names() == first
    (sources / "b.h").write_text("changed")
    assert not {*first} & {*names()}
    (sources / "more").mkdir()
    (sources / "more" / "a.hip").write_text("another")
    assert Programs(stacks[0]).hip("more/a").parent.parent == first[0].parent.parent != first[0].parent


@pytest.mark.parametrize("library", ["ocml.bc", f"libomptarget-amdgpu-{stacked_programs.TARGET}.bc"])
def test_programs_of_openmp_are_made_of_bitcode_too(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ROCm's device libraries, and LLVM's for target regions: the driver finds both by itself."""
    monkeypatch.setattr(stacked_programs, "compiled", lambda recipe: recipe.path)
    stack = RocmStack(tmp_path)
    stack.headers.mkdir(parents=True)
    stack.device_libraries.mkdir(parents=True)
    folder = stack.device_libraries if library == "ocml.bc" else tmp_path
    monkeypatch.setattr(stacked_programs, "LLVM", tmp_path)
    (folder / library).write_text("one")
    first = Programs(stack).openmp("openmp_vector_add")
    assert Programs(stack).openmp("openmp_vector_add") == first
    (folder / library).write_text("other")
    assert Programs(stack).openmp("openmp_vector_add") != first
