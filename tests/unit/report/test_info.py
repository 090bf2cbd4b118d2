"""What `luthier info` tells: of few objects everything, of many a line for each, with memory that does not grow."""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import sys
from pathlib import Path

import msgpack
import pytest

from luthier_py import cli
from luthier_py.binary.loader import load, load_each
from luthier_py.binary.loader.codeobject import find_metadata
from luthier_py.features.code.info import MANY, info_json, info_lines
from luthier_py.samples import SAMPLES, sample

TRIPLE = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
SAXPY = sample("saxpy").path.read_bytes()


def one_bundle(data: bytes) -> bytes:
    head = b"__CLANG_OFFLOAD_BUNDLE__" + (1).to_bytes(8, "little")
    head += b"".join(n.to_bytes(8, "little") for n in (4096, len(data), len(TRIPLE))) + TRIPLE
    return head.ljust(4096, b"\0") + data + bytes(-len(data) % 4096)


def test_one_object_and_several() -> None:
    (facts,) = [json.loads("\n".join(info_json(load_each(SAXPY, "k.co"))))]
    assert facts["kernels"][0]["name"] == "saxpy" and facts["left_out"] == []
    several = b"".join(one_bundle(s.path.read_bytes()) for s in SAMPLES[:3])
    rows = json.loads("\n".join(info_json(load_each(several, "app"))))
    kernels = [load(s.path.read_bytes()).kernels[0].name for s in SAMPLES[:3]]
    assert [row["kernels"][0]["name"] for row in rows] == kernels
    text = list(info_lines(load_each(several, "app")))
    assert all(any(name in line for line in text) for name in kernels)


def test_many_objects_are_summed_up() -> None:
    data = one_bundle(SAXPY) * (MANY + 3) + one_bundle(SAXPY[:100])
    lines = list(info_lines(load_each(data, "app")))
    assert len(lines) == MANY + 3 + 4 and not any("saxpy" in line for line in lines)
    assert "broken" in lines[-3] and "truncated" in lines[-3]
    assert f"{MANY + 4} objects with {MANY + 3} kernels" in lines[-2]
    assert f"gfx90a {MANY + 3} with {MANY + 3}" in lines[-2]
    assert sum("saxpy" in line for line in info_lines(load_each(data, "app"), kernels=True)) == MANY + 3


@pytest.mark.parametrize("options", [[], ["--kernels"], ["--json"]])
def test_memory_does_not_depend_on_the_file(tmp_path: Path, options: list[str]) -> None:
    """The peak of a child that reads 25 times as much grows by less than a tenth of what it reads."""
    large = one_bundle(SAXPY.ljust(4 << 20, b"\0"))
    peaks = []
    for count in (2, 50):
        path = tmp_path / f"{count}.so"
        with path.open("wb") as file:
            file.write(b"\x7fELF".ljust(4096, b"\0"))
            for _ in range(count):
                file.write(large)
        code = f"import sys; sys.argv = ['luthier', 'info', {str(path)!r}, *{options}]\n" \
            "from luthier_py import cli\n" \
            "import resource\n" \
            "try: cli.main()\n" \
            "except SystemExit: pass\n" \
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)))
        assert done.stdout.count("gfx90a") >= count or "saxpy" in done.stdout
        peaks.append(int(done.stderr.split()[-1]) << 10)
    assert peaks[1] - peaks[0] < 48 * len(large) / 10


def with_argument_name(name: str) -> bytes:
    """saxpy whose first argument has another name; its note is at the end of the file."""
    obj = load(SAXPY)
    found = find_metadata(obj.elf)
    assert found is not None
    note = next(note for note in found[1] if note.is_metadata)
    metadata = msgpack.unpackb(note.content)
    metadata["amdhsa.kernels"][0][".args"][0][".name"] = name
    packed = msgpack.packb(metadata)
    data = SAXPY + struct.pack("<3I", 7, len(packed), 32) + b"AMDGPU\0\0" + packed + bytes(-len(packed) % 4)
    row = obj.elf.program_header_offset + 56 * obj.segments.index(found[0])
    out = bytearray(data)
    out[row + 8 : row + 16] = len(SAXPY).to_bytes(8, "little")
    out[row + 32 : row + 40] = (len(data) - len(SAXPY)).to_bytes(8, "little")
    return bytes(out)


ODD = ["a[/b]", "k[abi:cxx11]", ":cat:", "[red]x[/red]", "a\x1b[2Jb", "a\nb", "a\u202eb", "\x9b31m"]


@pytest.mark.parametrize("name", ODD)
def test_names_are_shown_as_they_are(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "odd.co"
    path.write_bytes(with_argument_name(name))
    monkeypatch.setattr(sys, "argv", ["luthier", "info", str(path)])
    with pytest.raises(SystemExit) as done:
        cli.main()
    out = capsys.readouterr().out
    assert not done.value.code and all(line.isprintable() for line in out.splitlines())
    assert (name if name.isprintable() else name.encode("unicode_escape").decode()) in out
