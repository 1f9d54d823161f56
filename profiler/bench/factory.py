"""A model that a repository's own code makes: `path/file.py:function` under the current folder.

This runs that code, which is what a run of a commit is for; the worker decides
in which sandbox. The function takes no argument and returns a module whose
forward call follows transformers' causal language models, with a `config`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch

from profiler.errors import SpecError


def call_factory(reference: str) -> torch.nn.Module:
    """The module that the function named by `reference` returns; `SpecError` when it cannot."""
    file, _, name = reference.partition(":")
    path = Path.cwd() / file
    if not path.resolve().is_relative_to(Path.cwd().resolve()) or not path.is_file():
        raise SpecError(f"spec.factory {reference!r}: {file} is no file of this folder", "")
    spec = importlib.util.spec_from_file_location(f"daybreak_factory_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SpecError(f"spec.factory {reference!r}: {file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise SpecError(f"spec.factory {reference!r}: {file} has no function {name}")
    model = function()
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise SpecError(
            f"spec.factory {reference!r} returned {type(model).__name__}",
            "return a torch module with a transformers configuration as .config",
        )
    return model
