"""Small traces of ranks that communicate."""

from __future__ import annotations

import json

END_US = 1000


def recorded(*, late_us: int, rank: int | None = None) -> bytes:
    """Four all-reduces that end together on all ranks; this rank comes `late_us` late."""
    events = []
    for number in range(4):
        end = END_US * (number + 1)
        start = end - 300 + late_us
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
        link = {"correlation": number + 1}
        events.append({**launch, "ts": start - 10, "dur": 5, "args": link})
        kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7}
        place = {"device": 0, "stream": 7, "Collective name": "allreduce", "Group size": 2}
        events.append({**kernel, "ts": start, "dur": end - start, "args": {**link, **place}})
    trace: dict[str, object] = {"schemaVersion": 1, "traceEvents": events}
    if rank is not None:
        trace["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    return json.dumps(trace).encode()
