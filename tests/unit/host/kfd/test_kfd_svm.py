"""Shared virtual memory (AMDKFD_IOC_SVM): pages of the program's own that the device reaches where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from driven import drive

from luthier_py.host.kfd.topology import USE_SVM

ALL = 0xFFFFFFFF
SVM = """
PREFERRED, PREFETCH, ACCESS, IN_PLACE, NO_ACCESS, SET, CLEAR, GRAINS = range(8)
HOST, NOWHERE, COHERENT, READ_MOSTLY = 0, 0xffffffff, 2, 32

def svm(operation, address, size, *pairs):
    '''Attributes after the call.'''
    numbers = [number for pair in pairs for number in pair]
    form = f"QQII{len(numbers)}I"
    fields = ioctl(kfd, 0x20, form, address, size, operation, len(pairs), *numbers)
    return [*zip(fields[4::2], fields[5::2])]

def give(address, size, *pairs):
    svm(0, address, size, *pairs)

def ask(address, size, *pairs):
    return svm(1, address, size, *pairs)

def copy(to, start, size):
    '''By SDMA, which reaches what kernels reach.'''
    at = ring.doorbell.value
    ring.put(at, struct.pack("<7I", 1, size - 1, 0, start & 0xffffffff, start >> 32, to & 0xffffffff, to >> 32))
    ring.doorbell.value = at + 28
    until(lambda: ring.read_index() == at + 28)

def byte(address):
    return ctypes.string_at(address, 1)[0]

ring = Ring(kfd, drm, ARENA + (1 << 20), 1)
device = Memory(kfd, drm, ARENA + (4 << 20), PAGE)
"""


def test_both_sides_see_the_pages_whoever_writes(tmp_path: Path) -> None:
    """Also what was never written before; and pages beside them are as they were."""
    text = """
    own = place(64 * PAGE)
    ctypes.memset(own, 7, 2 * PAGE)
    give(own + PAGE, 60 * PAGE, (ACCESS, GPU))
    ctypes.memset(own + 2 * PAGE - 8, 9, 16)
    copy(device.address, own + 2 * PAGE - 16, 24)
    print(ctypes.string_at(device.address, 24).hex())
    copy(own + 50 * PAGE, device.address, 24)
    print(ctypes.string_at(own + 50 * PAGE, 24).hex(), byte(own), byte(own + 63 * PAGE))
    """
    both = "07" * 8 + "09" * 16
    assert drive(text, tmp_path, before=SVM).splitlines() == [both, f"{both} 7 0"]


def test_attributes_are_of_pages_and_sum_up_over_ranges(tmp_path: Path) -> None:
    """As svm_range_get_attr in the driver: what is the same everywhere, or else nothing certain."""
    text = """
    own = place(8 * PAGE)
    every = (PREFERRED, 0), (PREFETCH, 0), (ACCESS, GPU), (SET, 0), (CLEAR, 0), (GRAINS, 0)
    print(ask(own, 8 * PAGE, *every))
    give(own, 4 * PAGE, (PREFERRED, GPU), (IN_PLACE, GPU), (SET, READ_MOSTLY), (GRAINS, 5))
    give(own + 2 * PAGE, 4 * PAGE, (PREFETCH, HOST), (CLEAR, COHERENT))
    for start, size in (0, 2), (2, 2), (4, 2), (6, 2), (0, 4), (0, 8):
        print(ask(own + start * PAGE, size * PAGE, *every))
    give(own, 8 * PAGE, (ACCESS, GPU))
    print(ask(own, 8 * PAGE, (ACCESS, GPU)))
    give(own + PAGE, PAGE, (NO_ACCESS, GPU))
    print(ask(own, 8 * PAGE, (ACCESS, GPU)), ask(own, PAGE, (ACCESS, GPU)))
    """
    assert drive(text, tmp_path, before=SVM).splitlines() == [
        f"[(0, {ALL}), (1, {ALL}), (4, 4096), (5, 3), (6, {ALL - 3}), (7, 9)]",
        f"[(0, 4096), (1, {ALL}), (3, 4096), (5, 35), (6, {ALL - 35}), (7, 5)]",
        f"[(0, 4096), (1, 0), (3, 4096), (5, 33), (6, {ALL - 33}), (7, 5)]",
        f"[(0, {ALL}), (1, 0), (4, 4096), (5, 1), (6, {ALL - 1}), (7, 9)]",
        f"[(0, {ALL}), (1, {ALL}), (4, 4096), (5, 3), (6, {ALL - 3}), (7, 9)]",
        f"[(0, 4096), (1, {ALL}), (3, 4096), (5, 33), (6, {ALL - 35}), (7, 5)]",
        f"[(0, {ALL}), (1, {ALL}), (4, 4096), (5, 1), (6, {ALL - 35}), (7, 5)]",
        "[(2, 4096)]",
        "[(4, 4096)] [(2, 4096)]",
    ]


def test_what_the_program_unmaps_is_shared_no_more(tmp_path: Path) -> None:
    """The next memory there has neither the pages nor the attributes of what was there, and its content is its own."""
    text = """
    own = place(4 * PAGE)
    ctypes.memset(own, 7, 4 * PAGE)
    give(own, 4 * PAGE, (ACCESS, GPU), (PREFERRED, GPU))
    libc.munmap(ctypes.c_void_p(own + PAGE), 2 * PAGE)
    print(refused(ask, own, 4 * PAGE, (PREFERRED, 0)), refused(give, own, 4 * PAGE, (ACCESS, GPU)))
    assert place(2 * PAGE, own + PAGE) == own + PAGE
    print(ask(own + PAGE, 2 * PAGE, (PREFERRED, 0), (ACCESS, GPU)), ask(own, PAGE, (PREFERRED, 0)))
    give(own + PAGE, 2 * PAGE, (ACCESS, GPU))
    copy(device.address, own + PAGE, 4)
    copy(device.address + 4, own + 3 * PAGE, 4)
    print(ctypes.string_at(device.address, 8).hex(), byte(own))
    """
    assert drive(text, tmp_path, before=SVM).splitlines() == [
        "EINVAL EFAULT", f"[(0, {ALL}), (4, 4096)] [(0, 4096)]", "0000000007070707 7"]


def test_memory_goes_back_when_the_program_unmaps_it(tmp_path: Path) -> None:
    """The file that both sides share grows by what is mapped, however often."""
    text = """
    M = 1 << 20
    file = next(f"/proc/self/fd/{fd}" for fd in range(300) if os.path.exists(f"/proc/self/fd/{fd}") and
                "luthier-memory" in os.readlink(f"/proc/self/fd/{fd}"))
    def kept():
        return os.stat(file).st_blocks * 512 // M
    before = kept()
    for _ in range(8):
        own = place(16 * M)
        ctypes.memset(own, 1, 16 * M)
        give(own, 16 * M, (ACCESS, GPU))
        libc.munmap(ctypes.c_void_p(own), ctypes.c_size_t(16 * M))
    give(place(PAGE), PAGE, (ACCESS, GPU))
    print(kept() - before < 2)
    size = 1 << 36                                         # costs nothing until it is written
    large = libc.mmap(None, size, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
    give(large, size, (ACCESS, GPU))
    ctypes.memset(large + size // 2, 5, 1)
    copy(device.address, large + size // 2, 1)
    print(kept() - before < 2, byte(device.address))
    """
    assert drive(text, tmp_path, before=SVM).splitlines() == ["True", "True 5"]


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    text = """
    own = place(2 * PAGE)
    readable = libc.mmap(None, PAGE, 1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    print(refused(give, own + 1, PAGE, (ACCESS, GPU)), refused(give, own, 5, (ACCESS, GPU)), refused(give, own, 0))
    print(refused(svm, 2, own, PAGE), refused(give, own, PAGE, (8, 0)), refused(give, own, PAGE, (ACCESS, 77)))
    print(refused(give, own, PAGE, (PREFERRED, 77)), refused(ask, own, PAGE, (IN_PLACE, GPU)))
    print(refused(give, 1 << 30, PAGE, (ACCESS, GPU)), refused(give, readable, PAGE, (ACCESS, GPU)))
    print(refused(give, device.address, PAGE, (ACCESS, GPU)))                       # the device's own
    print(refused(ioctl, kfd, 0x20, "QQII", own, PAGE, 0, 9), refused(give, own, PAGE, (ACCESS, GPU)))
    """
    assert drive(text, tmp_path, before=SVM).splitlines() == [
        "EINVAL EINVAL EINVAL", "EINVAL EINVAL EINVAL", "EINVAL EINVAL", "EFAULT EFAULT", "EFAULT", "EINVAL nothing"]


def test_pages_that_are_registered_and_shared(tmp_path: Path) -> None:
    """User pointers and shared virtual memory at once, in either order: what goes leaves the other one's pages."""
    text = """
    own = place(3 * PAGE)
    ctypes.memset(own, 3, 3 * PAGE)
    user = Memory(kfd, drm, own, 2 * PAGE, USERPTR | WRITABLE)
    give(own + PAGE, 2 * PAGE, (ACCESS, GPU))
    user.free()
    ctypes.memset(own + PAGE, 8, PAGE)
    copy(device.address, own + PAGE, 4)
    again = Memory(kfd, drm, own, 3 * PAGE, USERPTR | WRITABLE)
    ctypes.memset(own + 2 * PAGE, 9, PAGE)
    copy(device.address + 4, own + 2 * PAGE, 4)
    again.free()
    copy(device.address + 8, own + 2 * PAGE, 4)
    print(ctypes.string_at(device.address, 12).hex(), byte(own))
    """
    assert drive(text, tmp_path, before=SVM).splitlines() == ["080808080909090909090909 3"]


def test_a_child_has_a_copy(tmp_path: Path) -> None:
    text = """
    own = place(PAGE)
    ctypes.memset(own, 1, PAGE)
    give(own, PAGE, (ACCESS, GPU))
    child = os.fork()
    if child == 0:
        ctypes.memset(own, 2, PAGE)
        os._exit(byte(own))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), byte(own))
    copy(device.address, own, 1)
    print(byte(device.address))
    """
    assert drive(text, tmp_path, before=SVM).splitlines() == ["2 1", "1"]


@pytest.mark.parametrize("how", ["named", "memfd"])
def test_pages_of_a_file_stay_the_file_s(tmp_path: Path, how: str) -> None:
    text = """
    file = os.memfd_create("pages") if sys.argv[1:] else os.open("pages", os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(file, 2 * PAGE)
    own = libc.mmap(None, 2 * PAGE, 3, mmap.MAP_SHARED, file, 0)
    give(own + PAGE, PAGE, (ACCESS, GPU))
    device.word(0).value = 77
    copy(own + PAGE, device.address, 4)
    print(os.pread(file, 4, PAGE), ctypes.c_uint32.from_address(own + PAGE).value)
    libc.munmap(ctypes.c_void_p(own), 2 * PAGE)
    assert place(2 * PAGE, own) == own
    give(own, 2 * PAGE, (ACCESS, GPU))
    copy(device.address, own + PAGE, 4)
    print(device.word(0).value, os.pread(file, 4, PAGE))
    """
    text = f"import os\nos.chdir({str(tmp_path)!r})\nsys.argv[1:] = {['memfd'] * (how == 'memfd')}\n" + "\n".join(
        line[4:] for line in text.splitlines())
    assert drive(text, tmp_path, before=SVM).splitlines() == [f"{b'M' + bytes(3)} 77", f"0 {b'M' + bytes(3)}"]


@pytest.mark.parametrize(("asked", "said"), [(None, "0x0"), ("0", "0x0"), ("1", "0x8000000")])
def test_topology_says_that_it_is_there_where_it_is_asked_for(
    asked: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise thunks do not use it (HSA_CAP_SVMAPI_SUPPORTED of kfd_sysfs.h)."""
    monkeypatch.delenv(USE_SVM, raising=False)
    if asked is not None:
        monkeypatch.setenv(USE_SVM, asked)
    text = """
    rows = dict(line.split() for line in open("/sys/class/kfd/kfd/topology/nodes/1/properties"))
    print(hex(int(rows["capability"]) & 0x0800_0000))
    """
    assert drive(text, tmp_path).splitlines() == [said]
