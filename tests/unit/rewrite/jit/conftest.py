"""Hooks compiled for a target, as text; the disk cache is not the user's, but one for all tests here.

What counts how often something is compiled, or how it is found, asks for ``own_cache``, which begins empty.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.jit import Payload, PayloadKey, compile_keys
from luthier_py.rewrite.tool import Constant, Hook

Compile = Callable[..., Payload]


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hooks") / "cache"


@pytest.fixture(autouse=True)
def cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(session_cache))


@pytest.fixture
def own_cache(cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compile_for(hook: Hook, name: str = "gfx90a", wave_size: int = 64, *constants: Constant | None) -> Payload:
    """One hook for one target."""
    given = (*constants, *[None] * (len(hook.signature.parameters) - len(constants)))
    key = PayloadKey(hook, given)
    return compile_keys({key: None}, instruction_set(target(name), wave_size))[key]


def text_of(payload: Payload, name: str = "gfx90a", wave_size: int = 64) -> list[str]:
    """Assembly lines, with single blanks."""
    isa = instruction_set(target(name), wave_size)
    return [" ".join(isa.text(inst).split()) for inst in payload.instrs]


@pytest.fixture
def compiled() -> Compile:
    return compile_for


@pytest.fixture
def assembly() -> Callable[..., list[str]]:
    return lambda hook, name="gfx90a", wave_size=64, *constants: text_of(
        compile_for(hook, name, wave_size, *constants), name, wave_size
    )
