"""What no thunk asks for: it is refused or fails with one line, and the worker goes on."""

from __future__ import annotations

from pathlib import Path

from driven import drive
from test_kfd_queues import AQL

GOES_ON = "print(ioctl(kfd, 0x01, 'II', 0, 0))\n"
ALIVE = "(1, 15)"


def test_rings_of_another_size_than_a_power_of_two_are_refused(tmp_path: Path) -> None:
    text = """
    m = Memory(kfd, drm, ARENA + (1 << 20), 2 * PAGE)
    at = m.address + PAGE
    for kind in (2, 1):
        for size in (3, 24, 96):
            print(refused(ioctl, kfd, 0x02, "QQQQIIIIIIQQQII", m.address, at + 56, at + 128, 0, size, GPU, kind, 100, 7,
                          *[0] * 6))
    """
    assert drive(text, tmp_path).split() == ["EINVAL"] * 6


def test_a_queue_that_cannot_say_what_is_wrong_can_be_destroyed(tmp_path: Path) -> None:
    text = """
    ctypes.c_uint64.from_address(ring.write - 56 + 192).value = 0xdeadbeef000  # where its inactive signal is not
    hangs = ioctl(kfd, 0x08, "QIIIIII", 0, 0, 3, 1, 0, 0, 0)[5]
    put(ring, 0, struct.pack("<H54xQ", 4, 0))                                  # which no queue takes
    ring.doorbell.value = 0
    row = (ctypes.c_char * 48)(*struct.pack("<32xQII", 0, hangs, 0))
    print(ioctl(kfd, 0x0c, "QIIII", ctypes.addressof(row), 1, 0, 20000, 9)[4]) # the device hangs, for the program
    ioctl(kfd, 0x03, "II", ring.number, 0)
    """
    assert drive(text, tmp_path, before=AQL).split() == ["0"]


def test_buffers_lie_where_nothing_else_does(tmp_path: Path) -> None:
    text = """
    def allocate(address, size, offset=0, flags=VRAM):
        return refused(ioctl, kfd, 0x16, "QQQQII", address, size, 0, offset, GPU, flags)
    first = Memory(kfd, drm, ARENA + (2 << 20), 4 * PAGE)
    at = first.address
    print(allocate(at, PAGE), allocate(at + 3 * PAGE, PAGE), allocate(at - PAGE, 2 * PAGE))
    print(allocate(at + 4 * PAGE, PAGE), allocate(at - PAGE, PAGE))
    print(allocate(ARENA, PAGE), allocate(ARENA + (1 << 42) - PAGE, 2 * PAGE))     # the driver's own words, its end
    print(allocate(ARENA + (1 << 30), 1 << 46, 1 << 20, USERPTR), allocate(1 << 40, 1 << 45, 1 << 40, USERPTR))
    first.free()
    print(allocate(at, 4 * PAGE))
    """
    out = drive(text + GOES_ON, tmp_path).splitlines()
    assert out == ["EINVAL EINVAL EINVAL", "nothing nothing", "EINVAL EINVAL", "ENOMEM ENOMEM", "nothing", ALIVE]


def test_arrays_that_are_not_there_are_no_success(tmp_path: Path) -> None:
    text = """
    handle = ioctl(kfd, 0x16, "QQQQII", ARENA + (1 << 20), PAGE, 0, 0, GPU, VRAM)[2]
    print(refused(ioctl, kfd, 0x18, "QQII", handle, 0, 1, 0), refused(ioctl, kfd, 0x19, "QQII", handle, 0, 1, 0))
    """
    assert drive(text, tmp_path).split() == ["EFAULT", "EFAULT"]


def test_a_page_of_events_is_memory_that_stays(tmp_path: Path) -> None:
    """One that is too small or the program's own is not looked at; what is freed is not either."""
    text = """
    def use(handle):
        return ioctl(kfd, 0x08, "QIIIIII", handle, 0, 0, 1, 0, 0, 0)[5]
    small = Memory(kfd, drm, place(PAGE), PAGE, USERPTR | WRITABLE)
    use(small.handle)
    use(12345)
    small.free()
    page = Memory(kfd, drm, ARENA + (4 << 20), 8 * PAGE)
    event = use(page.handle)
    until(lambda: page.word(8 * event, 8).value == (1 << 64) - 1)
    page.free()
    again = Memory(kfd, drm, ARENA + (4 << 20), 8 * PAGE)   # somebody else's now: nobody writes to it
    print(again.word(8 * event, 8).value)
    fault = ioctl(kfd, 0x08, "QIIIIII", 0, 0, 8, 1, 0, 0, 0)[5]
    put(ring, 0, struct.pack("<HHHHHHIIIIIQQQQ", 2, 1, 64, 1, 1, 0, 64, 1, 1, 0, 0, ARENA, 0, 0, 0))  # no kernel
    again.word(8 * event, 8).value = event
    ring.doorbell.value = 0
    row = (ctypes.c_char * 48)(*struct.pack("<32xQII", 0, fault, 0))
    print(ioctl(kfd, 0x0c, "QIIII", ctypes.addressof(row), 1, 0, 20000, 9)[4])  # it was tried
    print(again.word(8 * event, 8).value == event)
    """
    assert drive(text + GOES_ON, tmp_path, before=AQL).splitlines() == ["0", "0", "True", ALIVE]


def test_memory_is_freed_while_it_is_copied(tmp_path: Path) -> None:
    """The copy goes on in pages of nobody, and what is there afterwards is the program's own again."""
    text = """
    size = 256 << 20
    own = place(size)
    ctypes.memset(own, 1, PAGE)
    device = Memory(kfd, drm, ARENA + (1 << 30), size)
    ring = Ring(kfd, drm, ARENA + (1 << 20), 1)
    for turn in range(2):
        device.word(0).value = 0
        user = Memory(kfd, drm, own, size, USERPTR | WRITABLE)
        at = ring.doorbell.value
        ring.put(at, struct.pack("<7I", 1, size - 1, 0, own & 0xffffffff, own >> 32,
                                 device.address & 0xffffffff, device.address >> 32))
        ring.doorbell.value = at + 28
        until(lambda: device.word(0).value)
        user.free()
        until(lambda: ring.read_index() == at + 28)
    print(ctypes.string_at(own, 2).hex())
    """
    assert drive(text + GOES_ON, tmp_path).splitlines() == ["0101", ALIVE]


def test_handles_of_memory_that_is_not_there_are_refused(tmp_path: Path) -> None:
    """Forged ones, those of processes that are no workers, and those that lead on to another process's memory."""
    text = """
    def share(handle):
        return ioctl(kfd, 0x81, "QIQIII", handle, 0, 0, 0, GPU, 0)[1:4]
    def use(address, worker, where, pages):
        return ioctl(kfd, 0x80, "QQQIQIII", 0, address, 0, worker, where, pages, GPU, 0)[0]
    own = Memory(kfd, drm, ARENA + (4 << 20), PAGE)
    own.word(0).value = 42
    worker, where, pages = share(own.handle)
    at = ARENA + (8 << 20)
    print(refused(use, at, os.getpid(), where, pages), refused(use, at, 1 << 30, where, pages),
          refused(use, at, worker, where, 0), refused(use, place(PAGE), worker, where, pages),
          refused(use, at, worker, where | 1 << 4, pages), refused(use, own.address, worker, where, pages))
    high = use(at + PAGE, worker, where | 0xffc0 << 48, pages)      # no flag
    handle = use(at, worker, where, pages)
    print(ctypes.c_uint32.from_address(at).value, ctypes.c_uint32.from_address(at + PAGE).value)
    print(refused(share, handle), refused(share, 12345))
    for each in (handle, high):
        ioctl(kfd, 0x17, "Q", each)
    print(own.word(0).value)                                        # which is its owner's
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(refused(use, at, worker, where, pages))                   # the program's side cannot map it
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(use(at, worker, where, pages) > 0)                        # its place is free again
    """
    out = drive(text + GOES_ON, tmp_path).splitlines()
    assert out == ["EINVAL ENOENT EINVAL EINVAL EINVAL EINVAL", "42 42", "EINVAL EINVAL", "42", "EMFILE", "True", ALIVE]
