"""From a model cut to few layers to its full depth: a line through two measured depths.

    full = t(k) + (L - k) * (t(k) - t(j)) / (k - j)

with the cut k, a shallower cut j and the full depth L. The layers between the
two cuts stand for the missing ones, so they must be of the same kinds in the
same proportions; where no shallower cut gives that, no figure is given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from profiler.bench.configs import Plan, plan_model
from profiler.errors import SpecError
from profiler.types import Extrapolated, Extrapolation, Metric, RunSpec

METRICS = ("ttft", "tpot", "step_time", "forward_time", "backward_time", "optimizer_time")
"""Times that grow with depth. Rates are their reciprocals and follow from them."""

FEWEST_SAMPLES = 3
ERRORS = 2.0
"""Standard errors by which a slope must exceed nothing, and by which low and high move it."""

MEDIAN_ERROR = 1.2533 / 1.349
"""Standard error of a median is this times IQR / sqrt(n): normal samples, IQR 1.349 sigma."""


def layer_kinds(plan: Plan) -> tuple[str, ...]:
    """What kind each layer of the whole model is, in order; empty when its layers are not found.

    Layers are of one kind when the configuration gives them the same type
    and they consist of the same modules with parameters of the same shapes.
    """
    layers = _layers(plan)
    types: Sequence[str] = getattr(plan.config.get_text_config(), "layer_types", None) or ()
    labels: dict[tuple[str, tuple[tuple[str, str, str], ...]], str] = {}
    kinds = []
    for at, layer in enumerate(layers):
        title = types[at] if at < len(types) else type(layer).__name__
        anatomy = _anatomy(layer)
        if any("experts" in path for path, _, _ in anatomy):
            title += " with experts"
        if (title, anatomy) not in labels:
            same = sum(1 for known, _ in labels if known == title)
            labels[title, anatomy] = f"{title} ({same + 1})" if same else title
        kinds.append(labels[title, anatomy])
    return tuple(kinds)


def shallower(spec: RunSpec, kinds: Sequence[str]) -> int:
    """The depth to measure beside `spec.layers`; `SpecError` when there is none, with the reason.

    The nearest to half of the cut whose added layers stand for the missing
    ones: to within one layer of each kind.
    """
    cut = spec.layers or 0
    if cut < 2:
        raise SpecError("one layer gives no slope", "cut to two layers or more")
    if not kinds:
        raise SpecError("the layers of this model were not recognised")
    for depth in sorted(range(1, cut), key=lambda depth: (abs(depth - cut // 2), depth)):
        if _stands_for(kinds[depth:cut], kinds[cut:]) and _can_cut(spec, depth):
            return depth
    held, missing = Counter(kinds[:cut]), Counter(kinds[cut:])
    raise SpecError(
        f"the cut holds {_counted(held)}, missing are {_counted(missing)}: no shallower cut adds "
        "these kinds in the same proportions",
        "cut to a multiple of the pattern, at least two of them",
    )


def extrapolate(
    deep: Mapping[str, Metric], flat: Mapping[str, Metric], *, depths: tuple[int, int, int]
) -> tuple[tuple[Extrapolated, ...], dict[str, str]]:
    """Full-depth figures of every time that both measurements have, and reasons for the others.

    `depths` are (shallower, cut, full); `deep` holds the metrics of the cut by
    name, `flat` those of the shallower one.
    """
    found, refused = [], {}
    for name in METRICS:
        if name not in deep or name not in flat:
            continue
        figure = _line(deep[name], flat[name], depths)
        if isinstance(figure, str):
            refused[name] = figure
        else:
            found.append(figure)
    return tuple(found), refused


def described(
    spec: RunSpec, kinds: Sequence[str], depth: int, measured: Sequence[Mapping[str, Metric]]
) -> Extrapolation:
    """The extrapolation of a run of `spec` from `measured`: (at the cut, at `depth`)."""
    cut = spec.layers or 0
    deep, flat = measured
    metrics, refused = extrapolate(deep, flat, depths=(depth, cut, len(kinds)))
    added, missing = Counter(kinds[depth:cut]), Counter(kinds[cut:])
    return Extrapolation(
        layers=cut,
        shallower=depth,
        full_layers=len(kinds),
        kinds=dict(Counter(kinds[:cut])),
        metrics=metrics,
        refused=refused,
        assumption=f"each of the {len(kinds) - cut} missing layers ({_counted(missing)}) takes as "
        f"long as layers {depth + 1} to {cut} took on average ({_counted(added)}); embedding, head "
        "and sampling are paid once; memory suffices and caches behave as at the cut; both depths "
        "were measured one after the other",
    )


def not_by_ranks(spec: RunSpec, full: int | None) -> Extrapolation | None:
    """The record of a cut run by several ranks, which do not start again at another depth."""
    if spec.ranks == 1 or spec.layers is None or full is None or spec.layers >= full:
        return None
    reason = "several ranks measured it: a second depth is measured on one rank only"
    return not_extrapolated(spec, (), full, reason)


def not_extrapolated(spec: RunSpec, kinds: Sequence[str], full: int, reason: str) -> Extrapolation:
    """A record that says why a cut run of a model of `full` layers has no full-depth figures."""
    cut = spec.layers or 0
    return Extrapolation(
        layers=cut,
        shallower=None,
        full_layers=full,
        kinds=dict(Counter(kinds[:cut])),
        metrics=(),
        refused={"*": reason},
        assumption="",
    )


def _line(deep: Metric, flat: Metric, depths: tuple[int, int, int]) -> Extrapolated | str:
    """The figure at full depth, or why there is none."""
    low, cut, full = depths
    if min(deep.n, flat.n) < FEWEST_SAMPLES or deep.iqr is None or flat.iqr is None:
        return f"fewer than {FEWEST_SAMPLES} samples tell no noise"
    slope = (deep.value - flat.value) / (cut - low)
    errors = [MEDIAN_ERROR * (m.iqr or 0.0) / math.sqrt(m.n) for m in (deep, flat)]
    error = math.hypot(*errors) / (cut - low)
    if slope <= ERRORS * error:
        return f"{cut} layers did not take longer than {low} beyond noise"
    value, margin = deep.value + (full - cut) * slope, (full - cut) * ERRORS * error
    return Extrapolated(
        name=deep.name,
        unit=deep.unit,
        value=value,
        low=value - margin,
        high=value + margin,
        per_layer=slope,
    )


def _stands_for(added: Sequence[str], missing: Sequence[str]) -> bool:
    """Whether `added`, repeated to the length of `missing`, is within one layer of each kind."""
    have, want = Counter(added), Counter(missing)
    times = len(missing) / len(added)
    return all(abs(have[kind] * times - want[kind]) < 1 for kind in have.keys() | want.keys())


def _can_cut(spec: RunSpec, depth: int) -> bool:
    try:
        plan_model(replace(spec, layers=depth))
    except SpecError:
        return False
    return True


def _layers(plan: Plan) -> list[torch.nn.Module]:
    """The layers of the text model: the heaviest of the lists that are as long as it is deep."""
    with torch.random.fork_rng(devices=[]):
        skeleton = plan.skeleton()
    lists = [
        module
        for module in skeleton.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == plan.layers
    ]
    heaviest = max(lists, key=lambda found: sum(p.numel() for p in found.parameters()), default=())
    return list(heaviest)


def _anatomy(layer: torch.nn.Module) -> tuple[tuple[str, str, str], ...]:
    """Path, class and own parameter shapes of every module in `layer`."""
    return tuple(
        (
            path,
            type(module).__name__,
            str([tuple(p.shape) for p in module.parameters(recurse=False)]),
        )
        for path, module in layer.named_modules()
    )


def _counted(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
