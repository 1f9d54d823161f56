"""What a run was asked for beside its metrics, on its page."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from dashboard.models import RunState
from tests.factories import make_document, make_result, make_run

EXTRAS: dict[str, dict[str, object]] = {
    "extrapolation": {
        "layers": 4,
        "shallower": 2,
        "full_layers": 32,
        "kinds": {"full_attention": 4},
        "metrics": [
            {
                "name": "ttft",
                "unit": "ns",
                "value": 8e6,
                "low": 7e6,
                "high": 9e6,
                "per_layer": 2e5,
            }
        ],
        "refused": {"decode_rate": "rates do not add up"},
        "assumption": "each layer takes as long",
    },
    "graphs": {
        "mode": "default",
        "graphs": 2,
        "breaks": [{"reason": "<b>item</b>", "where": "model.py:7", "count": 3}],
        "recompilations": [],
        "fused_kernels": None,
        "compile_ns": 2_000_000_000,
        "fell_back": "no compiler",
    },
    "routing": {
        "mode": "skewed",
        "tokens_per_expert": {"layers.0": [5, 0, 3]},
        "hit_share": 0.5,
        "max_over_mean": 1.9,
    },
    "micro": {
        "rows": [
            {
                "name": "aten::index",
                "shapes": "[[2, 3]]",
                "dtypes": "[]",
                "calls": 2,
                "self_ns": 4000,
                "reason": "its indices are not recorded",
            }
        ],
        "flush_bytes": 67_108_864,
        "method": "median of single calls",
    },
}


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("extrapolation", "measured at 4 of 32 layers and at 2; nothing here was measured"),
        ("extrapolation", "about 8.00 ms"),
        ("extrapolation", "decode_rate not extrapolated: rates do not add up."),
        ("graphs", "2 graphs, 1 place where a graph broke, 0 recompilations"),
        ("graphs", "fused kernels not counted by this back-end, 2.00 s of compiling"),
        ("graphs", "&lt;b&gt;item&lt;/b&gt;"),
        ("routing", "50.0 % of the experts got a token"),
        ("micro", "not measured: its indices are not recorded"),
    ],
)
def test_it_shows_what_was_asked_for_beside_the_metrics(
    viewer_client: Client, part: str, sentence: str
) -> None:
    run = make_run(RunState.SUCCEEDED)
    make_result(run, document=make_document(run) | {part: EXTRAS[part]})
    page = viewer_client.get(f"/runs/{run.pk}/").content.decode()
    assert sentence in " ".join(page.split())


def test_it_leaves_out_what_was_not_asked_for(viewer_client: Client) -> None:
    run = make_run(RunState.SUCCEEDED)
    make_result(run)
    page = viewer_client.get(f"/runs/{run.pk}/").content.decode()
    found = re.findall("full-depth|graph-capture|routing-title|operators-alone", page)
    assert found == []
