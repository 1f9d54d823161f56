from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from profiler.bench import harness
from profiler.bench.graphs import compile_errors, compiler
from profiler.bench.output import Reporter
from profiler.errors import CompileError, SpecError
from profiler.spec import check
from profiler.types import GraphReport, Result
from tests.profiler.bench.scene import small_spec

AOT = "backend:aot_eager"


class Doubling(torch.nn.Module):
    """One graph."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values * 2


class Breaking(torch.nn.Module):
    """Leaves the graph once in each call."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        doubled = values * 2
        torch._dynamo.graph_break()
        return doubled + 1


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    yield
    torch._dynamo.reset()


@pytest.fixture
def failing_backend() -> Iterator[str]:
    """A back-end that compiles nothing."""

    @torch._dynamo.register_backend(name="failing")
    def failing(graph: object, inputs: object) -> None:
        raise ValueError("no kernel for this")

    yield "backend:failing"
    del torch._dynamo.backends.registry._COMPILER_FNS["failing"]


def run(out: Path, **fields: object) -> Result:
    spec = small_spec("prefill", **({"iterations": 2, "profiled_steps": 1} | fields))
    return harness.run(spec, out, reporter=Reporter(None))


def report_of(model: torch.nn.Module, *inputs: torch.Tensor) -> GraphReport:
    with compiler(AOT) as compiling:
        compiling.apply(model)
        for values in inputs:
            model(values)
        report = compiling.report()
    assert report is not None
    return report


def test_it_counts_breaks_with_reason_and_line() -> None:
    report = report_of(Breaking(), torch.ones(2))
    assert report.graphs == 2
    assert len(report.breaks) == 1
    assert "graph_break()" in report.breaks[0].reason
    assert "test_graphs.py:" in report.breaks[0].where
    assert report.compile_ns > 0


def test_it_names_the_guard_behind_a_recompilation() -> None:
    report = report_of(Doubling(), torch.ones(2), torch.ones(2).double())
    assert len(report.recompilations) == 1
    assert "dtype mismatch. expected Float, actual Double" in report.recompilations[0]


def test_it_stores_the_report_with_a_compiled_run(tmp_path: Path) -> None:
    result = run(tmp_path, compile=AOT)
    assert result.graphs is not None
    assert result.graphs.graphs >= 1
    assert result.graphs.fused_kernels is None
    assert result.graphs.fell_back == ""


def test_it_reports_nothing_for_an_eager_run(tmp_path: Path) -> None:
    assert run(tmp_path).graphs is None


def test_it_ends_with_the_compilers_own_words(tmp_path: Path, failing_backend: str) -> None:
    with pytest.raises(CompileError, match="no kernel for this"):
        run(tmp_path, compile=failing_backend)
    assert list(tmp_path.iterdir()) == []


def test_it_falls_back_only_when_asked_and_says_so(tmp_path: Path, failing_backend: str) -> None:
    result = run(tmp_path, compile=failing_backend, compile_fallback=True)
    assert result.graphs is not None
    assert "no kernel for this" in result.graphs.fell_back
    assert any(warning.startswith("ran eager after all") for warning in result.warnings)


def test_it_lists_the_backends_it_knows(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nosuch") as caught:
        run(tmp_path, compile="backend:nosuch")
    assert "inductor" in caught.value.hint


def test_it_lets_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), compile_errors("default"):
        raise ZeroDivisionError


@pytest.mark.parametrize("mode", ["fast", "backend:", "backend:a b", ""])
def test_it_refuses_an_unknown_mode(mode: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.compile"):
        check(small_spec("prefill", compile=mode))


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_it_counts_the_kernels_of_inductor(tmp_path: Path) -> None:
    # Kernels count once they are written: without a C++ compiler the run says why it fell back.
    fields = {"compile": "default", "compile_fallback": True, "layers": 1, "profiled_steps": 0}
    result = run(tmp_path, **fields)
    assert result.graphs is not None
    assert (result.graphs.fused_kernels or 0) > 0
    assert result.graphs.fell_back == "" or "C++ compiler" in result.graphs.fell_back


def test_it_counts_the_kernels_of_one_run_only() -> None:
    from torch._inductor import metrics

    metrics.generated_kernel_count = 7
    with compiler("default") as compiling:
        report = compiling.report()
    assert report is not None
    assert report.fused_kernels == 0
