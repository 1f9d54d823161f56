"""Keeps freed memory from staying with the process (glibc; elsewhere these do nothing).

Decoding makes and frees millions of small objects between large columns, and
the analyses large temporary arrays; left alone, the C library keeps most of
that for later, which doubles the memory of a big trace.
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_BIG_BYTES = 1 << 16
_KEPT_BYTES = 1 << 25


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
