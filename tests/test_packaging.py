"""What is given to others is the repository: the source distribution has its files, and one version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path

import pytest

import luthier_py

ROOT = Path(__file__).resolve().parent.parent
MADE = {".git", "PKG-INFO", "setup.cfg"}  # beside what .gitignore names: by git, and by setuptools in a distribution


def ignored() -> list[str]:
    return [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line]


def sources(folder: Path, patterns: list[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in MADE or any(fnmatch(path.name, pattern) for pattern in patterns):
            continue
        if path.is_dir():
            yield from sources(path, patterns)
        else:
            yield path


def built(tmp_path_factory: pytest.TempPathFactory, kind: str) -> Path:
    """From a copy, since that writes beside the sources."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("out")
    for path in sources(ROOT, ignored()):
        place = copy / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
    build = "import sys; from setuptools import build_meta; build_meta.build_" + kind + "(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(out)], cwd=copy, check=True, capture_output=True)
    (file,) = out.iterdir()
    return file


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> tarfile.TarFile:
    return tarfile.open(built(tmp_path_factory, "sdist"))


def test_a_wheel_has_the_files_that_are_no_modules(tmp_path_factory: pytest.TempPathFactory) -> None:
    names = set(zipfile.ZipFile(built(tmp_path_factory, "wheel")).namelist())
    wanted = {path.relative_to(ROOT).as_posix() for path in sources(ROOT / "luthier_py", ignored())
              if path.suffix in (".h", ".c") and path.relative_to(ROOT).parts[1] in ("rewrite", "host")
              or path.suffix == ".bc"}
    assert "luthier_py/rewrite/tool/include/luthier/hooks.h" in wanted and wanted <= names


def test_the_source_distribution_is_the_repository(distribution: tarfile.TarFile) -> None:
    names = {name.partition("/")[2] for name in distribution.getnames() if distribution.getmember(name).isfile()}
    wanted = {path.relative_to(ROOT).as_posix() for path in sources(ROOT, ignored())}
    assert {name for name in names if ".egg-info/" not in name} - MADE == wanted


def test_programs_stay_programs(distribution: tarfile.TarFile) -> None:
    modes = {member.name.partition("/")[2]: member.mode for member in distribution}
    for path in sources(ROOT, ignored()):
        assert bool(modes[path.relative_to(ROOT).as_posix()] & 0o100) == os.access(path, os.X_OK), path


def test_one_version(distribution: tarfile.TarFile) -> None:
    (info,) = [name for name in distribution.getnames() if re.fullmatch(r"[^/]*/PKG-INFO", name)]
    file = distribution.extractfile(info)
    assert file is not None and f"\nVersion: {luthier_py.__version__}\n" in file.read().decode()
    assert version("luthier-py") == luthier_py.__version__
    files = [path for path in sources(ROOT, ignored()) if path.suffix in (".py", ".toml")]
    having = [path for path in files if f'"{luthier_py.__version__}"' in path.read_text()]
    assert having == [ROOT / "luthier_py" / "__init__.py"]
    assert f"\n## {luthier_py.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
