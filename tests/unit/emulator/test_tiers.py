"""Code that is compiled fast at first, in children, and well when it runs often: the same results and counts."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from patience import until
from test_translation_cache import ran

from luthier_py.base import llvm, storage
from luthier_py.base.errors import Invalid
from luthier_py.base.llvm import Effort
from luthier_py.emulator.code import code, hosted_part
from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.code.compile_queue import CompileQueue
from luthier_py.emulator.code.engine import read_cached_code
from luthier_py.emulator.code.hosted_part import HostedPart
from luthier_py.emulator.options import sizes
from luthier_py.emulator.options.checks import ALL, Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import Schedule

NAMES = "matmul", "mandelbrot", "bitonic_sort", "device_call"


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every function is a large one, of several parts, and soon hot; afterwards nobody makes better code any more."""
    monkeypatch.setenv(storage.CACHE, str(tmp_path / "cache"))
    for name, value in (("LARGE", 0), ("BLOCK", 10), ("PART", 20)):
        monkeypatch.setattr(sizes, name, value)
    monkeypatch.setattr(hosted_part, "HOT", 1)
    monkeypatch.setattr(code, "LOOK_SECONDS", 0.01)
    others = set(threading.enumerate())  # of devices that other tests still have
    yield
    monkeypatch.setattr(code, "LOOK_SECONDS", 0.1)  # what a thread looks at is not collected: now it looks seldom
    watching = [each for each in set(threading.enumerate()) - others if each.name == "luthier-watch"]
    for _ in range(20):  # what a test that has failed shows holds its devices
        if any(thread.is_alive() for thread in watching):
            gc.collect()  # devices, and their code
            time.sleep(0.2)


@cache
def well_compiled(name: str) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "LARGE", 1 << 30)
        patch.setenv(storage.CACHE, "off")
        return ran(name)


@pytest.mark.parametrize("places", (1, 2))
@pytest.mark.parametrize("name", NAMES)
def test_the_same_results(name: str, places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = well_compiled(name)
    monkeypatch.setattr(code.COMPILE_QUEUE, "places", places)
    assert ran(name) == expected


@pytest.mark.parametrize("checks", [Checks.NONE, ALL])
def test_the_same_results_by_lot_and_under_checks(checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = well_compiled("bitonic_sort")
    assert ran("bitonic_sort", LaunchOptions(schedule=Schedule(3), checks=checks)) == expected


def improved(monkeypatch: pytest.MonkeyPatch) -> list[HostedPart]:
    """Parts whose code is replaced from now on."""
    found, entered = list[HostedPart](), HostedCode._enter

    def enter(hosted_code: HostedCode, hosted: HostedPart, made: bytes) -> None:
        if not hosted_code._waits(hosted):
            found.append(hosted)
        entered(hosted_code, hosted, made)

    monkeypatch.setattr(HostedCode, "_enter", enter)
    return found


def test_better_code_takes_its_place_and_is_used_at_once_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """While launches go on; also of a translation that was kept, whose text is made again."""
    expected, replaced = well_compiled("mandelbrot"), improved(monkeypatch)

    def run_again() -> bool:
        assert ran("mandelbrot") == expected
        return bool(replaced)

    for _ in range(2):
        replaced.clear()
        until(run_again)
        assert replaced
        for hosted in replaced:
            assert read_cached_code(hosted.part.digest, Effort.GENERATE) is not None
            assert read_cached_code(hosted.part.digest, Effort.FAST) is not None
            place = storage.cache_key(llvm.host_identity(), Effort.GENERATE.name, hosted.part.digest)
            Path(os.environ[storage.CACHE], "host", place[:2], place[2:]).unlink()
    assert ran("mandelbrot") == expected
    monkeypatch.setattr(hosted_part, "HOT", 1 << 60)
    used = list[tuple[Effort, bool]]()
    code_of = HostedPart.code

    def noted(hosted: HostedPart, text: Callable[[], str]) -> tuple[bytes, Effort]:
        found = code_of(hosted, text)
        used.append((found[1], read_cached_code(hosted.part.digest, Effort.GENERATE) is not None))
        return found

    monkeypatch.setattr(HostedPart, "code", noted)
    assert ran("mandelbrot") == expected
    assert used and all((effort is Effort.GENERATE) == well for effort, well in used)


@pytest.mark.parametrize("error", (Invalid("LLVM ended without a word"), OSError("no more processes")))
def test_children_that_come_to_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = well_compiled("matmul")

    def fail(work: Callable[[], bytes], seconds: int) -> bytes:
        raise error

    monkeypatch.setattr(code.COMPILE_QUEUE, "places", 2)
    monkeypatch.setattr(llvm, "apart", fail)
    assert ran("matmul") == expected


def test_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = well_compiled("matmul")
    monkeypatch.setenv(storage.CACHE, "off")
    monkeypatch.setattr(code.COMPILE_QUEUE, "places", 2)
    assert ran("matmul") == expected


def test_children_end() -> None:
    with pytest.raises(Invalid, match="ended without a word"):
        llvm.apart(lambda: time.sleep(600) or b"", 1)  # type: ignore[func-returns-value]


def test_what_is_wanted_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Works run in the order in which they came, but for one that somebody waits for."""
    order, queue, may_go_on = list[int](), CompileQueue(1), threading.Event()

    def apart(work: Callable[[], bytes], seconds: int) -> bytes:
        may_go_on.wait()
        return work()

    def work(number: int) -> Callable[[], bytes]:
        def give() -> bytes:
            order.append(number)
            return bytes([number])

        return give

    monkeypatch.setattr(llvm, "apart", apart)
    jobs = [queue.begin(work(number)) for number in range(4)]
    while jobs[0] in queue._jobs:
        time.sleep(0.001)
    found = list[bytes | None]()
    waiting = threading.Thread(target=lambda: found.append(queue.result(jobs[3])))
    waiting.start()
    while queue._jobs[0] is not jobs[3]:
        time.sleep(0.001)
    may_go_on.set()
    waiting.join()
    for job in jobs:
        job.wait()
    assert order == [0, 3, 1, 2] and found == [b"\3"]
