"""The metric definitions: name, unit, direction and meaning, stored once."""

from __future__ import annotations

from profiler.types import Definition


def _table(*rows: Definition) -> dict[str, Definition]:
    return {row.name: row for row in rows}


METRICS: dict[str, Definition] = _table(
    Definition(
        name="ttft",
        title="Time to first token",
        unit="ns",
        direction="lower",
        meaning="From the request entering the engine loop until the first sampled token is on "
        "the host, device synchronised, no network.",
    ),
    Definition(
        name="prefill_rate",
        title="Prefill rate",
        unit="tok/s",
        direction="higher",
        meaning="Prompt tokens computed divided by the synchronised prefill time (median).",
    ),
    Definition(
        name="tpot",
        title="Time per output token",
        unit="ns",
        direction="lower",
        meaning="(last token - first token) / (tokens - 1) of one generation; undefined for "
        "fewer than two tokens.",
    ),
    Definition(
        name="itl",
        title="Inter-token latency",
        unit="ns",
        direction="lower",
        meaning="Gap between two consecutive tokens of one sequence; never spans two generations.",
    ),
    Definition(
        name="decode_rate",
        title="Decode rate",
        unit="tok/s",
        direction="higher",
        meaning="Tokens emitted in decode steps of all sequences divided by decode time; the "
        "first token belongs to prefill and is excluded.",
    ),
    Definition(
        name="decode_rate_user",
        title="Decode rate per user",
        unit="tok/s",
        direction="higher",
        meaning="1 / TPOT: what one of the batched sequences sees.",
    ),
    Definition(
        name="step_time",
        title="Training step time",
        unit="ns",
        direction="lower",
        meaning="From the start of the forward pass to the end of the optimiser step, device "
        "synchronised.",
    ),
    Definition(
        name="forward_time",
        title="Forward time",
        unit="ns",
        direction="lower",
        meaning="Forward part of a training step, synchronised at its end.",
    ),
    Definition(
        name="backward_time",
        title="Backward time",
        unit="ns",
        direction="lower",
        meaning="Backward part of a training step, synchronised at its end.",
    ),
    Definition(
        name="optimizer_time",
        title="Optimiser time",
        unit="ns",
        direction="lower",
        meaning="Optimiser part of a training step, synchronised at its end.",
    ),
    Definition(
        name="communication_time",
        title="Communication time",
        unit="ns",
        direction="lower",
        meaning="Time of a profiled step (training step, prefill or decode step) during which a "
        "collective of the rank was running, waiting for other ranks included; of the rank with "
        "most. From the profiled pass, so a share of its step and no speed of its own.",
    ),
    Definition(
        name="exposed_communication_time",
        title="Exposed communication time",
        unit="ns",
        direction="lower",
        meaning="The part of the communication time during which the rank computed nothing; of "
        "the rank with most, from the profiled pass.",
    ),
    Definition(
        name="training_rate",
        title="Training rate",
        unit="tok/s",
        direction="higher",
        meaning="Tokens per step divided by the median step time; tokens/s x step time is exactly "
        "the tokens of a step.",
    ),
    Definition(
        name="sample_rate",
        title="Samples per second",
        unit="samples/s",
        direction="higher",
        meaning="Sequences per step divided by the median step time.",
    ),
    Definition(
        name="flop_rate",
        title="Model FLOP rate",
        unit="FLOP/s",
        direction="higher",
        meaning="Model FLOPs of the unit divided by its median time: two per weight and token in "
        "matrix products, causal attention counted as half of the square, recomputation not "
        "counted; training counts three times the forward pass. Several ranks count together.",
    ),
    Definition(
        name="mfu",
        title="Model FLOPs utilisation",
        unit="ratio",
        direction="higher",
        meaning="Model FLOP rate divided by the peak of all ranks' devices for the data type.",
    ),
    Definition(
        name="read_rate",
        title="Decode read rate",
        unit="B/s",
        direction="higher",
        meaning="Bytes a decode step must read (weights, of routed experts the distinct ones "
        "expected, and the key-value cache at mid-generation) divided by the mean step time.",
    ),
    Definition(
        name="mbu",
        title="Memory bandwidth utilisation",
        unit="ratio",
        direction="higher",
        meaning="Decode read rate divided by the peak memory bandwidth of all ranks' devices.",
    ),
    Definition(
        name="peak_memory",
        title="Peak memory",
        unit="bytes",
        direction="lower",
        meaning="Highest memory in use during the memory pass: the device allocator's where the "
        "device has one, else the resident set of the process (method says which).",
    ),
    Definition(
        name="peak_memory_reserved",
        title="Peak memory reserved",
        unit="bytes",
        direction="lower",
        meaning="Highest memory the device's allocator held during the memory pass, used or not.",
    ),
    Definition(
        name="device_memory_used",
        title="Device memory used",
        unit="bytes",
        direction="lower",
        meaning="Memory in use on the device after the memory pass as its driver counts it, other "
        "processes included.",
    ),
    Definition(
        name="first_call",
        title="First call",
        unit="ns",
        direction="lower",
        meaning="The very first execution of the scenario's unit, with everything it compiles, "
        "tunes or allocates once.",
    ),
    Definition(
        name="build_time",
        title="Model construction",
        unit="ns",
        direction="lower",
        meaning="Building the model from its configuration with seeded weights on the device; of "
        "a checkpoint the empty model alone.",
    ),
    Definition(
        name="load_time",
        title="Weight loading",
        unit="ns",
        direction="lower",
        meaning="Streaming the weights of a checkpoint into a fresh model on the device, once, "
        "with its files in the page cache as found.",
    ),
    Definition(
        name="load_rate",
        title="Weight loading rate",
        unit="B/s",
        direction="higher",
        meaning="Bytes of the checkpoint's weights divided by their load time.",
    ),
)

HEADLINE: dict[str, str] = {"prefill": "ttft", "decode": "tpot", "training": "step_time"}
"""The one metric that stands for a scenario in lists."""
