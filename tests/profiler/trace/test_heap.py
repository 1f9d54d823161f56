"""Freed memory stays whole while a profiler writes down what it sees."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import contextlib, ctypes, resource, sys
from profiler.trace.heap import cushioned

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
library.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
TENSOR = 1 << 24


def step(recording):
    tensor = library.malloc(TENSOR)
    library.memset(tensor, 1, TENSOR)
    kept = recording and library.malloc(100_000)
    library.free(tensor)
    for _ in range(20 * recording):
        library.malloc(300)
    recording and library.malloc(100_000)


for _ in range(3):
    step(False)
with cushioned() if sys.argv[1] == "cushioned" else contextlib.nullcontext():
    step(True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        step(True)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Pages the process had to ask for while it used the same 16 MiB again and again."""
    command = [sys.executable, "-c", PROGRAM, how]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only for glibc")
def test_what_a_profiler_keeps_does_not_break_up_freed_tensors() -> None:
    # 4,096 pages are one tensor.
    assert faults("plain") > 4_000
    assert faults("cushioned") < 400
