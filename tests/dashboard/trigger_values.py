"""What a person types into the form of a new run."""

from __future__ import annotations

from dashboard.forms.runs import new_nonce

Values = dict[str, object]


def values(**changes: object) -> Values:
    plain: Values = {
        "model": "llama-tiny",
        "scenarios": ["prefill", "decode"],
        "platform": "cpu",
        "dtype": "float32",
        "batch": 2,
        "prompt_tokens": 16,
        "output_tokens": 4,
        "iterations": 2,
        "warmup": 1,
        "profiled_steps": 1,
        "nonce": new_nonce(),
    }
    return plain | changes
