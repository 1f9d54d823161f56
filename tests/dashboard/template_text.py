"""A small template with a hostile title, as a person writes it."""

from __future__ import annotations

HOSTILE = "<img src=x onerror=alert(1)>"
TEXT = f"""\
name = "mine"
version = 1
title = "{HOSTILE}"

[fields]
scenario = "prefill"
prompt_tokens = 8

[axes]
model = ["llama-tiny", "qwen3-moe-tiny"]
batch = [1, 2]
"""
