"""Queues by their rings alone: packets in their order, barriers, copies, a dispatch of a kernel that lies in memory."""

from __future__ import annotations

from pathlib import Path

from driven import drive

from luthier_py.samples import SAMPLES

AQL = """
def signal(value=1):
    '''An amd_signal_t in memory of the device.'''
    signals.append(signals[-1] + 64)
    ctypes.memset(signals[-1], 0, 64)
    ctypes.c_int64.from_address(signals[-1] + 8).value = value
    return signals[-1]

def value(at):
    return ctypes.c_int64.from_address(at + 8).value

def put(ring, index, packet):
    ring.put(64 * index, packet[:64].ljust(64, b"\\0"))

def invalidate(ring):
    for index in range(ring.ring_bytes // 64):
        ring.put(64 * index, b"\\1\\0")

def barrier(kind, deps, completion):
    deps = list(deps) + [0] * (5 - len(deps))
    return struct.pack("<HHI5QQQ", kind, 0, 0, *deps, 0, completion)

ring = Ring(kfd, drm, ARENA + (1 << 20), 2)
invalidate(ring)
signals = [Memory(kfd, drm, ARENA + (2 << 20), 16 * PAGE).address]
"""


def test_barriers_wait_for_all_or_for_one(tmp_path: Path) -> None:
    text = """
    a, b, one, both, last = signal(), signal(), signal(), signal(), signal()
    put(ring, 0, barrier(5, [a, b], one))
    put(ring, 1, barrier(3, [a, b], both))
    put(ring, 2, barrier(3, [], last))
    ring.doorbell.value = 2
    time.sleep(0.1)
    print(value(one), value(both), value(last), ring.read_index())
    ctypes.c_int64.from_address(b + 8).value = 0
    until(lambda: value(one) == 0)
    time.sleep(0.1)
    print(value(both), ring.read_index())
    ctypes.c_int64.from_address(a + 8).value = 0
    until(lambda: value(last) == 0)
    print(value(both), ring.read_index(), ctypes.c_uint16.from_address(ring.memory.address).value)
    started, ended = struct.unpack("<QQ", ctypes.string_at(last + 32, 16))
    print(0 < started <= ended)
    """
    assert drive(text, tmp_path, before=AQL).splitlines() == ["1 1 1 0", "1 1", "0 3 1", "True"]


def test_barriers_compare_values(tmp_path: Path) -> None:
    """hsa_amd_barrier_value_packet_t: equal, not equal, less, greater or equal, of the masked value."""
    text = """
    for index, (condition, wanted, now) in enumerate([(0, 5, 0xf05), (1, 5, 6), (2, 5, -1), (3, 5, 5)]):
        other, done = signal(8 if condition != 1 else 5), signal()
        mask = 0xff if condition == 0 else (1 << 64) - 1
        put(ring, index, struct.pack("<HBBIQqQI20xQ", 0, 2, 0, 0, other, wanted, mask, condition, done))
        ring.doorbell.value = index
        time.sleep(0.02)
        early = value(done) if condition != 3 else 1
        ctypes.c_int64.from_address(other + 8).value = now
        until(lambda: value(done) == 0)
        print(condition, early)
    """
    assert drive(text, tmp_path, before=AQL).splitlines() == ["0 1", "1 1", "2 1", "3 1"]


def test_doorbells_may_come_in_another_order_and_rings_go_round(tmp_path: Path) -> None:
    text = """
    size = ring.ring_bytes // 64
    for first in range(0, 4 * size, 2):
        until(lambda: first - ring.read_index() <= size - 2)
        done = signal(), signal()
        ctypes.c_uint64.from_address(ring.write).value = first + 2
        put(ring, first + 1, barrier(3, [], done[1]))
        ring.doorbell.value = first + 1   # whose predecessor is not written yet
        put(ring, first, barrier(3, [], done[0]))
        ring.doorbell.value = first
        until(lambda: value(done[0]) == 0 and value(done[1]) == 0)
        del signals[1:]
    print(ring.read_index() == 4 * size)
    """
    assert drive(text, tmp_path, before=AQL).splitlines() == ["True"]


def test_copies_fills_fences_polls_and_atomics(tmp_path: Path) -> None:
    text = """
    ring = Ring(kfd, drm, ARENA + (1 << 20), 1)
    memory = Memory(kfd, drm, ARENA + (2 << 20), PAGE)
    at = [0]
    def pair(address):
        return address & 0xffffffff, address >> 32
    def send(*words):
        ring.put(at[0], struct.pack(f"<{len(words)}I", *words))
        at[0] += 4 * len(words)
        ring.doorbell.value = at[0]
    send(11 | 2 << 30, *pair(memory.address), 0xabcd1234, 63)                       # 64 bytes
    send(1, 31, 0, *pair(memory.address + 2), *pair(memory.address + 256))          # 32 of them
    send(0)
    send(8 | 3 << 28 | 1 << 31, *pair(memory.address + 512), 7, 0xff, 0)            # until it is 7
    send(5, *pair(memory.address + 516), 99)
    send(10 | 47 << 25, *pair(memory.address + 520), *pair((1 << 64) - 3), 0, 0, 0)
    send(13 | 2 << 8, *pair(memory.address + 528))
    time.sleep(0.1)
    print(memory.word(516).value, ctypes.string_at(memory.address + 256, 6).hex(), memory.word(288).value)
    memory.word(520, 8).value = 10
    memory.word(512).value = 0x107
    until(lambda: ring.read_index() == at[0])
    print(memory.word(516).value, memory.word(520, 8).value, memory.word(528, 8).value > 0)
    # a box of 3 x 2 x 2 elements of 4 bytes from a pitch of 8 and planes of 32 to a pitch of 4 and planes of 8
    for i in range(128):
        memory.word(1024 + 4 * i).value = i
    send(1 | 4 << 8 | 2 << 29, *pair(memory.address + 1024), 1 | 1 << 16, 1 | 7 << 13, 31,
         *pair(memory.address + 2048), 0, 3 << 13, 7, 2 | 1 << 16, 1)
    until(lambda: ring.read_index() == at[0])
    print([memory.word(2048 + 4 * i).value for i in range(16)])
    """
    out = drive(text, tmp_path).splitlines()
    assert out[0] == "0 cdab3412cdab 0" and out[1] == "99 7 True"
    box = [(x + 1) + (y + 1) * 8 + (z + 1) * 32 if x < 3 else 0 for z in range(2) for y in range(2) for x in range(4)]
    assert out[2] == str(box)


def test_what_a_queue_does_not_take_stops_it_with_one_line(tmp_path: Path) -> None:
    text = """
    inactive, done = signal(0), signal()
    ctypes.c_uint64.from_address(ring.write - 56 + 192).value = inactive
    put(ring, 0, struct.pack("<H54xQ", 4, done))                 # an agent dispatch
    ring.doorbell.value = 0
    until(lambda: value(inactive) != 0)
    print(hex(value(inactive)), value(done), ring.read_index())
    ioctl(kfd, 0x03, "II", ring.number, 0)                       # and it can be destroyed
    print(refused(ioctl, kfd, 0x03, "II", ring.number, 0))
    """
    assert drive(text, tmp_path, before=AQL).splitlines() == ["0x20 1 0", "EINVAL"]


def test_a_kernel_in_memory_is_dispatched(tmp_path: Path) -> None:
    """The segments of a sample's code object, put into memory as a loader puts them; counted in the profile."""
    sample = next(sample for sample in SAMPLES if sample.name == "vector_add")
    text = f"""
    sys.path.insert(0, {str(Path(__file__).resolve().parents[4])!r})
    import io, json
    from elftools.elf.elffile import ELFFile
    data = open({str(sample.path)!r}, "rb").read()
    elf = ELFFile(io.BytesIO(data))
    base = ARENA + (16 << 20)
    code = Memory(kfd, drm, base, 1 << 20)
    for segment in elf.iter_segments("PT_LOAD"):
        ctypes.memmove(base + segment["p_vaddr"], segment.data(), segment["p_filesz"])
    symbol = next(s for s in elf.get_section_by_name(".symtab").iter_symbols() if s.name.endswith(".kd"))
    n = 300  # not a multiple of the work-group
    buffers = Memory(kfd, drm, base + (1 << 20), 16 * PAGE)
    a, b, c, kernarg = (buffers.address + k * 4 * PAGE for k in range(4))
    for i in range(n):
        ctypes.c_float.from_address(a + 4 * i).value, ctypes.c_float.from_address(b + 4 * i).value = i, 2 * i
    # arguments, then of the hidden ones: whole work-groups, their size, what is left over
    ctypes.memmove(kernarg, struct.pack("<QQQ3I6H", a, b, c, n // 256, 1, 1, 256, 1, 1, n % 256, 0, 0), 48)
    done = signal()
    kernel = base + symbol["st_value"]
    put(ring, 0, struct.pack("<HHHHHHIIIIIQQQQ", 0x1502, 1, 256, 1, 1, 0, n, 1, 1, 0, 0, kernel, kernarg, 0, done))
    ring.doorbell.value = 0
    until(lambda: value(done) == 0)
    print(all(ctypes.c_float.from_address(c + 4 * i).value == 3 * i for i in range(n)))
    print(json.load(open({str(tmp_path / "profile")!r}))["kernel"] == f"kernel@0x{{kernel:x}}")
    """
    profile = str(tmp_path / "profile")
    assert drive(text, tmp_path, before=AQL, LUTHIER_DEVICE_PROFILE=profile).splitlines() == ["True", "True"]


def test_a_queue_without_a_share_of_the_device_waits(tmp_path: Path) -> None:
    """0 percent, or no ring: it goes on where it was when it gets one (update_queue of kfd_device_queue_manager.c)."""
    text = """
    other = Ring(kfd, drm, ARENA + (8 << 20), 2)
    invalidate(other)
    for percentage, address in ((0, ring.memory.address), (100, 0)):
        done, after = signal(), signal()
        first = ring.read_index()
        ioctl(kfd, 0x07, "QIIII", address, ring.number, PAGE if address else 0, percentage, 7)
        put(ring, first, barrier(3, [], done))
        ring.doorbell.value = first
        put(other, first, barrier(3, [], after))  # told after it, and carried out
        other.doorbell.value = first
        until(lambda: value(after) == 0)
        print(value(done), ring.read_index() - first)
        ioctl(kfd, 0x07, "QIIII", ring.memory.address, ring.number, PAGE, 100, 7)
        until(lambda: value(done) == 0)
    print(refused(ioctl, kfd, 0x07, "QIIII", ring.memory.address, 77, PAGE, 100, 7))
    """
    assert drive(text, tmp_path, before=AQL).splitlines() == ["1 0", "1 0", "EFAULT"]


def test_a_ring_is_as_long_as_the_driver_makes_it(tmp_path: Path) -> None:
    """KFD_MIN_QUEUE_RING_SIZE; a queue of another type than there are is none."""
    text = """
    memory = Memory(kfd, drm, ARENA + (8 << 20), 2 * PAGE)
    def create(kind, size):
        rest = memory.address + PAGE + 56, memory.address + PAGE + 128, 0, size, GPU, kind, 100, 7, *[0] * 6
        return ioctl(kfd, 0x02, "QQQQIIIIIIQQQII", memory.address, *rest)
    print(create(2, 0)[4], create(2, 512)[4], create(2, 2048)[4])
    try:
        create(9, PAGE)
    except OSError as error:
        print(error.errno)
    """
    assert drive(text, tmp_path, before=AQL).splitlines() == ["1024 1024 2048", "524"]


def test_queues_come_and_go_on_several_threads(tmp_path: Path) -> None:
    """A queue's number may be the next one's at once: its doorbell must not go with the one that is destroyed. All of
    them complete their first signal at once."""
    text = """
    place_of = [Memory(kfd, drm, ARENA + ((8 + number) << 20), 2 * PAGE).address for number in range(4)]
    done, lost = [signal() for _ in place_of], []
    def work(at, done):
        for _ in range(40):
            for index in range(64):
                ctypes.memmove(at + 64 * index, b"\\1\\0", 2)
            ctypes.memset(at + PAGE, 0, PAGE)
            ctypes.c_int64.from_address(done + 8).value = 1
            rest = at + PAGE + 56, at + PAGE + 128, 0, PAGE, GPU, 2, 100, 7, *[0] * 6
            fields = ioctl(kfd, 0x02, "QQQQIIIIIIQQQII", at, *rest)
            page = libc.mmap(None, 8192, 3, mmap.MAP_SHARED, kfd, ctypes.c_long(fields[3] & ~8191).value)
            ctypes.memmove(at, barrier(3, [], done)[:64], 64)
            ctypes.c_uint64.from_address(page + (fields[3] & 8191)).value = 0
            try:
                until(lambda: value(done) == 0)
            except AssertionError:
                lost.append(fields[9])
            ioctl(kfd, 0x03, "II", fields[9], 0)
            libc.munmap(ctypes.c_void_p(page), 8192)
    threads = [threading.Thread(target=work, args=pair) for pair in zip(place_of, done)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(lost, ioctl(kfd, 0x01, "II", 0, 0))
    """
    assert drive(text, tmp_path, before=AQL).splitlines() == ["[] (1, 15)"]
