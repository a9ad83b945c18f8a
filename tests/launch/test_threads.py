"""Regions on threads: every tile exactly once, whoever calls, from wherever, in whatever mode."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from irad.launch import threads
from irad.launch.native import native
from irad.launch.tables import MOST_WORKERS, Pool

from . import regions


def in_child(function) -> None:
    """Run a function in a forked child, which must end well within 20 s."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(20)
            function()
        except BaseException as error:
            os.write(2, f"child: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("tiles", [0, 1, 2, 3, 7, 64])
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_each_tile_once(tiles, n):
    block = regions.counter(tiles)
    for _ in range(200):
        regions.run("count", block, tiles, n)
    regions.check(block, 200)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_as_many_threads_as_asked_for_work_at_once(n):
    """Tiles that wait for one another all meet: each has a thread of its own, also with more threads than cores."""
    for _ in range(3):
        block = np.array([0, 10**9, n, 0], np.int64)
        regions.run("meet", block, n, n)
        assert block[3] == n


def test_no_more_threads_than_asked_for():
    """Three tiles on two threads never all meet: the last begins when another has given up."""
    regions.run("meet", np.array([0, 10**9, 5, 0], np.int64), 5, 5)
    block = np.array([0, 10**6, 3, 0], np.int64)
    regions.run("meet", block, 3, 2)
    assert block[0] == 3
    assert block[3] < 3


def test_more_threads_than_there_can_be():
    block = regions.counter(1000)
    regions.run("count", block, 1000, 10**9)
    regions.check(block, 1)


def test_python_threads_at_once():
    """Four threads launch; whoever finds the pool busy runs alone."""
    blocks = [regions.counter(tiles, turns=20) for tiles in (1, 2, 16, 64)]
    errors = []

    def work(block):
        try:
            for _ in range(1500):
                regions.run("count", block, block.size - 3, 3)
            regions.check(block, 1500)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(b,)) for b in blocks]
    for w in workers:
        w.start()
    for w in workers:
        w.join(30)
        assert not w.is_alive()
    assert not errors


def test_nested_regions_run_alone():
    inner = np.zeros(1, np.int64)
    outer = np.array([threads.pool_address(), inner.ctypes.data, 8, 2], np.int64)
    for _ in range(500):
        regions.run("nested", outer, 4, 2)
    assert inner[0] == 500 * 4 * 8


def test_pauses_between_regions():
    """Workers fall asleep and wake up, at every moment of falling asleep."""
    block = regions.counter(8)
    rng = np.random.default_rng(0)
    for pause in rng.uniform(0, 300e-6, 1500):
        end = time.perf_counter() + pause
        while time.perf_counter() < end:
            pass
        regions.run("count", block, 8, 3)
    regions.check(block, 1500)


def test_sleep_between_regions():
    block = regions.counter(8)
    for _ in range(20):
        time.sleep(0.005)
        regions.run("count", block, 8, 3)
    regions.check(block, 20)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_children_and_grandchildren():
    block = regions.counter(16, turns=50)
    regions.run("count", block, 16, 3)

    def child():
        for _ in range(100):
            regions.run("count", block, 16, 3)
        regions.check(block, 101)
        in_child(grandchild)
        regions.run("count", block, 16, 3)
        regions.check(block, 102)

    def grandchild():
        for _ in range(100):
            regions.run("count", block, 16, 3)
        regions.check(block, 201)

    for _ in range(20):
        in_child(child)
    regions.run("count", block, 16, 3)
    regions.check(block, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork_while_another_thread_launches():
    stop = threading.Event()
    busy = regions.counter(16, turns=50)

    def launch():
        while not stop.is_set():
            regions.run("count", busy, 16, 3)

    other = threading.Thread(target=launch)
    other.start()
    try:
        for _ in range(30):
            block = regions.counter(16, turns=50)

            def child(block=block):
                for _ in range(20):
                    regions.run("count", block, 16, 3)
                regions.check(block, 20)

            in_child(child)
    finally:
        stop.set()
        other.join(20)
    assert not other.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_child_has_threads_of_its_own():
    block = regions.counter(16, turns=2000)
    regions.run("count", block, 16, 3)

    def child():
        assert threads._pool[Pool.STARTED] == 0
        regions.run("count", block, 16, 3)
        assert threads._pool[Pool.STARTED] >= 2

    in_child(child)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork_without_python_knowing():
    """A fork in C resets nothing: the child still runs all tiles."""
    block = regions.counter(16, turns=50)
    regions.run("count", block, 16, 3)
    pid = ctypes.CDLL(None).fork()
    if pid == 0:
        signal.alarm(20)
        for _ in range(50):
            regions.run("count", block, 16, 3, keep_gil=True)
        os._exit(0 if block[0] == 51 * 16 and np.all(block[3:] == 51) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.skipif(not regions.X86, reason="the test sets the x86 control register")
@pytest.mark.parametrize("flush", [False, True])
def test_floating_point_mode_is_handed_on(flush):
    """All tiles agree on subnormal numbers, whichever mode the caller is in and workers were in before."""
    exchange = ctypes.PYFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(regions.code().address("exchange_mode"))
    normal = 0x1F80
    seen = set()
    for mode in (normal, 0x9FC0) if flush else (0x9FC0, normal):
        for _ in range(50):
            block = np.zeros(66, np.int64)
            block[:2] = 2000, np.finfo(float).tiny.view(np.int64)
            before = exchange(mode)
            regions.run("subnormal", block, 64, 3, keep_gil=True)
            after = exchange(before)
            assert after & ~0x3F == mode & ~0x3F
            halves = set(block[2:].view(np.float64).tolist())
            assert len(halves) == 1
            seen |= halves
    assert seen == {0.0, float(np.finfo(float).tiny) / 2}


def test_number_of_threads():
    default = threads.num_threads()
    with threads.using_threads(3):
        assert threads.num_threads() == 3
        assert "up to 3" in threads.describe()
    assert threads.num_threads() == default
    threads.set_num_threads(5)
    assert threads.num_threads() == 5
    threads.set_num_threads(None)
    assert threads.num_threads() == default
    for bad in (0, -1, MOST_WORKERS + 2):
        with pytest.raises(ValueError, match="between 1 and"):
            threads.set_num_threads(bad)


def outside(program: str, **environment: str) -> str:
    """Output of a Python program in a new process."""
    env = {**os.environ, "IRAD_NUM_THREADS": "", "NUMBA_NUM_THREADS": "", **environment}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_environment_sets_the_number():
    ask = "from irad.launch import threads; print(threads.num_threads())"
    assert outside(ask, IRAD_NUM_THREADS="7") == "7"
    assert outside(ask, NUMBA_NUM_THREADS="6") == "6"
    assert outside(ask, NUMBA_NUM_THREADS="6", IRAD_NUM_THREADS="3") == "3"
    assert outside(ask) == str(threads._default_threads())


def test_numba_is_asked_once_it_is_up():
    """At every stage: Numba not imported, imported, its layer up; and for each Python thread its own number."""
    program = """
from irad.launch import threads
import sys, threading
counts = [threads.num_threads()]
import numba
assert not numba.np.ufunc.parallel._is_initialized
counts.append(threads.num_threads())
assert not numba.np.ufunc.parallel._is_initialized
numba.set_num_threads(2)
counts.append(threads.num_threads())
def other():
    numba.set_num_threads(3)
    counts.append(threads.num_threads())
t = threading.Thread(target=other)
t.start()
t.join()
counts.append(threads.num_threads())
print(*counts)
"""
    assert outside(program, NUMBA_NUM_THREADS="4") == "4 4 2 3 2"


def test_process_ends_while_workers_sleep_or_spin():
    program = """
import sys
sys.path.insert(0, {root!r})
from tests.launch import regions
block = regions.counter(64, turns=100)
for _ in range(100):
    regions.run("count", block, 64, 8)
regions.check(block, 100)
print("done")
"""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for _ in range(2):
        assert outside(program.format(root=root)) == "done"


def test_worker_that_cannot_start_is_done_without():
    """With no address space for another stack the region still runs."""
    program = """
import sys, resource
sys.path.insert(0, {root!r})
from tests.launch import regions
from irad.launch import threads
from irad.launch.tables import Pool
regions.code(), threads.pool_address()
import threading
threading.stack_size(1 << 30)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.getrlimit(resource.RLIMIT_AS)[1]))
block = regions.counter(64, turns=100)
for _ in range(100):
    regions.run("count", block, 64, 3, keep_gil=True)
regions.check(block, 100)
print("done", threads._pool[Pool.STARTED])
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("limits the address space")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    assert outside(program.format(root=root)) == "done 0"


def test_interrupt_is_not_lost():
    """Ctrl-C during a long launch arrives when the launch returns."""
    block = regions.counter(2, turns=10_000_000)
    regions.run("count", regions.counter(2), 2, 2)
    timer = threading.Timer(0.02, signal.raise_signal, [signal.SIGINT])
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process may have it ignored
    launches = 0
    try:
        timer.start()
        with contextlib.suppress(KeyboardInterrupt):
            while launches < 1000:
                regions.run("count", block, 2, 2)
                launches += 1
        timer.join()
    finally:
        signal.signal(signal.SIGINT, usual)
    assert launches < 1000
    assert block[0] in (2 * launches, 2 * launches + 2)


def test_native_code_is_made_once():
    assert native() is native()
