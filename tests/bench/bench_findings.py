"""Score of the findings on planted bottlenecks with known truth, and on clean programs.

Each planted case is a simulated model with one bottleneck; its truth is the
span of the same program without it. Goals: the planted bottleneck ranks first
in at least 95 %, its recoverable time is within 10 % of the truth in at least
95 %, and no clean case shows anything above 3 % of a step with high confidence.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profiler.analysis.findings import Finding, find  # noqa: E402  the root must be on the path
from profiler.units import change, duration, share  # noqa: E402
from tests.profiler.analysis.findings.cases import (  # noqa: E402
    clean_cases,
    planted_cases,
)
from tests.profiler.analysis.findings.program import Case  # noqa: E402

FIRST_GOAL = 0.95
NEAR = 0.10
CLEAN_LIMIT = 0.03
REAL_NEAR = 0.25
REPEATS = 3


@dataclass(frozen=True)
class Score:
    """One planted case."""

    case: Case
    first: Finding | None
    truth_ns: int
    gain_ns: int | None

    @property
    def named(self) -> bool:
        """Whether the planted kind came first."""
        return self.first is not None and self.first.kind == self.case.kind

    @property
    def error(self) -> float | None:
        """Relative error of the recoverable time; None where none is claimed."""
        if self.gain_ns is None or not self.truth_ns:
            return None
        return self.gain_ns / self.truth_ns - 1

    @property
    def near(self) -> bool:
        """Whether the recoverable time is near the truth; a kind without a gain must claim none."""
        if self.case.kind == "opaque_graph":
            return self.gain_ns is None
        return self.error is not None and abs(self.error) <= NEAR


def scored(case: Case) -> Score:
    """Find what was planted."""
    trace, structure = case.recorded()
    result = find(trace, structure, context=case.context)
    mine = next((f for f in result.findings if f.kind == case.kind), None)
    gain = mine.recoverable_ns_per_step if mine is not None else None
    first = result.findings[0] if result.findings else None
    return Score(case, first, case.truth_ns(), gain)


def loudest(case: Case) -> Finding | None:
    """The largest finding of a clean case that is shown with high confidence."""
    trace, structure = case.recorded()
    sure = [f for f in find(trace, structure).findings if f.confidence == "high"]
    return max(sure, key=lambda f: f.share, default=None)


def show(score: Score) -> None:
    """One line of the table."""
    first = score.first.kind if score.first is not None else "nothing"
    marks = ("" if score.named else f"  first: {first}") + ("" if score.near else "  far off")
    print(
        f"{score.case.kind:22} {score.case.name[:22]:22} {duration(score.truth_ns):>9} "
        f"{duration(score.gain_ns):>9} {change(score.error):>8}{marks}"
    )


def real_runs() -> int:
    """Real programs on the processor, each with its plant and without; timings of this machine."""
    from tests.profiler.analysis.findings.real import EXPECTED, recorded

    missed = []
    print(f"{'planted':28} {'place':>5} {'truth':>9} {'found':>9} {'error':>8}")
    for scenario, kind in EXPECTED.items():
        runs = [(recorded(scenario, scenario), recorded(scenario, "")) for _ in range(REPEATS)]
        planted, step_ns = min((p for p, _ in runs), key=lambda run: run[1])
        fixed_ns = min(ns for _, (_, ns) in runs)
        kinds = [f.kind for f in planted.findings]
        place = kinds.index(kind) + 1 if kind in kinds else 0
        # Shares of the step compare runs that a busy machine slowed down alike.
        gain = planted.findings[place - 1].share * step_ns if place else None
        truth = step_ns - fixed_ns
        error = gain / truth - 1 if gain is not None and truth else None
        print(
            f"{scenario:28} {place or '-':>5} {duration(truth):>9} {duration(gain):>9} "
            f"{change(error):>8}"
        )
        if place not in (1, 2):
            missed.append(f"{scenario} not in the top two")
        if error is None or abs(error) > REAL_NEAR:
            missed.append(f"{scenario} off by {change(error)}")
    print(f"goal missed: {'; '.join(missed)}" if missed else "goal met")
    return 1 if missed else 0


def main() -> int:
    """Run all cases, print the score and whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", help="only planted cases of this kind")
    parser.add_argument("--real", action="store_true", help="real programs on the processor")
    options = parser.parse_args()
    if options.real:
        return real_runs()
    began = time.perf_counter()
    print(f"{'planted':22} {'case':22} {'truth':>9} {'found':>9} {'error':>8}")
    cases = [c for c in planted_cases() if options.kind in (None, c.kind)]
    scores = [scored(case) for case in cases]
    for score in scores:
        show(score)
    clean = [] if options.kind else [(case, loudest(case)) for case in clean_cases()]
    loud = [(c, f) for c, f in clean if f is not None and f.share > CLEAN_LIMIT]
    for case, finding in loud:
        print(f"clean: {case.name}: {finding.kind} {share(finding.share)} {finding.title}")
    named = sum(s.named for s in scores) / len(scores)
    near = sum(s.near for s in scores) / len(scores)
    print(
        f"planted first {share(named)}, recoverable time within 10 % {share(near)} of "
        f"{len(scores)} cases; loud clean cases {len(loud)} of {len(clean)}; "
        f"{time.perf_counter() - began:.0f} s"
    )
    missed = []
    if named < FIRST_GOAL:
        missed.append(f"planted first in {share(named)}, goal {share(FIRST_GOAL)}")
    if near < FIRST_GOAL:
        missed.append(f"recoverable time near in {share(near)}, goal {share(FIRST_GOAL)}")
    if loud:
        missed.append(f"{len(loud)} clean cases above {share(CLEAN_LIMIT)}")
    print(f"goal missed: {'; '.join(missed)}" if missed else "goal met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
