"""A local folder of weights, checked file by file before a model is built. Loads no torch.

Only safetensors are read: their headers are JSON and their tensors plain
bytes, so nothing in the folder can run.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from profiler.errors import CheckpointError

T = TypeVar("T")

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
HEADER_LIMIT_BYTES = 100 << 20
"""safetensors' own limit of a header."""


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A folder whose shards are all there and whole."""

    folder: Path
    shards: tuple[Path, ...]
    tensors: int
    weight_bytes: int


def read_config(folder: Path) -> dict[str, object]:
    """The content of the folder's `config.json`; `CheckpointError` when there is none."""
    path = folder / "config.json"
    return _json(path, dict[str, object])


def inspect(folder: Path) -> Checkpoint:
    """Look at every shard of `folder`; `CheckpointError` names the first that is wrong."""
    weight_map = _weight_map(folder)
    shards = tuple(folder / name for name in sorted(set(weight_map.values())))
    found: dict[str, str] = {}
    total = 0
    for shard in shards:
        header = read_header(shard)
        found |= dict.fromkeys(header, shard.name)
        total += sum(tensor.data_offsets[1] - tensor.data_offsets[0] for tensor in header.values())
    lost = sorted(name for name, shard in weight_map.items() if found.get(name) != shard)
    if lost:
        raise CheckpointError(
            f"shard {weight_map[lost[0]]} of {folder} lacks tensor {lost[0]}"
            + (f" and {len(lost) - 1} more" if len(lost) > 1 else ""),
            "the index and the shards belong to different models",
        )
    return Checkpoint(folder=folder, shards=shards, tensors=len(found), weight_bytes=total)


def read_header(shard: Path) -> dict[str, _Tensor]:
    """The tensors a safetensors file declares; `CheckpointError` when it is damaged or cut off."""
    try:
        size = shard.stat().st_size
        with shard.open("rb") as file:
            prefix = file.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else None
            if length is None or length > min(size - 8, HEADER_LIMIT_BYTES):
                raise CheckpointError(f"shard {shard} is truncated or no safetensors file", "")
            raw = file.read(length)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(f"shard {shard} cannot be read: {reason}", "copy it again") from None
    tensors = _tensors(shard, raw)
    needed = 8 + length + max((t.data_offsets[1] for t in tensors.values()), default=0)
    if size != needed:
        raise CheckpointError(
            f"shard {shard} is {'truncated' if size < needed else 'too long'}: "
            f"{size:,} of {needed:,} bytes",
            "copy it again",
        )
    return tensors


def _tensors(shard: Path, raw: bytes) -> dict[str, _Tensor]:
    try:
        header = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return {
            name: msgspec.json.decode(entry, type=_Tensor)
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except msgspec.MsgspecError as error:
        raise CheckpointError(f"shard {shard} has a damaged header: {error}") from None


def _weight_map(folder: Path) -> dict[str, str]:
    """Tensor name -> shard name, from the index or from the single file."""
    if (folder / INDEX).is_file():
        weight_map = _json(folder / INDEX, _Index).weight_map
        outside = [name for name in weight_map.values() if Path(name).name != name]
        if outside or not weight_map:
            what = f"names a shard outside it: {outside[0]}" if outside else "names no tensor"
            raise CheckpointError(f"index of {folder} {what}")
        return weight_map
    if (folder / SINGLE).is_file():
        return dict.fromkeys(read_header(folder / SINGLE), SINGLE)
    raise CheckpointError(
        f"{folder} holds neither {INDEX} nor {SINGLE}",
        "only safetensors are loaded; convert other weights first",
    )


def _json(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(f"{path} cannot be read: {reason}", "check the folder") from None
    except msgspec.MsgspecError as error:
        raise CheckpointError(f"{path} is damaged: {error}", "copy it again") from None
