"""What `make test` chooses of the nightly tests, tiers, order and parts: from kept files that are written here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from suite import files
from suite.choosing import choose, rank_files, some_cases
from suite.files import file_digests
from suite.kept import (
    UNKNOWN_SECONDS,
    Durations,
    Kept,
    Reach,
    ranges,
    ranges_text,
    read_durations,
    read_reach,
    source_files,
    write_durations,
    write_reach,
)
from suite.order import LONG_FILE, group_of, order
from suite.plugin import Suite
from suite.reach import counted, function_lines
from suite.tiers import LONG, Tier, tier_of

SOURCES = dict(zip(("luthier_py/report/a.py", "luthier_py/isa/b.py", "luthier_py/isa/table.gz", "luthier_py/hip/c.c"),
                   "1234", strict=True))  # fmt: skip
REACH = Reach(SOURCES, {
    "tests/r.py": frozenset({"luthier_py/report/a.py"}),
    "tests/i.py": frozenset({"luthier_py/isa/b.py"}),
    "tests/all.py": frozenset({"luthier_py/report/a.py", "luthier_py/isa/b.py", "luthier_py/hip/c.c"}),
}, {})  # fmt: skip
TESTS = [f"tests/{file}.py::test_{number}" for file in ("r", "i", "all", "other") for number in range(10)]
DURATIONS = Durations({f"tests/{file}.py": {f"test_{number}": Kept(2.0, "", 0.0) for number in range(10)}
                       for file in ("r", "i", "all", "other")}, {})  # fmt: skip


def chosen(changed: dict[str, str], seconds: float, seed: int = 1, edited: frozenset[str] = frozenset()):
    files = {test.partition("::")[0] for test in TESTS}
    ranks = rank_files(files, REACH, REACH.changed({**SOURCES, **changed}), edited)
    return choose(dict.fromkeys(TESTS, False), DURATIONS, ranks, seconds, seed)


def of(tests: frozenset[str]) -> set[str]:
    return {test.partition("::")[0] for test in tests}


def test_a_change_chooses_what_executes_it_and_most_of_what_executes_little_else() -> None:
    choice = chosen({"luthier_py/report/a.py": "9"}, 24.0)
    assert of(choice.reached) == {"tests/r.py", "tests/all.py"} and len(choice.reached) == 9
    assert chosen({"luthier_py/report/a.py": "9"}, 3.0).reached < {test for test in TESTS if "/r.py" in test}
    assert choice.left + len(choice.reached) + len([t for t in choice.at_random if "/r." in t or "/all." in t]) == 20


def test_a_table_stands_for_what_is_executed_in_its_folder() -> None:
    assert of(chosen({"luthier_py/isa/table.gz": "9"}, 50.0).reached) == {"tests/i.py", "tests/all.py"}
    tables = {**SOURCES, "luthier_py/isa/tables/index.gz": "5"}
    assert {"luthier_py/isa/b.py"} == REACH.changed(tables) & SOURCES.keys()
    assert REACH.changed({**SOURCES, "luthier_py/isa/new/new.py": "5"}) == {"luthier_py/isa/new/new.py"}
    assert REACH.changed(SOURCES) == frozenset()
    assert "luthier_py/hip/new.c" in REACH.changed({**SOURCES, "luthier_py/hip/new.c": "5"})
    assert "luthier_py/hip/c.c" in REACH.changed({name: text for name, text in SOURCES.items() if "hip" not in name})


def test_an_edited_file_comes_first() -> None:
    assert of(chosen({}, 3.0, edited=frozenset({"tests/other.py"})).reached) == {"tests/other.py"}


def test_among_equals_the_seed_decides() -> None:
    edited = frozenset({"tests/all.py", "tests/i.py", "tests/r.py"})
    assert len({frozenset(of(chosen({}, 3.0, seed, edited).reached)) for seed in range(10)}) > 1


def test_without_a_change_all_time_is_for_tests_at_random_by_the_seed() -> None:
    one, other = chosen({}, 20.0, 1), chosen({}, 20.0, 2)
    assert not one.reached and len(one.at_random) == 10 and one == chosen({}, 20.0, 1)
    assert one.at_random != other.at_random
    changed = {"luthier_py/isa/b.py": "9"}
    assert any("other" in test for seed in range(3) for test in chosen(changed, 24.0, seed).at_random)


def test_a_shared_fixture_is_paid_once() -> None:
    tests = {f"tests/f.py::test_{number}": False for number in range(5)}
    durations = Durations({"tests/f.py": {f"test_{number}": Kept(1.0, "", 10.0) for number in range(5)}}, {})
    assert len(choose(tests, durations, {"tests/f.py": 1.0}, 20.0, 0).reached) == 5
    assert durations.seconds("tests/f.py::test_0") == 3.0 and durations.file_seconds == {"tests/f.py": 15.0}
    assert choose(tests, durations, {}, 10.0, 0).tests == frozenset()


def test_tiers() -> None:
    kept = {"quick": Kept(0.01, "k", 0.0), "long": Kept(LONG, "", 0.0), "short": Kept(0.2, "", 0.1),
            "cases[first]": Kept(3.0, "p", 0.0), "plain[first]": Kept(0.5, "", 0.0)}
    durations = Durations({"a.py": kept}, {})
    for name, marks, tier in (
        ("new", set(), Tier.CHECK), ("quick", set(), Tier.TEST), ("long", set(), Tier.NIGHTLY),
        ("short", set(), Tier.TEST), ("new", {"slow"}, Tier.NIGHTLY), ("long", {"core"}, Tier.TEST),
        ("long", {"check"}, Tier.CHECK), ("cases[other]", set(), Tier.TEST), ("plain[other]", set(), Tier.CHECK),
    ):  # fmt: skip
        assert tier_of(f"a.py::{name}", marks, durations) is tier, (name, marks)


def test_long_groups_come_first_and_long_files_are_divided() -> None:
    names = [f"test[{word}-{turn}]" for turn in range(2) for word in "ab"]
    long = {name: Kept(LONG_FILE / 4, "", 0.0) for name in names}
    durations = Durations({"long.py": long, "short.py": {"test": Kept(1.0, "", 0.0)}}, {})
    assert group_of("long.py::test[a-0]", durations) == "long.py::test[a"
    assert group_of("short.py::test", durations) == "short.py"
    others = ["short.py::test", "new.py::test"]
    assert order([*others, *(f"long.py::{name}" for name in names)], durations) == [
        *(f"long.py::test[{name}]" for name in ("a-0", "a-1", "b-0", "b-1")), *others]  # fmt: skip


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    write_durations(Durations(DURATIONS.files, {"tests/r.py": 3}, "2026-01-01"), tmp_path / "durations.json")
    assert read_durations(tmp_path / "durations.json") == Durations(DURATIONS.files, {"tests/r.py": 3}, "2026-01-01")
    write_reach(REACH, tmp_path / "reach.json")
    assert read_reach(tmp_path / "reach.json") == REACH
    assert read_durations(tmp_path / "none") == Durations({}, {})
    assert read_reach(tmp_path / "none") == Reach({}, {}, {})
    for numbers in ([], [3], [0, 1, 2, 5, 7, 8]):
        assert list(ranges(ranges_text(reversed(numbers)))) == numbers


def test_every_table_and_template_stands_for_something() -> None:
    reach = read_reach()
    executed = frozenset().union(*reach.tests.values())
    for name in ("luthier_py/isa/tables/index.json.gz", "luthier_py/report/templates/page.html"):
        now = {**reach.sources, name: "another"}
        assert any(source.startswith(name[:14]) for source in reach.changed(now) & executed), name


def test_files_are_known_by_all_that_they_are_made_of() -> None:
    assert "tests/unit/suite/test_choice.py" in file_digests()
    assert {"luthier_py/rewrite/pipeline.py", "luthier_py/host/hip/ring.c"} <= source_files().keys()
    assert {"tests/data/__init__.py", "tests/data/reduce.co"} <= source_files().keys()  # samples
    assert any(name.endswith(".gz") for name in source_files())


def test_lines_of_functions_do_not_count_what_an_import_runs(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("import os\n\ndef f(x=1):\n    return (\n        x)\n\nclass C:\n    y = 1\n    g = lambda: 2\n")
    assert function_lines(str(path)) == {4, 5, 9}


@pytest.mark.parametrize("length, ran", [(-16, False), (8, True)])
def test_counters_that_are_all_zero_did_not_run(length: int, ran: bool) -> None:
    head = b"adcg" + b"*22B" + bytes(8)
    function = (0x01000000).to_bytes(4, "little") + (12).to_bytes(4, "little") + bytes(12)
    counters = (0x01A10000).to_bytes(4, "little") + length.to_bytes(4, "little", signed=True) + bytes(max(length, 0))
    assert counted(head + function + counters) is ran
    assert not counted(b"") and not counted(b"something else entirely")


def test_cases_of_each_function() -> None:
    tests = [*(f"a.py::test_many[{number}]" for number in range(9)), "a.py::test_one", "b.py::test_many[0]"]
    found = some_cases(tests, 1, 3)
    assert len(found) == 3 and {"a.py::test_one", "b.py::test_many[0]"} < found <= set(tests)
    assert len({frozenset(some_cases(tests, 1, seed)) for seed in range(9)}) > 1 and len(some_cases(tests, 2, 0)) == 4


def test_a_new_test_is_quick_also_beside_long_ones(tmp_path: Path) -> None:
    kept, path = tmp_path / "durations.json", tmp_path / "test_long.py"
    long = {name: Kept(2.0, "", 0.0) for name in ("test_old[a]", "TestIt::test_its")}
    write_durations(Durations({"test_long.py": long}, {}), kept)
    suite = Suite(SimpleNamespace(rootpath=tmp_path, option=SimpleNamespace(tier="check", kept=kept)))
    old = "def test_old(): ...\nclass TestIt:\n    def test_its(self): ...\n"
    other = "class TestOther:\n    def test_its(self): ...\n"
    for text, ignored in ((old, True), (f"{old}def test_new(): ...\n", False), (f"{old}{other}", False),
                          (f"@pytest.mark.check\n{old}", False)):  # fmt: skip
        path.write_text(text)
        assert bool(suite.pytest_ignore_collect(path)) is ignored, text


def test_what_a_file_imports_of_packages_belongs_to_it(tmp_path: Path) -> None:
    for name, text in (("package/__init__.py", ""), ("package/one.py", "x = 1\n"), ("module.py", "y = 1\n"),
                       ("test_it.py", "import module\nfrom package.one import x\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {path.relative_to(tmp_path).as_posix() for path in files._made_of(tmp_path / "test_it.py")}
    assert found == {"test_it.py", "module.py", "package/__init__.py", "package/one.py"}


def test_programs_that_a_file_names_belong_to_it() -> None:
    worker = files.TESTS / "unit" / "host" / "worker"
    assert worker / "wave_trace.py" in files._made_of(worker / "test_channels_under_programs.py")
    assert worker / "wave_trace.py" in files._made_of(files.TESTS / "unit" / "host" / "stack" / "test_rocm_channels.py")
    assert worker / "foreign_numbers.py" in files._made_of(worker / "test_iree.py")


def test_a_slow_case_that_never_ran_takes_what_others_of_its_function_do():
    durations = Durations({"a.py": {"test[1]": Kept(200.0, "", 0.0), "test[2]": Kept(100.0, "", 0.0)}}, {})
    assert durations.seconds("a.py::test[3]", slow=True) == 150
    assert durations.seconds("a.py::test_other[3]", slow=True) == UNKNOWN_SECONDS
    assert durations.seconds("a.py::test[3]") < 1
    assert not choose({"a.py::test[3]": True}, durations, {}, 100, seed=1).tests
