"""What a benchmark is told about the machine, and what it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.environment import benchmark_environment, reader_environment


@pytest.mark.parametrize(
    "name", ["PATH", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "OMP_NUM_THREADS", "TORCH_LOGS"]
)
def test_it_passes_on_what_changes_the_numbers(tmp_path: Path, name: str) -> None:
    assert benchmark_environment({name: "value"}, tmp_path, {})[name] == "value"


@pytest.mark.parametrize(
    "name",
    [
        *("SECRET_KEY", "DATABASE_URL", "BROKER_URL", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"),
        *("TORCH_HUB_TOKEN", "CUDA_PASSWORD", "SSH_AUTH_SOCK", "VAR_DIR", "PGPASSFILE"),
    ],
)
def test_it_keeps_what_is_ours(tmp_path: Path, name: str) -> None:
    told = benchmark_environment({name: "canary"}, tmp_path, {})
    assert "canary" not in told.values()


def test_it_gives_every_run_a_home_of_its_own(tmp_path: Path) -> None:
    told = benchmark_environment({"HOME": "/root", "TMPDIR": "/tmp"}, tmp_path, {"MARK": "1"})
    assert Path(told["HOME"]).parent == tmp_path
    assert Path(told["TMPDIR"]).is_dir()
    assert told["MARK"] == "1"


def test_it_tells_a_reader_nothing_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary")
    assert "canary" not in reader_environment(tmp_path, {}).values()
