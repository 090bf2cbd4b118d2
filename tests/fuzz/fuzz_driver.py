"""The emulated GPU's driver, asked at random: ioctls with odd numbers, sizes and pointers; packets of odd bytes.

In: a seed; the program below makes everything else from it, below libluthier_kfd.so. What must come of it: every call
returns, queues can be destroyed, a kernel's wave or a packet that makes no sense ends its queue with one line, and at
the end the driver still answers.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from fuzzer import Case, Fuzzer

from luthier_py.base.errors import Invalid
from luthier_py.host.kfd import device_library
from luthier_py.samples import sample

SECONDS = 60  # that the whole program may take; it takes one or two
MOST_STEPS = 160
DEVICE = "emulator:gfx90a"

PROGRAM = '''
import ctypes, mmap, os, random, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
seed, code = sys.argv[1], open(sys.argv[2], "rb").read()
rng = random.Random(seed)
steps = rng.choice((5, 20, MOST_STEPS))
PAGE, GPU, ARENA, M = 4096, 0x1000, 0x2000_0000_0000, 1 << 20
kfd = os.open("/dev/kfd", os.O_RDWR)
drm = os.open("/dev/dri/renderD128", os.O_RDWR)
handles, queues, events, answers = [1], [1], [1], set()

def call(fd, number, data, kind=ord("K"), size=None):
    memory = (ctypes.c_char * max(len(data), 1))(*data)
    request = 3 << 30 | (len(data) if size is None else size) << 16 | kind << 8 | number
    failed = libc.ioctl(fd, request, memory) < 0
    answers.add(ctypes.get_errno() if failed else 0)
    return None if failed else bytes(memory)

def buffer(address, size, flags, offset=0):
    made = call(kfd, 0x16, struct.pack("<QQQQII", address, size, 0, offset, GPU, flags))
    if made is None:
        return None
    handle = struct.unpack_from("<Q", made, 16)[0]
    handles.append(handle)
    gpus = (ctypes.c_uint32 * 1)(GPU)
    call(kfd, 0x18, struct.pack("<QQII", handle, ctypes.addressof(gpus), 1, 0))
    return handle

own = libc.mmap(None, 64 * PAGE, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
room = ARENA + 64 * M
assert buffer(room, M, 1 | 1 << 31) and libc.mmap(room, M, 3, mmap.MAP_SHARED | 0x10, drm, room) == room
ctypes.memmove(room + M // 2, code, len(code))
data = room + 3 * M // 4

def number(bits=64):
    return rng.choice((0, 1, 2, 3, 4, 7, 63, 64, 255, PAGE - 1, PAGE, 8 * PAGE, M, (1 << 31) - 1, 1 << 31,
                       (1 << 32) - 1, GPU, 1 << 40, 1 << 46, 1 << 47, 1 << 63, (1 << 64) - PAGE, (1 << 64) - 1, ARENA,
                       room, data, room + rng.randrange(M), own, own + PAGE * rng.randrange(64),
                       own + rng.randrange(64 * PAGE),
                       rng.choice(handles), rng.choice(queues), rng.choice(events),
                       rng.getrandbits(64))) & (1 << bits) - 1

SIZES = {0x01: 8, 0x02: 88, 0x03: 8, 0x04: 32, 0x05: 40, 0x07: 24, 0x08: 32, 0x09: 8, 0x0A: 8, 0x0B: 8, 0x0C: 24,
         0x0F: 16, 0x11: 16, 0x12: 40, 0x13: 24, 0x14: 16, 0x15: 8, 0x16: 40, 0x17: 8, 0x18: 24, 0x19: 24, 0x1C: 32,
         0x1E: 16, 0x21: 4, 0x23: 16, 0x25: 16, 0x82: 48}

def odd_ioctl():
    which = rng.choice((*SIZES, rng.randrange(256)))
    size = SIZES.get(which, rng.choice((0, 4, 64)))
    form = rng.choice("QI")
    each = struct.calcsize(form)
    content = b"".join(struct.pack("<" + form, number(8 * each)) for _ in range(size // each + 1))[:size]
    if which == 0x0C:  # a wait is to end
        content = content[:16] + struct.pack("<I", rng.choice((0, 1, 5))) + content[20:]
    if rng.random() < 0.1:
        size = rng.choice((0, 1, size + 8, 16383, 4))
        content = content.ljust(size, b"x")
    kind = ord("d") if rng.random() < 0.1 else ord("K")
    if kind == ord("d"):
        which = rng.choice((0, 0x45, which))
    call(rng.choice((kfd, drm)), which, content, kind, size)

def odd_buffer():
    flags = rng.choice((1, 2, 4, 4, 8, 16)) | rng.choice((0, 1 << 31))
    at = rng.choice((own + PAGE * rng.randrange(70), room + M * rng.randrange(-2, 9), number(), number()))
    buffer(at, rng.choice((PAGE, 2 * PAGE, 5 * PAGE, number(), rng.randrange(9 * PAGE))), flags,
           at if rng.random() < 0.6 else own + PAGE * rng.randrange(64))

def odd_free():
    if len(handles) > 2:
        handle = handles.pop(rng.randrange(2, len(handles)))
        call(kfd, rng.choice((0x17, 0x19)), struct.pack("<Q", handle))

def odd_event():
    page, kind, auto = rng.choice((0, 0, number())), rng.choice((0, 3, 8)), rng.randrange(2)
    made = call(kfd, 0x08, struct.pack("<QIIIIII", page, 0, kind, auto, 0, 0, 0))
    if made is not None:
        events.append(struct.unpack_from("<I", made, 24)[0])

def odd_mapping():
    size = rng.choice((PAGE, 3 * PAGE, 8192))
    offset = rng.choice((0, PAGE, 3 << 62, 3 << 62 | GPU << 46, number() & -PAGE, number()))
    offset = ctypes.c_long(offset).value
    got = libc.mmap(None, size, rng.choice((1, 3)), mmap.MAP_SHARED, rng.choice((kfd, drm)), offset)
    if got != ctypes.c_void_p(-1).value:
        libc.munmap(got, size)

def aql(at):
    kind = rng.choice((2, 2, 2, 2, 3, 5, 0, 1, 4, 6, 255))
    pieces = [(number(), 0, data, room)[rng.randrange(4)] for _ in range(7)]
    packet = bytearray(struct.pack("<HHI7Q", kind, 1 + rng.randrange(4), rng.getrandbits(32), *pieces))
    if kind == 2:
        kernel = room + M // 2 + KD if rng.random() < 0.7 else number()
        block = [rng.choice((1, 64, 64, 0, 3, 1024, 65535)) for _ in range(3)]
        grid = [rng.choice((1, 64, 65, 0, 200)) for _ in range(3)]
        packet = bytearray(struct.pack("<HHHHHHIIIIIQQQQ", 2, rng.randrange(5), *block, 0, *grid,
                                       rng.choice((0, 0, 64, number(32))), rng.choice((0, 0, 256, number(32))), kernel,
                                       rng.choice((data, data, number())), 0, rng.choice((0, data + 512, number()))))
    if rng.random() < 0.2:
        packet[rng.randrange(64)] = rng.randrange(256)
    ctypes.memmove(at, bytes(packet), 64)

def sdma(at):
    op = rng.choice((0, 1, 1, 2, 5, 6, 8, 10, 11, 13, 17, rng.randrange(256)))
    words = [op | rng.choice((0, 4, 2, rng.randrange(256))) << 8 | rng.choice((0, 1 << 31, rng.getrandbits(16) << 16))]
    words += [rng.choice((0, 1, 15, 1000, data & 0xffffffff, data >> 32, data >> 32, rng.getrandbits(10), number(24)))
              for _ in range(15)]
    ctypes.memmove(at, struct.pack("<16I", *words), 64)

slots = list(range(8))

def odd_queue():
    """A good one, or nearly, with odd packets."""
    kind = rng.choice((1, 2, 2, 3))
    if not slots:
        return odd_destroy()
    at = room + slots.pop() * 2 * PAGE
    ring_bytes = rng.choice((PAGE, PAGE, PAGE, 64, 0, 100, 2 * PAGE))
    pointers = [at + PAGE + 56, at + PAGE + 128]
    if rng.random() < 0.1:
        pointers[rng.randrange(2)] = number()
    ctypes.memset(at, 0, 2 * PAGE)
    for place in range(at, at + PAGE, 64):
        (aql if kind == 2 else sdma)(place)
    ctypes.c_uint64.from_address(at + PAGE + 192).value = rng.choice((0, data + 1024, number()))
    made = call(kfd, 0x02, struct.pack("<QQQQIIIIIIQQQII", at, *pointers, 0, ring_bytes, GPU, kind, 100, 7, 0, 0, 0,
                                       rng.choice((0, data, number())), 0, 0))
    if made is None:
        return
    queue, doorbell = struct.unpack_from("<I", made, 52)[0], struct.unpack_from("<Q", made, 24)[0]
    queues.append(queue)
    page = libc.mmap(None, 8192, 3, mmap.MAP_SHARED, kfd, ctypes.c_long(doorbell & ~8191).value)
    ctypes.c_uint64.from_address(page + (doorbell & 8191)).value = rng.choice((0, 3, 63, 64, 256, number()))
    libc.munmap(page, 8192)

def odd_destroy():
    if len(queues) > 1:
        call(kfd, 0x03, struct.pack("<II", queues.pop(), 0))

def odd_write():
    at = rng.choice((data, room, own)) + rng.randrange(4096)
    if at < room or at >= room + M:
        return
    ctypes.memmove(at, rng.randbytes(8), 8)

KD = int(sys.argv[3])
ACTIONS = (odd_ioctl, odd_ioctl, odd_ioctl, odd_buffer, odd_buffer, odd_free, odd_event, odd_mapping,
           odd_queue, odd_destroy, odd_write)
for _ in range(steps):
    rng.choice(ACTIONS)()
while len(queues) > 1:
    odd_destroy()
answer = call(kfd, 0x01, bytes(8))
assert answer == struct.pack("<II", 1, 15), answer
print("alive", len(answers))
'''


def _make(rng: random.Random) -> Case:
    return Case(str(rng.getrandbits(32)).encode())


def _image() -> tuple[bytes, int]:
    """A kernel as it lies in memory, and where its descriptor is."""
    from luthier_py.binary.loader import load

    data = sample("vector_add").path.read_bytes()
    found = load(data)
    image = bytearray()
    for segment in found.elf.segments:
        if segment.load:
            image += bytes(max(segment.address - len(image), 0))
            image[segment.address : segment.address + segment.file_size] = data[
                segment.offset : segment.offset + segment.file_size
            ]
    return bytes(image), found.kernels[0].descriptor_address


def _trial(case: Case, folder: Path) -> None:
    image, descriptor = _image()
    (folder / "code").write_bytes(image)
    (folder / "program.py").write_text(PROGRAM.replace("MOST_STEPS", str(MOST_STEPS)))
    words = [sys.executable, "program.py", case.data.decode(), "code", str(descriptor)]
    variables = {"LD_PRELOAD": str(device_library()), "LUTHIER_DEVICE": DEVICE, "LUTHIER_TIME_LIMIT": "2"}
    done = subprocess.run(
        words, env={**os.environ, **variables}, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    said = done.stderr[-2000:]
    assert done.returncode == 0, f"the program ended with {done.returncode}: {said}"
    assert "Traceback" not in done.stderr and "Error: " not in done.stderr, f"a bug of the worker: {said}"
    if "luthier: " in done.stderr:
        raise Invalid("a queue was stopped")


def _prepare(folder: Path) -> None:
    device_library()
    _image()


FUZZER = Fuzzer("driver", _make, _trial, _prepare, divisible=False)
