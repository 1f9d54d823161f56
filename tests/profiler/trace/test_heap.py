"""What the C library does with freed memory."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc"
)

FAULTS = """
import contextlib, ctypes, resource, sys
from profiler.trace.heap import stocked

MIB = 1 << 20
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
library.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: with huge pages there is little to count

def steps():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        block = library.malloc(8 * MIB)
        ctypes.memset(block, 1, 8 * MIB)
        library.free(block)
        # Something small that stays settles in the hole and breaks it.
        library.malloc(4096)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

heap = stocked(256 * MIB) if sys.argv[1] == "stocked" else contextlib.nullcontext()
with heap:
    inside = steps()
kept = [line for line in open("/proc/self/status") if line.startswith("VmRSS")][0].split()[1]
print(inside, int(kept) // 1024)
"""


def faults(kind: str) -> tuple[int, int]:
    """Page faults of five steps that take 8 MiB each, and the MiB in memory afterwards."""
    command = [sys.executable, "-c", FAULTS, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    inside, kept = done.stdout.split()
    return int(inside), int(kept)


def test_a_stock_takes_the_faults_of_blocks_that_were_broken_up() -> None:
    bare, _ = faults("bare")
    stock, _ = faults("stocked")
    assert bare > 2_000  # 8 MiB of 4 KiB pages in the first step alone
    assert stock < 50


def test_what_is_left_of_the_stock_goes_back() -> None:
    _, bare = faults("bare")
    _, stock = faults("stocked")
    assert stock < bare + 128
