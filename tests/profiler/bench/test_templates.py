from __future__ import annotations

import subprocess
import sys

import pytest

from profiler.bench.templates import SHIPPED, Template, expand, parse, shuffled, size
from profiler.catalog import BUILTIN
from profiler.errors import SpecError
from profiler.types import SCENARIOS

SMALL = b"""
name = "small"
version = 2
title = "Small"
[fields]
model = "llama-tiny"
[axes]
scenario = ["prefill", "decode"]
batch = [1, 2, 4]
"""


def test_it_ships_templates_whose_every_run_can_work() -> None:
    assert set(SHIPPED) == {"quick", "day0", "nightly"}
    for template in SHIPPED.values():
        assert len(expand(template)) == size(template)


def test_it_looks_at_every_architecture_quickly() -> None:
    runs = {(spec.model, spec.scenario) for spec in expand(SHIPPED["quick"])}
    small = [name for name in BUILTIN if name.endswith("-small")]
    assert runs == {(model, scenario) for model in small for scenario in SCENARIOS}


def test_it_combines_axes_in_order() -> None:
    runs = [(spec.scenario, spec.batch) for spec in expand(parse(SMALL))]
    assert runs[:4] == [("prefill", 1), ("prefill", 2), ("prefill", 4), ("decode", 1)]
    assert len(runs) == 6


def test_it_reads_json_as_well() -> None:
    fields = b'{"model": "llama-tiny", "scenario": "prefill"}'
    raw = b'{"name": "j", "version": 1, "title": "J", "fields": ' + fields + b"}"
    assert len(expand(parse(raw, kind="json"))) == 1


def test_it_shuffles_by_seed_and_loses_none() -> None:
    runs = expand(SHIPPED["quick"])
    assert shuffled(runs, 1) == shuffled(runs, 1) != shuffled(runs, 2)
    assert sorted(map(repr, shuffled(runs, 1))) == sorted(map(repr, runs))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((b"batch", b"bach"), "has no field bach"),
        ((b'model = "llama-tiny"', b'model = "llama-tiny"\nbatch = 1'), "gives batch twice"),
        ((b"[1, 2, 4]", b"[]"), "expands to 0 runs"),
        ((b"[1, 2, 4]", b"[0]"), r"spec\.batch is 0"),
        ((b"[1, 2, 4]", b'["a"]'), "batch"),
        ((b"llama-tiny", b"nobody"), "'nobody' is unknown"),
        ((b"title", b"tiitle"), "cannot be read"),
        ((b"[axes]", b"[axes"), "cannot be read"),
    ],
)
def test_it_names_what_is_wrong_with_a_template(change: tuple[bytes, bytes], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse(SMALL.replace(*change))


def test_it_bounds_the_number_of_runs() -> None:
    wide = Template(
        name="wide", version=1, title="", axes={"seed": list(range(201))}, fields={"model": "x"}
    )
    with pytest.raises(SpecError, match="expands to 201 runs"):
        expand(wide)


def test_it_loads_no_torch() -> None:
    code = "import sys, profiler.bench.templates; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
