"""Events: blocking waits, what a wait resets, time, and all of several."""

from __future__ import annotations

from pathlib import Path

from driven import drive

EVENTS = """
def create(automatic, kind=0):
    return ioctl(kfd, 0x08, "QIIIIII", 0, 0, kind, automatic, 0, 0, 0)[5]

def wait(numbers, milliseconds, everything=0):
    rows = bytearray(b"".join(struct.pack("<40xII", number, 0) for number in numbers))
    at = (ctypes.c_char * len(rows)).from_buffer(rows)
    return ioctl(kfd, 0x0c, "QIIII", ctypes.addressof(at), len(numbers), everything, milliseconds, 0)[4]

def signal(number):
    ioctl(kfd, 0x0a, "II", number, 0)

COMPLETE, TIMEOUT = 0, 1
"""


def test_a_wait_ends_by_its_event_or_by_its_time(tmp_path: Path) -> None:
    text = """
    automatic, manual = create(1), create(0)
    print(wait([automatic], 30), wait([manual], 0))
    signal(automatic), signal(manual)
    print(wait([automatic], 1000), wait([automatic], 0), wait([manual], 1000), wait([manual], 0))
    ioctl(kfd, 0x0b, "II", manual, 0)
    print(wait([manual], 0))
    ioctl(kfd, 0x09, "II", manual, 0)
    print(refused(wait, [manual], 0), refused(wait, [], 0))
    """
    assert drive(text, tmp_path, before=EVENTS).splitlines() == ["1 1", "0 1 0 0", "1", "EINVAL EINVAL"]


def test_who_says_how_often_it_was_set_misses_nothing(tmp_path: Path) -> None:
    """Ages of events, from version 1.14 on: a wait is over at once where it was set since, whoever has seen that."""
    text = """
    def wait_since(age, milliseconds):
        row = bytearray(struct.pack("<Q32xII", age, event, 0))
        at = (ctypes.c_char * len(row)).from_buffer(row)
        result = ioctl(kfd, 0x0c, "QIIII", ctypes.addressof(at), 1, 0, milliseconds, 0)[4]
        return result, struct.unpack_from("<Q", row)[0]
    event = create(1)
    print(wait_since(1, 0))
    signal(event), signal(event)
    print(wait_since(1, 1000), wait_since(1, 1000), wait_since(3, 0), wait([event], 0))
    signal(event)
    print(wait_since(3, 1000), wait_since(0, 0))
    """
    assert drive(text, tmp_path, before=EVENTS).splitlines() == ["(1, 1)", "(0, 3) (0, 3) (1, 3) 1", "(0, 4) (1, 0)"]


def test_all_who_wait_are_woken_and_nobody_else_later(tmp_path: Path) -> None:
    text = """
    def woken(seconds):
        "Whether all who began to wait this long before are woken at once; those who were late are woken later."
        wait([event], 0)
        threads = [threading.Thread(target=lambda: results.append(wait([event], 300_000))) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        signal(event)
        for thread in threads:
            thread.join(seconds)
        late = [thread for thread in threads if thread.is_alive()]
        while any(thread.is_alive() for thread in threads):
            signal(event)
            time.sleep(0.01)
        return not late

    event, results = create(1), []
    print(any(map(woken, (0.5, 2, 8, 32))), wait([event], 0), set(results))
    """
    assert drive(text, tmp_path, before=EVENTS).splitlines() == ["True 1 {0}"]


def test_one_of_several_and_all_of_several(tmp_path: Path) -> None:
    text = """
    events = [create(1) for _ in range(3)]
    signal(events[1])
    print(wait(events, 0), wait(events, 0))
    signal(events[0]), signal(events[2])
    print(wait(events, 20, 1))  # in vain, but the two are reset, as KFD has it
    signal(events[0]), signal(events[2])
    threading.Timer(0.05, signal, [events[1]]).start()
    print(wait(events, 300_000, 1), wait(events, 0))
    """
    assert drive(text, tmp_path, before=EVENTS).splitlines() == ["0 1", "1", "0 1"]


def test_there_are_as_many_as_the_driver_has(tmp_path: Path) -> None:
    text = """
    events = []
    try:
        while True:
            events.append(create(1))
    except OSError as error:
        print(len(events), errno.errorcode[error.errno], len(set(events)))
    ioctl(kfd, 0x09, "II", events[17], 0)
    print(create(1) == events[17])
    """
    assert drive(text, tmp_path, before=EVENTS).splitlines() == ["4095 ENOSPC 4095", "True"]


def test_who_waits_for_an_event_that_is_destroyed_is_told(tmp_path: Path) -> None:
    text = """
    event, found = create(1), []
    thread = threading.Thread(target=lambda: found.append(refused(wait, [event], 300_000)))
    thread.start()
    waiting = ctypes.c_uint32.from_address(ARENA + 4096 + 48 * event + 12)  # EVENT_WORDS of protocol.py
    until(lambda: waiting.value == 1)
    ioctl(kfd, 0x09, "II", event, 0)
    thread.join()
    print(found)
    """
    assert drive(text, tmp_path, before=EVENTS).splitlines() == ["['EIO']"]


def test_a_child_is_made_while_others_make_events(tmp_path: Path) -> None:
    """What a thread of the parent holds in that moment, nobody would ever give back in the child."""
    text = """
    import signal as signals
    while refused(create, 1) == "nothing":  # so that to look for room takes long
        pass
    def more():
        while True:
            refused(create, 1)
    threads = [threading.Thread(target=more, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    for _ in range(3):
        child = os.fork()
        if not child:
            signals.alarm(20)
            again = os.open("/dev/kfd", os.O_RDWR)
            ioctl(again, 0x08, "QIIIIII", 0, 0, 0, 1, 0, 0, 0)
            os._exit(0)
        codes.append(os.waitpid(child, 0)[1])
    print(codes)
    sys.stdout.flush()
    os._exit(0)
    """
    assert drive(text, tmp_path, before=EVENTS).splitlines() == ["[0, 0, 0]"]
