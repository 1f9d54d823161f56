"""Credentials and personal details in traces: reported by kind, never kept, removable."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from profiler.analysis.ingest import ingest
from profiler.cli import main
from profiler.trace.secrets import clean, redact
from tests.profiler.trace.build import TraceBuilder, small

TOKEN = "hf_" + "a1B2c3D4" * 4
SECRETS = (TOKEN, "hunter2-hunter2", "build-node-17", "/home/carol")


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    made = small()
    made.header["metadata"] = {
        "env": {"PATH": "/bin", "HF_TOKEN": TOKEN, "LANG": "C", "HOME": "/home/carol", "TERM": "x"},
        "login": {"password": "hunter2-hunter2"},
    }
    made.header["host_name"] = "build-node-17"
    made.event("python_function", "/home/carol/train.py(3): step", 1000.0, 50.0)
    made.mark(f"upload --token {TOKEN}", 1001.0, 1.0)
    return made.write(tmp_path / "leaky.json")


def test_it_warns_by_kind_and_never_repeats_a_value(leaky: Path) -> None:
    report = ingest([leaky], None)
    (warning,) = [text for text in report.quality.warnings if "--redact" in text]
    assert "credential under metadata.login.password" in warning
    assert "environment block" in warning
    assert not any(secret in warning for secret in SECRETS)


def test_it_stores_no_secret(leaky: Path, tmp_path: Path) -> None:
    ingest([leaky], tmp_path / "out")
    flame = gzip.decompress((tmp_path / "out" / "flame.speedscope.json.gz").read_bytes())
    graph = gzip.decompress((tmp_path / "out" / "flamegraph.json.gz").read_bytes())
    stored = flame + graph + b"".join(p.read_bytes() for p in (tmp_path / "out").iterdir())
    assert b"train.py(3): step" in flame and b"train.py(3): step" in graph
    assert not any(secret.encode() in stored for secret in SECRETS)


@pytest.mark.parametrize("name", ["clean.json", "clean.json.gz"])
def test_it_writes_a_clean_copy_with_the_same_numbers(
    leaky: Path, tmp_path: Path, name: str
) -> None:
    redact(leaky, tmp_path / name)
    raw = (tmp_path / name).read_bytes()
    text = gzip.decompress(raw) if name.endswith(".gz") else raw
    assert not any(secret.encode() in text for secret in SECRETS)
    assert json.loads(text)["schemaVersion"] == 1
    assert ingest([tmp_path / name], None).operators == ingest([leaky], None).operators


def test_it_keeps_keys_behind_the_events_in_the_clean_copy(tmp_path: Path) -> None:
    made = small().data()
    moved = {"traceEvents": made.pop("traceEvents"), "baseTimeNanoseconds": 7, "username": "carol"}
    (tmp_path / "tail.json").write_text(json.dumps(moved))
    redact(tmp_path / "tail.json", tmp_path / "clean.json")
    cleaned = json.loads((tmp_path / "clean.json").read_text())
    assert cleaned["baseTimeNanoseconds"] == 7
    assert cleaned["username"] == "[redacted]"
    assert len(cleaned["traceEvents"]) == len(small().events)


def test_it_cleans_a_list_without_header(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps(small().events))
    redact(tmp_path / "list.json", tmp_path / "clean.json")
    assert json.loads((tmp_path / "clean.json").read_text()) == small().events


def test_it_redacts_from_the_command_line(leaky: Path, tmp_path: Path) -> None:
    assert main(["analyze", str(leaky), "--redact", str(tmp_path / "c.json")]) == 0
    assert TOKEN not in (tmp_path / "c.json").read_text()


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("/home/carol/x.py(1): f", "~/x.py(1): f"),
        ("C:\\Users\\carol\\x.py", "~\\x.py"),
        ("https://carol:secret@host/x", "https://[redacted]@host/x"),
        ("aten::home_like", "aten::home_like"),
    ],
)
def test_it_cleans_names(text: str, safe: str) -> None:
    assert clean(text) == safe


def test_it_says_nothing_about_a_clean_trace(tmp_path: Path) -> None:
    report = ingest([TraceBuilder(small().events).write(tmp_path / "t.json")], None)
    assert report.quality.warnings == []
