"""One model over several ranks for inference, by transformers' own plans.

`tensor` splits the matrices of every layer: each rank keeps its slice of the
weights and of the key-value cache where the plan splits attention. `pipeline`
gives each rank a run of whole layers; a batch passes through them in turn, and
the last rank's logits go to every rank. What that takes is loaded where a model is split: it is a
fifth of what loading torch takes, and most runs have one rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import torch
import transformers

from profiler.bench.configs import Plan
from profiler.bench.devices import Device
from profiler.errors import SpecError
from profiler.spec import SPLIT
from profiler.types import RunSpec

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from transformers.distributed.configuration_utils import DistributedConfig
    from transformers.distributed.utils import TransformersDeviceMesh

DENSE_AXES = ("pp", "dp_replicate", "fsdp", "tp")
EXPERT_AXES = ("pp", "dp_replicate", "efsdp", "ep")
"""The axes of transformers' two views of the same ranks."""


class Planned(Protocol):
    """The part of a transformers model that says how it may be split."""

    tp_plan: dict[str, str]
    pp_plan: dict[str, object]
    base_model: torch.nn.Module

    def maybe_distribute_model(
        self, model: torch.nn.Module, config: DistributedConfig, meshes: TransformersDeviceMesh
    ) -> Planned: ...

    def tie_weights(self) -> None: ...


def is_split(spec: RunSpec) -> bool:
    """Whether each rank of `spec` holds a part of one model and all read the same prompts."""
    return spec.parallel in SPLIT


def check_parallel(plan: Plan, spec: RunSpec) -> None:
    """Raise `SpecError` when the model cannot be split as `spec` asks; builds no weights."""
    if not is_split(spec):
        return
    with torch.random.fork_rng(devices=[]):
        skeleton = plan.skeleton()
    if not isinstance(skeleton, transformers.PreTrainedModel):
        raise SpecError(
            f"spec.parallel is {spec.parallel!r}", f"{plan.name} is no transformers model"
        )
    model = cast(Planned, skeleton)
    if spec.parallel == "tensor":
        _check_tensor(plan, spec, model)
    else:
        _check_pipeline(plan, spec, model)


def distribute(model: torch.nn.Module, spec: RunSpec, device: Device) -> torch.nn.Module:
    """This rank's part of `model` (whole, on any device) on `device`; every rank calls it."""
    if not is_split(spec):
        return model
    from transformers.distributed.configuration_utils import DistributedConfig
    from transformers.distributed.utils import TransformersDeviceMesh

    tensor = spec.ranks if spec.parallel == "tensor" else 1
    pipeline = spec.ranks // tensor
    meshes = TransformersDeviceMesh(
        _mesh(device, (pipeline, 1, 1, tensor), DENSE_AXES),
        _mesh(device, (pipeline, 1, tensor, 1), EXPERT_AXES),
    )
    config = DistributedConfig(tp_size=tensor, pp_size=pipeline)
    if tensor > 1:
        _untie(model)
    part = cast(Planned, model).maybe_distribute_model(model, config, meshes)
    if tensor > 1:
        part.tie_weights()
    return cast(torch.nn.Module, part).to(device.torch)


def cache_parts(plan: Plan, model: torch.nn.Module, spec: RunSpec) -> int:
    """Over how many ranks the key-value cache is spread: 1 where each holds the whole."""
    heads = getattr(plan.config.get_text_config(), "num_key_value_heads", None)
    if spec.parallel != "tensor" or heads is None:
        return 1
    from transformers.distributed.tensor_parallel import get_kv_heads_per_rank

    share = get_kv_heads_per_rank(cast(Planned, model).tp_plan, heads, spec.ranks)
    return spec.ranks if share != heads else 1


def _check_tensor(plan: Plan, spec: RunSpec, model: Planned) -> None:
    if not model.tp_plan:
        raise SpecError("spec.parallel is 'tensor'", f"{plan.name} has no tensor-parallel plan")
    text = plan.config.get_text_config()
    heads_of = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    for rule, style in model.tp_plan.items():
        field = heads_of.get(rule.rsplit(".", 1)[-1])
        if field is None or style != "colwise":
            continue
        heads = getattr(text, field, None) or text.num_attention_heads
        if heads % spec.ranks:
            raise SpecError(
                f"spec.ranks is {spec.ranks}",
                f"{plan.name} has {field} {heads}, which {spec.ranks} ranks cannot share evenly",
            )


def _check_pipeline(plan: Plan, spec: RunSpec, model: Planned) -> None:
    layers = getattr(model.base_model, "layers", None)
    if not model.pp_plan or not isinstance(layers, torch.nn.ModuleList):
        raise SpecError("spec.parallel is 'pipeline'", f"{plan.name} has no pipeline plan")
    if len(layers) < spec.ranks:
        raise SpecError(
            f"spec.ranks is {spec.ranks}", f"{plan.name} has {len(layers)} layers to hand out"
        )


def _mesh(device: Device, shape: tuple[int, ...], axes: tuple[str, ...]) -> DeviceMesh:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(device.kind, shape, mesh_dim_names=axes)


def _untie(model: torch.nn.Module) -> None:
    """Give tied weights a name of their own: the plan splits each parameter by its name."""
    for name in getattr(model, "all_tied_weights_keys", {}):
        owner, _, last = name.rpartition(".")
        module = model.get_submodule(owner)
        setattr(module, last, torch.nn.Parameter(getattr(module, last).detach()))
