"""/dev/kfd, render nodes and sysfs as a thunk sees them; what is not there fails as in the driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from driven import drive


def test_devices_are_character_devices_and_sysfs_lists_them(tmp_path: Path) -> None:
    text = """
    import stat
    top = "/sys/devices/virtual/kfd/kfd/topology"
    print(sorted(os.listdir(f"{top}/nodes")), os.stat("/dev/kfd").st_mode & 0o170000 == stat.S_IFCHR)
    about = os.fstat(drm)
    print(os.major(about.st_rdev), os.minor(about.st_rdev), os.access("/dev/dri/renderD129", os.R_OK))
    rows = dict(line.split() for line in open(f"{top}/nodes/2/properties"))
    print(rows["gfx_target_version"], rows["drm_render_minor"], open(f"{top}/nodes/2/gpu_id").read().strip())
    print(hex(int(rows["capability"]) & 0x2000_8000))  # without which ROCr does not say what it loads
    print(refused(os.open, "/dev/dri/renderD130", os.O_RDWR), os.path.exists("/sys/class/kfd/kfd/topology/nodes/3"))
    print(os.path.exists("/usr/share/libdrm/amdgpu.ids"), os.path.exists("/sys/module/amdgpu.ids"))  # not ours
    """
    out = drive(text, tmp_path, "emulator:gfx90a,emulator:gfx906").splitlines()
    assert out == ["['0', '1', '2'] True", "226 128 True", "90006 129 4097", "0x20008000", "ENOENT False", "True False"]


def test_cards_as_monitors_look_for_them(tmp_path: Path) -> None:
    """rocm-smi: in the class of DRM devices. What nobody measures here is not there."""
    text = """
    print(sorted(os.listdir("/sys/class/drm")))
    for name in ("card0", "renderD129"):
        device = f"/sys/class/drm/{name}/device"
        print(sorted(os.listdir(f"{device}/drm")), open(f"{device}/product_name").read().strip(),
              open(f"{device}/device").read().strip(), int(open(f"{device}/mem_info_vram_total").read()) >> 30,
              os.path.exists(f"{device}/mem_info_vram_used"))
    """
    assert drive(text, tmp_path, "emulator:gfx90a,emulator:gfx1100").splitlines() == [
        "['card0', 'card1', 'renderD128', 'renderD129']",
        "['card0', 'renderD128'] Luthier-py emulator (gfx90a) 0x740f 16 False",
        "['card1', 'renderD129'] Luthier-py emulator (gfx1100) 0x744c 16 False",
    ]


def test_versions_apertures_and_clocks(tmp_path: Path) -> None:
    text = """
    print(ioctl(kfd, 0x01, "II", 0, 0))
    rows = (ctypes.c_uint64 * 7)()
    print(ioctl(kfd, 0x14, "QII", ctypes.addressof(rows), 1, 0)[1], rows[6], rows[0] >> 48, rows[2] >> 48, hex(rows[5]))
    print(ioctl(kfd, 0x14, "QII", 0, 0, 0)[1])
    before = ioctl(kfd, 0x05, "QQQQII", 0, 0, 0, 0, GPU, 0)
    after = ioctl(kfd, 0x05, "QQQQII", 0, 0, 0, 0, 0, 0)  # node 0 has clocks too
    print(before[0] < after[0], before[3])
    """
    assert drive(text, tmp_path).splitlines() == ["(1, 15)", "1 4096 1 2 0x7fffffffffff", "1", "True 1000000000"]


def test_what_is_not_there_fails_as_in_the_driver(tmp_path: Path) -> None:
    text = """
    print(refused(ioctl, kfd, 0x7f, "Q", 0), refused(ioctl, kfd, 0x0d, "Q", 0))         # unknown, debugger's
    print(refused(ioctl, kfd, 0x16, "QQQQII", ARENA, PAGE, 0, 0, 77, VRAM))             # no such GPU
    print(refused(ioctl, kfd, 0x16, "QQQQII", ARENA + 5, PAGE, 0, 0, GPU, VRAM))        # no page
    print(refused(ioctl, kfd, 0x16, "QQQQII", ARENA, 0, 0, 0, GPU, VRAM))
    print(refused(ioctl, kfd, 0x17, "Q", 99), refused(ioctl, kfd, 0x18, "QQII", 99, 0, 0, 0))
    print(refused(ioctl, kfd, 0x03, "II", 5, 0), refused(ioctl, kfd, 0x0f, "IIQ", 5, 32, 0))
    print(refused(ioctl, kfd, 0x02, "QQQQIIIIIIQQQII", 1 << 46, 1 << 46, 1 << 46, 0, PAGE, GPU, 2, 100, 7, *[0] * 6))
    print(refused(ioctl, kfd, 0x0a, "II", 7, 0), refused(ioctl, drm, 0x7e, "Q", 0, kind=ord("d")))
    print(libc.ioctl(kfd, request(0x01, 8), 16), errno.errorcode[ctypes.get_errno()])   # arguments that are not there
    print(refused(ioctl, kfd, 0x18, "QQII", 1, 16, 4, 0))                               # nor their array
    print(refused(fcntl.ioctl, sys.stdin.fileno(), request(0x01, 8), bytearray(8)) in ("ENOTTY", "EINVAL"))
    """
    assert drive(text, tmp_path).splitlines() == [
        "ENOTTY EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL EINVAL", "EINVAL EFAULT", "EFAULT", "EINVAL EINVAL",
        "-1 EFAULT", "EFAULT", "True",
    ]  # fmt: skip


def test_memory_of_the_device_has_an_end_and_comes_back(tmp_path: Path) -> None:
    text = """
    M = 1 << 20
    print(ioctl(kfd, 0x23, "QII", 0, GPU, 0)[0] // M)
    first = Memory(kfd, drm, ARENA + 16 * M, 5 * M)
    print(ioctl(kfd, 0x23, "QII", 0, GPU, 0)[0] // M)
    print(refused(Memory, kfd, drm, ARENA + 32 * M, 4 * M))
    first.word(0).value = 77
    first.free()
    again = Memory(kfd, drm, ARENA + 16 * M, 8 * M)
    print(again.word(0).value, again.word(8 * M - 4).value)
    """
    assert drive(text, tmp_path, LUTHIER_DEVICE_MEMORY="8M").splitlines() == ["8", "3", "ENOMEM", "0 0"]


def test_drm_says_what_libdrm_asks(tmp_path: Path) -> None:
    text = """
    names = (ctypes.c_char * 16)(), (ctypes.c_char * 16)(), (ctypes.c_char * 32)()
    args = [0, 0, 0, 0] + [x for name in names for x in (len(name), ctypes.addressof(name))]
    fields = ioctl(drm, 0x00, "iiiiQQQQQQ", *args, kind=ord("d"))
    print(fields[0], names[0].value.decode(), fields[4])
    word = ctypes.c_uint32()
    ioctl(drm, 0x45, "QII", ctypes.addressof(word), 4, 0, kind=ord("d"), size=32)
    print(word.value)
    """
    assert drive(text, tmp_path).splitlines() == ["3 amdgpu 6", "1"]


@pytest.mark.parametrize("device", ["gpu", "emulator:gfx1", ""])
def test_without_a_device_everything_goes_its_way(tmp_path: Path, device: str) -> None:
    """A device that is none of ours, and none: the program finds what the machine has. One that is wrong is none."""
    with pytest.raises(AssertionError) as failed:
        drive("", tmp_path, device)
    assert "/dev/kfd" in str(failed.value) and ("luthier:" in str(failed.value)) == device.startswith("emulator")


def test_what_the_driver_does_not_write_to_may_be_read_only(tmp_path: Path) -> None:
    text = """
    def sealed(form, *values):
        page = place(PAGE)
        ctypes.memmove(page, struct.pack(form, *values), struct.calcsize(form))
        libc.mprotect(ctypes.c_void_p(page), PAGE, 1)
        return page
    ring = Ring(kfd, drm, ARENA + (1 << 20), 2)
    print(refused(ioctl, kfd, 0x0f, "IIQ", ring.number, 32, sealed("I", 1)))
    handle = ioctl(kfd, 0x16, "QQQQII", ARENA + (4 << 20), PAGE, 0, 0, GPU, VRAM | WRITABLE)[2]
    print(refused(ioctl, kfd, 0x18, "QQII", handle, sealed("I", GPU), 1, 0))
    print(libc.ioctl(kfd, request(0x03, 8, 1), sealed("II", ring.number, 0)))  # _IOW
    print(libc.ioctl(kfd, request(0x01, 8, 2), sealed("II", 0, 0)), errno.errorcode[ctypes.get_errno()])  # _IOR
    """
    assert drive(text, tmp_path).splitlines() == ["nothing", "nothing", "0", "-1 EFAULT"]


def test_without_its_worker_the_device_is_gone_and_no_other_takes_its_place(tmp_path: Path) -> None:
    """A machine's own GPU must not go on with what the emulated one has begun."""
    text = """
    import signal
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            ours = open(f"/proc/{process}/environ").read().count("LUTHIER_DEVICE_PROFILE=" + sys.argv[0])
            words = open(f"/proc/{process}/cmdline").read().split("\\0")
        except OSError:
            continue
        if ours and words[1:3] == ["-I", "-c"]:
            os.kill(int(process), signal.SIGKILL)
    until(lambda: refused(ioctl, kfd, 0x01, "II", 0, 0) == "EIO")
    print(refused(os.open, "/dev/kfd", os.O_RDWR), refused(os.open, "/dev/dri/renderD128", os.O_RDWR))
    print(os.access("/dev/kfd", os.R_OK))
    """
    mark = str(tmp_path / "driven.py")  # no launch, no profile
    assert drive(text, tmp_path, LUTHIER_DEVICE_PROFILE=mark).splitlines() == ["ENODEV ENODEV", "False"]
