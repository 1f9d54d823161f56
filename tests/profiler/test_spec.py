from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler import spec as specs
from profiler.catalog import BUILTIN
from profiler.errors import SpecError
from profiler.types import DTYPES, SCENARIOS, RunSpec

SMALL = RunSpec(model="llama-tiny", scenario="decode", prompt_tokens=8, output_tokens=4)


def raw(**fields: object) -> bytes:
    return json.dumps({"model": "llama-tiny", "scenario": "prefill"} | fields).encode()


@given(
    st.builds(
        RunSpec,
        model=st.sampled_from(sorted(BUILTIN)),
        scenario=st.sampled_from(SCENARIOS),
        batch=st.integers(1, 64),
        prompt_tokens=st.integers(1, 512),
        output_tokens=st.integers(2, 512),
        dtype=st.sampled_from(DTYPES),
        seed=st.integers(0, 100),
        threads=st.none() | st.integers(1, 8),
    )
)
def test_it_reads_back_what_it_writes(spec: RunSpec) -> None:
    again = specs.parse(specs.canonical(spec))
    assert again == spec
    assert specs.spec_hash(again) == specs.spec_hash(spec)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"scenario": "sleeping"}, r"scenario: .*'sleeping'.*prefill\|decode\|training"),
        ({"dtype": "int4"}, r"dtype: .*'int4'.*float32\|bfloat16\|float16"),
        ({"batch": "8"}, "batch: Expected `int`, got `str`"),
        ({"batch": 0}, r"spec\.batch is 0. allowed: 1 to 4096"),
        ({"batch": 1.5}, "batch"),
        ({"output_tokens": 1}, r"spec\.output_tokens is 1. allowed: 2 to"),
        ({"threads": 0}, r"spec\.threads is 0"),
        ({"prompt_tokens": 10**9}, r"spec\.prompt_tokens"),
        ({"modell": "x"}, "unknown field modell"),
        ({"schema": 9}, r"spec\.schema is 9"),
        ({"device": "cpu; rm"}, "no device"),
        ({"model": "../../etc/passwd"}, "no model name"),
        ({"batch": 4096, "prompt_tokens": 8192}, "33,554,432 tokens"),
        ({"recompute": "some"}, r"recompute: .*'some'.*none\|full"),
        ({"recompute": "full"}, r"spec\.recompute is 'full'. it applies to training only"),
        ({"offload": "cpu", "device": "cuda"}, r"spec\.offload is 'cpu'. it applies to training"),
        (
            {"offload": "optimizer", "scenario": "training"},
            "the CPU has no memory of its own to relieve",
        ),
        (
            {"offload": "cpu", "scenario": "training", "device": "cuda"},
            "cpu works with parallel fsdp, optimizer without it",
        ),
        (
            {
                "offload": "optimizer",
                "scenario": "training",
                "device": "cuda",
                "ranks": 2,
                "parallel": "fsdp",
            },
            "cpu works with parallel fsdp, optimizer without it",
        ),
        ({"sampling": "multinomial"}, r"spec\.sampling is 'multinomial'. it applies to decode"),
        (
            {"scenario": "decode", "top_p": 0.9},
            r"spec\.top_p is 0.9. it needs sampling multinomial",
        ),
        ({"temperature": 0}, r"spec\.temperature is 0.0. allowed: above 0, up to 100"),
        ({"top_p": 1.5}, r"spec\.top_p is 1.5. allowed: above 0, up to 1"),
    ],
)
def test_it_names_field_value_and_what_is_allowed(fields: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        specs.parse(raw(**fields))
    assert pytest.RaisesExc(SpecError, match=said).matches(SpecError(caught.value.line()))


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff\xfe", b"null", b'{"model": NaN}'])
def test_it_refuses_what_is_no_json_object(text: bytes) -> None:
    with pytest.raises(SpecError):
        specs.parse(text)


@given(st.binary(max_size=200))
def test_it_fails_on_no_bytes_but_by_a_spec_error(text: bytes) -> None:
    try:
        specs.parse(text)
    except SpecError as error:
        assert "\n" not in error.line()


def test_it_reads_a_file_and_names_one_it_cannot(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_bytes(raw())
    assert specs.load(path).scenario == "prefill"
    with pytest.raises(SpecError, match="cannot be read"):
        specs.load(tmp_path)
    path.write_bytes(b" " * (2 << 20))
    with pytest.raises(SpecError, match="larger than 1 MiB"):
        specs.load(path)


def test_it_knows_models_and_how_long_their_sequences_may_be() -> None:
    assert specs.check_model(SMALL) is SMALL
    with pytest.raises(SpecError, match="'nobody' is unknown"):
        specs.check_model(dataclasses.replace(SMALL, model="nobody"))
    with pytest.raises(SpecError, match=r"prompt_tokens \+ output_tokens is 513"):
        specs.check_model(dataclasses.replace(SMALL, prompt_tokens=509))
    specs.check_model(dataclasses.replace(SMALL, prompt_tokens=512, scenario="prefill"))


def test_it_bounds_the_samples_a_run_keeps() -> None:
    with pytest.raises(SpecError, match="1,010,000 samples"):
        specs.check(dataclasses.replace(SMALL, iterations=10_000, output_tokens=101))


@pytest.mark.parametrize("field", ["iterations", "warmup", "profiled_steps", "seed"])
def test_it_keeps_the_workload_however_it_is_measured(field: str) -> None:
    changed: Any = {field: 2}
    other = dataclasses.replace(SMALL, **changed)
    assert specs.workload_hash(other) == specs.workload_hash(SMALL)
    assert specs.spec_hash(other) != specs.spec_hash(SMALL)


def test_it_ignores_output_tokens_where_none_are_generated() -> None:
    prefill = dataclasses.replace(SMALL, scenario="prefill")
    longer = dataclasses.replace(prefill, output_tokens=99)
    assert specs.workload_hash(longer) == specs.workload_hash(prefill)
    assert specs.workload_hash(SMALL) != specs.workload_hash(prefill)


@pytest.mark.parametrize(
    "fields",
    [
        {"scenario": "training", "recompute": "full"},
        {"scenario": "training", "offload": "optimizer", "device": "cuda"},
        {
            "scenario": "training",
            "offload": "cpu",
            "device": "npu",
            "ranks": 2,
            "parallel": "fsdp",
        },
        {"scenario": "decode", "sampling": "multinomial", "temperature": 0.7, "top_p": 0.9},
    ],
)
def test_it_takes_recomputation_offload_and_sampling_as_workloads(fields: dict[str, Any]) -> None:
    spec = specs.parse(raw(**fields))
    plain = dataclasses.replace(SMALL, scenario=spec.scenario)
    assert specs.workload_hash(spec) != specs.workload_hash(plain)


def test_it_hashes_only_what_differs_from_the_defaults() -> None:
    explicit = dataclasses.replace(SMALL, batch=1, dtype="float32", threads=None)
    assert specs.spec_hash(explicit) == specs.spec_hash(SMALL)
    # This value is what stored runs carry: it changes only with a note in the change log.
    assert specs.workload_hash(SMALL)[:12] == "b3d9f6fdc535"
