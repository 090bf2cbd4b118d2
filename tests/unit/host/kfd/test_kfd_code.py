"""Names of kernels by ROCr's list of loaded code objects, in a program that keeps such a list as ROCr does."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

from driven import drive

from luthier_py.samples import SAMPLES

CODE = """
ring = Ring(kfd, drm, ARENA + (1 << 20), 2)
for at in range(0, ring.ring_bytes, 64):
    ring.put(at, b"\\1\\0")
base = ARENA + (16 << 20)
code = Memory(kfd, drm, base, 1 << 20)
rest = Memory(kfd, drm, base + (1 << 20), 4 * PAGE)
kernarg, done = rest.address, rest.address + PAGE
ctypes.memmove(kernarg, struct.pack("<QQQ3I6H", *[rest.address + 2 * PAGE] * 3, 1, 1, 1, 64, 1, 1, 0, 0, 0), 48)

image = ctypes.create_string_buffer(1 << 16)
name = ctypes.create_string_buffer(200)
entry = (ctypes.c_uint64 * 5)(base, ctypes.addressof(name))            # a link_map: l_addr, l_name
listed = (ctypes.c_uint64 * 5)(1, ctypes.addressof(entry), 0, 1)       # an r_debug: r_version, r_map, r_brk, r_state
ioctl(kfd, 0x25, "QII", ctypes.addressof(listed), 1, 0)

def load(data, segments, freed=b""):
    listed[3] = 1                                                      # RT_ADD: it is being changed
    ctypes.memmove(image, data, len(data))
    name.value = f"memory://{os.getpid()}#offset={ctypes.addressof(image)}&size={len(data)}".encode()
    for address, begin, size in segments:
        ctypes.memmove(base + address, data[begin:begin + size], size)
    ctypes.memmove(image, freed, len(freed))
    listed[3] = 0                                                      # RT_CONSISTENT

def dispatch(index, kernel):
    ctypes.memset(done, 0, 64)
    ctypes.c_int64.from_address(done + 8).value = 1
    sizes = 64, 1, 1, 0, 64, 1, 1, 0, 0
    ring.put(64 * index, struct.pack("<HHHHHHIIIIIQQQQ", 0x1502, 1, *sizes, base + kernel, kernarg, 0, done))
    ring.doorbell.value = index
    until(lambda: ctypes.c_int64.from_address(done + 8).value == 0)
"""


FILE = """
    sys.path.insert(0, {root!r})
    import io, json
    from elftools.elf.elffile import ELFFile
    data = open({path!r}, "rb").read()
    elf = ELFFile(io.BytesIO(data))
    segments = [(s["p_vaddr"], s["p_offset"], s["p_filesz"]) for s in elf.iter_segments("PT_LOAD")]
    kernel = next(s["st_value"] for s in elf.get_section_by_name(".symtab").iter_symbols() if s.name.endswith(".kd"))
"""


def names(text: str, folder: Path) -> list[str]:
    """Of the kernels that ``text`` has dispatched."""
    path = next(sample for sample in SAMPLES if sample.name == "vector_add").path
    before = CODE + dedent(FILE).format(root=str(Path(__file__).resolve().parents[4]), path=str(path))
    profile = folder / "profile"
    drive(text, folder, before=before, LUTHIER_DEVICE_PROFILE=str(profile))
    return [json.loads(line)["kernel"] for line in profile.read_text().splitlines()]


def test_code_that_takes_the_place_of_other_code_has_its_own_names(tmp_path: Path) -> None:
    """Between two rings one module is unloaded and another loaded: entry, name and code lie where the former's did."""
    text = """
    for index in range(6):
        load(data.replace(b"vector_add", b"vector_%03d" % (index // 2)), segments)
        dispatch(index, kernel)
    """
    expected = ["vector_000", "vector_000", "vector_001", "vector_001", "vector_002", "vector_002"]
    assert names(text, tmp_path) == expected


def test_a_file_that_is_freed_once_it_is_loaded(tmp_path: Path) -> None:
    """What is on the heap in its place has no names, or another one's."""
    text = """
    load(data, segments, freed=bytes(len(data)))
    dispatch(0, kernel)
    load(data.replace(b"vector_add", b"vector_001"), segments, freed=data)
    dispatch(1, kernel)
    """
    assert names(text, tmp_path) == ["vector_add", "vector_001"]
