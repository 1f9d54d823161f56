"""The request for an A/A control: one small workload, launched several times."""

from __future__ import annotations

from django import forms

from dashboard.forms.runs import NONCE, new_nonce, same, whole_number
from dashboard.services.noise import LAUNCHES
from profiler import spec as specs
from profiler.catalog import BUILTIN
from profiler.errors import SpecError
from profiler.types import SCENARIOS, RunSpec


class NoiseForm(forms.Form):
    """What to launch, and how often."""

    model = forms.ChoiceField(
        choices=[(entry.name, entry.title) for entry in BUILTIN.values()],
        error_messages={"invalid_choice": "No model of that name; choose one of the list."},
    )
    scenario = forms.ChoiceField(choices=same(SCENARIOS), initial="decode")
    batch = whole_number("batch", 1, "Batch")
    prompt_tokens = whole_number("prompt_tokens", 64, "Prompt tokens")
    output_tokens = whole_number("output_tokens", 16, "Output tokens")
    iterations = whole_number("iterations", 10, "Timed iterations")
    launches = forms.IntegerField(
        initial=12,
        min_value=LAUNCHES[0],
        max_value=LAUNCHES[1],
        step_size=2,
        help_text=f"an even number, {LAUNCHES[0]} to {LAUNCHES[1]}; from 12 the floor is firm",
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value", "step_size"),
            f"Enter an even number from {LAUNCHES[0]} to {LAUNCHES[1]}.",
        ),
    )
    nonce = forms.RegexField(NONCE, initial=new_nonce, widget=forms.HiddenInput)

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                specs.check_model(specs.check(self.spec("cpu")))
            except SpecError as error:
                self.add_error(None, error.line().removeprefix("spec."))
        return cleaned

    def spec(self, device: str) -> RunSpec:
        """The workload of every launch; nothing is recorded, as only times count."""
        data = self.cleaned_data
        return RunSpec(
            model=data["model"],
            scenario=data["scenario"],
            batch=data["batch"],
            prompt_tokens=data["prompt_tokens"],
            output_tokens=data["output_tokens"],
            iterations=data["iterations"],
            device=device,
            profiled_steps=0,
        )
