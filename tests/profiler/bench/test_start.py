"""What a benchmark's process loads before it measures: a comparison starts dozens of them."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch._dynamo", "torch.distributed.tensor", "torch.distributed.fsdp", "sympy")
LOADED = f"""
import sys
import profiler.bench.complete
import transformers
transformers.PreTrainedConfig
print(*[name for name in {HEAVY} if name in sys.modules])
"""


def test_it_loads_what_only_some_runs_need_for_those_alone() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr
