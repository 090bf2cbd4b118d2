"""Memory that program and worker share: buffers, the program's own pages, children of fork."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from driven import drive

COPY = """
def copy(ring, to, start, size):
    '''By SDMA: the worker reads and writes, this program looks.'''
    at = ring.doorbell.value
    words = [1, size - 1, 0, start & 0xffffffff, start >> 32, to & 0xffffffff, to >> 32]
    ring.put(at, struct.pack("<7I", *words))
    ring.doorbell.value = at + 28
    until(lambda: ring.read_index() == at + 28)

ring = Ring(kfd, drm, ARENA + (1 << 20), 1)
"""


def test_the_program_s_own_pages_are_shared_and_given_back(tmp_path: Path) -> None:
    text = """
    own = place(3 * PAGE)
    ctypes.memset(own, 7, 3 * PAGE)
    device = Memory(kfd, drm, ARENA + (4 << 20), PAGE)
    user = Memory(kfd, drm, own, 3 * PAGE, USERPTR | WRITABLE)
    copy(ring, device.address, own + PAGE, 16)
    ctypes.memset(own + PAGE, 9, 16)                       # after it was registered: seen as well
    copy(ring, device.address + 16, own + PAGE, 16)
    print(ctypes.string_at(device.address, 32).hex())
    copy(ring, own + 2 * PAGE, device.address, 32)
    print(ctypes.string_at(own + 2 * PAGE, 32).hex())
    user.free()
    ctypes.memset(own, 5, 3 * PAGE)
    print(ctypes.string_at(own + 3 * PAGE - 1, 1).hex(), "luthier" in [m for m in open("/proc/self/maps") if
          m.startswith(f"{own:x}-")][0])
    """
    both = "07" * 16 + "09" * 16
    assert drive(text, tmp_path, before=COPY).splitlines() == [both, both, "05 False"]


def test_buffers_that_share_pages_share_them_as_long_as_one_is_there(tmp_path: Path) -> None:
    text = """
    own = place(4 * PAGE)
    ctypes.memset(own, 3, 4 * PAGE)
    device = Memory(kfd, drm, ARENA + (4 << 20), PAGE)
    first = Memory(kfd, drm, own, 3 * PAGE, USERPTR | WRITABLE)
    second = Memory(kfd, drm, own + 2 * PAGE, 2 * PAGE, USERPTR | WRITABLE)
    first.free()
    ctypes.memset(own + 2 * PAGE, 8, PAGE)
    copy(ring, device.address, own + 2 * PAGE, 4)
    print(ctypes.string_at(device.address, 4).hex(), ctypes.string_at(own, 4).hex())
    second.free()
    print(ctypes.string_at(own + 2 * PAGE, 4).hex(), ctypes.string_at(own + 3 * PAGE, 4).hex())
    """
    assert drive(text, tmp_path, before=COPY).splitlines() == ["08080808 03030303", "08080808 03030303"]


def test_what_was_not_unmapped_meanwhile_keeps_its_content(tmp_path: Path) -> None:
    text = """
    own = place(3 * PAGE)
    ctypes.memset(own, 7, 3 * PAGE)
    user = Memory(kfd, drm, own, 3 * PAGE, USERPTR | WRITABLE)
    libc.munmap(ctypes.c_void_p(own + PAGE), PAGE)
    user.free()
    print(ctypes.string_at(own, 2).hex(), ctypes.string_at(own + 2 * PAGE, 2).hex())
    print(sum("luthier-memory" in row for row in open("/proc/self/maps") if f"{own:x}"[:8] == row[:8]))
    """
    assert drive(text, tmp_path, before=COPY).splitlines() == ["0707 0707", "0"]


def test_pages_that_cannot_be_shared_are_refused(tmp_path: Path) -> None:
    text = """
    shared = mmap.mmap(-1, PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(shared))
    print(refused(Memory, kfd, drm, address, PAGE, USERPTR | WRITABLE))        # others may have it mapped
    readable = libc.mmap(None, PAGE, 1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    print(refused(Memory, kfd, drm, readable, PAGE, USERPTR | WRITABLE))
    print(refused(Memory, kfd, drm, 1 << 30, PAGE, USERPTR | WRITABLE))        # nothing is there
    print(Memory(kfd, drm, place(PAGE), PAGE, USERPTR | WRITABLE).handle > 0)  # and the next goes well
    """
    assert drive(text, tmp_path, before=COPY).splitlines() == ["EFAULT", "EFAULT", "EFAULT", "True"]


def test_pages_of_a_file_are_shared_by_its_name(tmp_path: Path) -> None:
    """Whatever that is, or by a descriptor; a file that has neither, or is shorter, is refused."""
    text = """
    def mapped(path, pages, close=True):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(file, 2 * PAGE)
        got = libc.mmap(None, pages * PAGE, 3, mmap.MAP_SHARED, file, 0)
        if close:
            os.close(file)
        return got
    def register(address, pages):
        return Memory(kfd, drm, address, pages * PAGE, USERPTR | WRITABLE)
    device = Memory(kfd, drm, ARENA + (4 << 20), PAGE)
    device.word(0).value = 77
    own = mapped("a file (deleted)", 2)
    user = register(own + PAGE, 1)
    copy(ring, own + PAGE, device.address, 4)
    print(os.pread(os.open("a file (deleted)", os.O_RDONLY), 4, PAGE), ctypes.c_uint32.from_address(own + PAGE).value)
    user.free()
    print(ctypes.c_uint32.from_address(own + PAGE).value)
    gone, there = mapped("a file", 2), mapped("another file", 2, False)
    os.unlink("a file"), os.unlink("another file")
    print(register(there, 2).handle > 0, refused(register, gone, 2), refused(register, mapped("short", 3), 3),
          refused(register, mapped("\\n", 2), 2))
    print(register(own, 2).handle > 0)
    """
    text = f"import os\nos.chdir({str(tmp_path)!r})\n" + dedent(text)
    assert drive(text, tmp_path, before=COPY).splitlines() == [
        f"{b'M' + bytes(3)} 77", "77", "True EFAULT EFAULT EFAULT", "True"]


def test_a_child_has_copies_of_its_own_and_a_device_of_its_own(tmp_path: Path) -> None:
    text = """
    own = place(PAGE)
    ctypes.memset(own, 1, PAGE)
    user = Memory(kfd, drm, own, PAGE, USERPTR | WRITABLE)
    child = os.fork()
    if child == 0:
        ctypes.memset(own, 2, PAGE)
        assert refused(ioctl, kfd, 0x01, "II", 0, 0) in ("ENOTTY", "EINVAL", "EIO"), "the parent's"
        again = os.open("/dev/kfd", os.O_RDWR)
        assert ioctl(again, 0x01, "II", 0, 0) == (1, 15)
        mine = Memory(again, os.open("/dev/dri/renderD128", os.O_RDWR), ARENA + (4 << 20), PAGE)
        mine.word(0).value = 5
        os._exit(mine.word(0).value)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ctypes.string_at(own, 1).hex())
    print(ioctl(kfd, 0x01, "II", 0, 0))
    """
    assert drive(text, tmp_path, before=COPY).splitlines() == ["5 01", "(1, 15)"]


def test_nothing_is_lost_that_others_write_while_pages_are_exchanged(tmp_path: Path) -> None:
    text = """
    fd = libc.syscall(323, os.O_CLOEXEC | 1)   # userfaultfd, UFFD_USER_MODE_ONLY
    count = 512
    own = place(count * PAGE)
    words = [ctypes.c_uint64.from_address(own + PAGE * i) for i in range(count)]
    lost, done = [], threading.Event()
    def write():
        number = 0
        while not done.is_set():
            for word in words:
                if word.value != number:
                    lost.append(number)
                word.value = number + 1
            number += 1
    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(30):
        Memory(kfd, drm, own, count * PAGE, USERPTR | WRITABLE).free()
    done.set()
    writer.join()
    print("lost" if lost else "kept", "held" if fd >= 0 else "unheld")
    """
    found, held = drive(text, tmp_path, before=COPY).split()
    if held == "unheld":
        pytest.skip("no userfaultfd(2) here")
    assert found == "kept"
