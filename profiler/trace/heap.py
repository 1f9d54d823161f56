"""Says what the C library does with freed memory (glibc; elsewhere these do nothing).

Decoding makes and frees millions of small objects between large columns, and
the analyses large temporary arrays; left alone, the C library keeps most of
that for later, which doubles the memory of a big trace. Recording a model is
the other way round: what it frees has to stay.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_BIG_BYTES = 1 << 16
_KEPT_BYTES = 1 << 25
_NEVER = (1 << 31) - 1
"""Above every stock: a larger end of the heap would be given back all the same."""


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return library if hasattr(library, "malloc_trim") else None


def give_big_blocks_back() -> None:
    """From now on blocks above 64 KiB go back to the system as soon as they are freed."""
    library = _library()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, _BIG_BYTES)


def keep_blocks() -> None:
    """From now on blocks up to 32 MiB are kept for reuse: fresh ones cost a fault per page."""
    library = _library()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_TRIM_THRESHOLD, 2 * _KEPT_BYTES)


def trim() -> None:
    """Give freed small blocks back now."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


@contextlib.contextmanager
def stocked(size_bytes: int) -> Iterator[None]:
    """Inside, up to `size_bytes` that no block had before come from pages already in memory.

    What a profiler keeps settles in the gaps of blocks that large tensors gave back, so that the
    next such tensor fits nowhere and takes pages the process never had: a fault for each of them,
    which makes operators look slower than they are. A stock of pages that were touched beforehand
    takes the faults away; afterwards what is left of it goes back to the system.
    """
    library = _library()
    if library is None:
        yield
        return
    library.mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
    library.mallopt(_TRIM_THRESHOLD, _NEVER)
    _touch(library, min(size_bytes, _NEVER))
    try:
        yield
    finally:
        keep_blocks()
        library.malloc_trim(0)


def _touch(library: ctypes.CDLL, size_bytes: int) -> None:
    """Blocks just below what the library would map apart, filled and given back to the heap."""
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    each = _KEPT_BYTES - (1 << 16)
    blocks = [library.malloc(each) for _ in range(size_bytes // each)]
    for block in filter(None, blocks):
        ctypes.memset(block, 0, each)
        library.free(block)
