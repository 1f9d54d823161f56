"""Says what the C library does with freed memory (glibc; elsewhere these do nothing).

Decoding makes and frees millions of small objects between large columns, and
the analyses large temporary arrays; left alone, the C library keeps most of
that for later, which doubles the memory of a big trace. Recording a model is
the other way round: what it frees must stay, and stay whole.
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
_CUSHION_BYTES = 1 << 18
_CUSHIONS = 400


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
def cushioned() -> Iterator[None]:
    """Inside, freed memory stays, and small blocks that live long do not break up large ones.

    A profiler keeps what it writes down. Left alone it puts that into the block a large tensor just
    gave back, so that the next such tensor finds no room and takes pages the process never had: a
    fault each, which makes operators look slower than they are. Small blocks find room first in a
    cushion of 100 MiB, which costs address space alone until it is used.
    """
    library = _library()
    if library is None:
        yield
        return
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    library.mallopt(_TRIM_THRESHOLD, _NEVER)
    blocks = [library.malloc(_CUSHION_BYTES) for _ in range(2 * _CUSHIONS)]
    # Every second one stays, else they would become one large block again.
    for block in blocks[::2]:
        library.free(block)
    try:
        yield
    finally:
        for block in blocks[1::2]:
            library.free(block)
        keep_blocks()
