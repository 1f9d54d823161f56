"""Telling a limit of the device or library from a fault of ours."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import torch

from profiler.errors import DeviceMemoryError, UnsupportedError, UserError

_CPU_ALLOCATION = re.compile(r"can't allocate memory: you tried to allocate (\d+) bytes")
_UNSUPPORTED = (
    re.compile(r"Could not run '(?P<what>[^']+)'"),
    re.compile(r"The operator '(?P<what>[^']+)' is not currently implemented"),
    re.compile(r"[\"'](?P<what>[^\"']+)[\"'] not implemented for"),
    re.compile(r"(?P<what>aten::\w+)[^\n]* not (?:implemented|supported)"),
    re.compile(r"(?P<what>[\w.]+): [^\n]*dtypes? not supported"),
    re.compile(r"(?P<what>\w+) does not support an attention implementation"),
)


@contextlib.contextmanager
def classified(device: str) -> Iterator[None]:
    """Turn an error of the device or library into the `UserError` it means; let others pass."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        known = classify(error, device)
        if known is None:
            raise
        raise known from error


def classify(error: Exception, device: str) -> UserError | None:
    """The failure kind of `error`, or None when it is none a person can act on."""
    text = str(error)
    first = text.splitlines()[0][:300] if text else type(error).__name__
    allocation = _CPU_ALLOCATION.search(text)
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or allocation:
        return DeviceMemoryError(
            f"out of memory on {device}: {first}",
            "use a smaller batch, shorter sequences, a smaller dtype or a smaller model",
        )
    if isinstance(error, (RuntimeError, NotImplementedError, ValueError)):
        for pattern in _UNSUPPORTED:
            match = pattern.search(text)
            if match:
                return UnsupportedError(
                    f"{match['what']} is not supported on {device}: {first}",
                    "try another dtype or device",
                )
    return None
