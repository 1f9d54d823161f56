"""What an operator must compute and move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["matrix", "vector", "move"]
"""`matrix`: matrix units; `vector`: arithmetic on elements; `move`: data movement only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """FLOPs and least traffic of one call, each operand moved once.

    `dtype` is the type the arithmetic runs in.
    """

    flops: int
    size_bytes: int
    unit: Unit
    dtype: str

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte, None without traffic."""
        return self.flops / self.size_bytes if self.size_bytes else None
