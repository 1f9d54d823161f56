"""A real repository with a small model in it, and commits whose effect is known.

The model makes its table of waves anew for every token, folding it by the same
operator again and again: that is most of a step, so one fold more in eight is
ten per cent of the whole on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from profiler.types import RunSpec
from tests.workers.repository import Upstream

FACTORY = "model.py:make"
BUILD = "sh build.sh"
OPERATOR = "aten::sin"
MODULE = "waves"
"""What every commit with an effect changes, by the names of a trace."""

SPEC = RunSpec(
    model="example",
    scenario="decode",
    prompt_tokens=8,
    output_tokens=33,
    iterations=60,
    warmup=3,
    threads=1,
)
CULPRIT, UNBUILDABLE_AT, LINE_LENGTH = 10, 6, 16

_MODEL = '''"""A language model whose next token depends on the last one and a table of waves."""

from types import SimpleNamespace

import torch
import transformers
from torch import nn

VOCABULARY, WIDTH, ROWS, FOLDS = 512, 256, 128, {folds}


class Waves(nn.Module):
    """A table of waves, folded over and over."""

    def __init__(self):
        super().__init__()
        spread = torch.linspace(-3.0, 3.0, ROWS * WIDTH)
        self.table = nn.Parameter(spread.reshape(ROWS, WIDTH))

    def forward(self, scale):
        wave = self.table * scale
{before}        for _ in range(FOLDS):
            wave = torch.sin(wave)
        return wave{after}


class Model(nn.Module):
    """Embeds the last token, mixes the waves into it and maps it to the vocabulary."""

    def __init__(self):
        super().__init__()
        self.config = transformers.PreTrainedConfig(vocab_size=VOCABULARY, hidden_size=WIDTH)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.waves = Waves()
        self.mixer = nn.Linear(WIDTH, WIDTH // 4)
        self.head = nn.Linear(WIDTH // 4, VOCABULARY)

    def forward(self, input_ids, cache=None, use_cache=True, logits_to_keep=0):
        seen = 0 if cache is None else cache
{check}        wide = {wide}
        mixed = self.mixer(self.embedding(input_ids[:, -1:]) + wide)
        logits = self.head(mixed.mean(1, keepdim=True))
        return SimpleNamespace(logits=logits, cache=seen + input_ids.shape[1])


def make():
    return Model()
'''
_TWICE = "self.waves(1.0) + self.waves(1.0)"
_ONCE = "2 * self.waves(1.0)"
_HALF = "        wave = wave[: ROWS // 2]\n"
_CRASH = '        if seen > 20:\n            raise RuntimeError("the cache has lost its place")\n'
_BUILDS = "set -e\ntest -f model.py\ndate > built.txt\n"
_BREAKS = "echo 'waves.c:12: error: expected an expression' >&2\nexit 1\n"
Committer = Callable[..., str]


@dataclass(frozen=True, kw_only=True)
class Example:
    """Hashes of the commits; all but `line` differ from `base` in one thing.

    `line` runs from a good commit to a bad one: the one at `CULPRIT` is the
    first slow one, and the one at `UNBUILDABLE_AT` does not build.
    """

    upstream: Upstream
    base: str
    same: str
    slower: str
    faster: str
    unbuildable: str
    crashing: str
    wrong: str
    line: tuple[str, ...]


def make_example(folder: Path) -> Example:
    """Make the repository in a new folder, every commit on `main`."""
    upstream = Upstream.make(folder)

    def commit(subject: str, text: str, build: str = _BUILDS, note: str = "") -> str:
        files = {"model.py": text, "build.sh": build, "NOTES.md": note}
        return upstream.commit(subject, **files)

    plain = model()
    return Example(
        base=commit("a table of waves", plain),
        same=commit("say what the waves are for", plain + "\n# Waves carry the position.\n"),
        slower=commit("fold the waves once more", model(folds=9)),
        faster=commit("make the table once a token", model(wide=_ONCE)),
        unbuildable=commit("waves in C", plain, build=_BREAKS),
        crashing=commit("keep the place in the cache", model(check=_CRASH)),
        wrong=commit("half a table will do", model(before=_HALF, after=".repeat(2, 1)")),
        line=tuple(_line(commit)),
        upstream=upstream,
    )


def model(
    *, folds: int = 8, wide: str = _TWICE, before: str = "", after: str = "", check: str = ""
) -> str:
    """The text of `model.py`."""
    return _MODEL.format(folds=folds, wide=wide, before=before, after=after, check=check)


def _line(commit: Committer) -> Iterator[str]:
    """Commits that only change notes, the culprit among them, and one that does not build."""
    for at in range(LINE_LENGTH):
        folds = 9 if at >= CULPRIT else 8
        subject = "fold once more" if at == CULPRIT else f"note {at}"
        build = _BREAKS if at == UNBUILDABLE_AT else _BUILDS
        yield commit(subject, model(folds=folds), build, f"note {at}\n")
