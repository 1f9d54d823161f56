"""Tables that give texts and tracks small numbers while a decoder runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from profiler.trace.batch import NONE, Int32

_MOST_PLACES = 1 << 22


class Strings(dict[object, int]):
    """Text -> code, growing; numbers and bytes count as their text, None is `NONE`."""

    def __init__(self, name_chars: int) -> None:
        super().__init__({None: NONE})
        self._fresh: list[str] = []
        self._chars = name_chars
        self._count = 0
        self.clipped = 0

    def __missing__(self, key: object) -> int:
        text = key if isinstance(key, str) else _plain(key)
        if len(text) > self._chars:
            text = text[: self._chars - 1] + "…"
            self.clipped += 1
        if not text.isascii():
            text = encodable(text)
        code = self.get(text, NONE) if text is not key else NONE
        if code == NONE:
            code = self._count
            self._count += 1
            self._fresh.append(text)
            self[text] = code
        self[key] = code
        return code

    def codes(self, values: Iterable[object], count: int) -> Int32:
        """Codes of `count` values."""
        return np.fromiter(map(self.__getitem__, values), np.int32, count)

    def take(self) -> list[str]:
        """The entries added since the last call, in code order."""
        fresh, self._fresh = self._fresh, []
        return fresh


def encodable(text: str) -> str:
    """`text` with lone surrogates replaced: they cannot be stored as UTF-8."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _plain(key: object) -> str:
    if isinstance(key, bytes):
        return key.decode("utf-8", errors="replace")
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


class Tracks:
    """(pid, tid) -> code; a number and its text are the same."""

    def __init__(self) -> None:
        self._pids = Strings(1 << 10)
        self._tids = Strings(1 << 10)
        self._texts: tuple[list[str], list[str]] = ([], [])
        self._codes: dict[tuple[int, int], int] = {}
        self._fresh: list[tuple[str, str]] = []

    def codes(self, pids: Sequence[object], tids: Sequence[object]) -> Int32:
        """Codes of the pairs."""
        pid, tid = self._pids.codes(pids, len(pids)), self._tids.codes(tids, len(tids))
        self._texts[0].extend(self._pids.take())
        self._texts[1].extend(self._tids.take())
        width = len(self._texts[1])
        key = pid.astype(np.int64) * width + tid
        if len(self._texts[0]) * width > _MOST_PLACES:
            pairs, inverse = np.unique(key, return_inverse=True)
            codes = [self._code(pair // width, pair % width) for pair in pairs.tolist()]
            return np.asarray(np.array(codes, np.int32)[inverse])
        # Few tracks and many events: marking places beats sorting.
        seen = np.zeros(len(self._texts[0]) * width, np.bool_)
        seen[key] = True
        present = np.flatnonzero(seen)
        code_of = np.empty(len(seen), np.int32)
        code_of[present] = [self._code(pair // width, pair % width) for pair in present.tolist()]
        return np.asarray(code_of[key])

    def _code(self, pid: int, tid: int) -> int:
        code = self._codes.get((pid, tid))
        if code is None:
            code = self._codes[pid, tid] = len(self._codes)
            self._fresh.append((self._texts[0][pid], self._texts[1][tid]))
        return code

    def take(self) -> list[tuple[str, str]]:
        """The entries added since the last call, in code order."""
        fresh, self._fresh = self._fresh, []
        return fresh
