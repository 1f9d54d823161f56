"""Habits of templates and scripts that keep foreign text harmless, and the filters they use."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.template import RequestContext, Template
from django.template.loader import get_template
from django.test import Client, RequestFactory
from django.utils import timezone

from dashboard.models import FailureKind, RunState, TraceState
from dashboard.queries import glossary
from profiler.metrics import METRICS

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static").glob("*.js"))
STYLES = sorted((ROOT / "static").glob("*.css"))

FORBIDDEN = {
    "unescaped text": r"\|\s*safe\b|autoescape off|mark_safe|safeseq",
    "an inline script": r"<script(?![^>]*\bsrc=)[^>]*>",
    "an event attribute": r"<[^>]*\son[a-z]+\s*=",
    "a script address": r"(href|src|action)\s*=\s*[\"']?\s*javascript:",
    "code in an htmx attribute": r"hx-on|hx-vals\s*=\s*[\"']js:|js:|hx-trigger\s*=\s*\"[^\"]*\[",
    "a style attribute": r"\sstyle\s*=",
    "something from another site": r"(src|href)\s*=\s*[\"']?(https?:)?//",
    "a number formatted by hand": r"\|\s*(floatformat|filesizeformat|intcomma)",
}


def found_in(paths: list[Path], pattern: str) -> dict[str, list[str]]:
    """Per file, what matches; comments of templates do not count."""
    found = {}
    for path in paths:
        text = re.sub(r"{% comment %}.*?{% endcomment %}", "", path.read_text(), flags=re.S)
        hits = [match[0] for match in re.finditer(pattern, text, flags=re.I | re.S)]
        if hits:
            found[str(path.relative_to(ROOT))] = hits
    return found


@pytest.mark.parametrize("what", FORBIDDEN)
def test_it_keeps_templates_free_of(what: str) -> None:
    assert found_in(TEMPLATES, FORBIDDEN[what]) == {}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_it_would_find(what: str) -> None:
    examples = {
        "unescaped text": "{{ name|safe }}",
        "an inline script": "<script>x()</script>",
        "an event attribute": '<a onclick="x()">',
        "a script address": '<a href="javascript:x()">',
        "code in an htmx attribute": '<div hx-trigger="every 2s [visible]">',
        "a style attribute": '<i style="width: 1px">',
        "something from another site": '<script src="https://cdn.example/x.js">',
        "a number formatted by hand": "{{ n|floatformat:2 }}",
    }
    assert re.search(FORBIDDEN[what], examples[what], flags=re.I)


def test_it_compiles_every_template() -> None:
    for path in TEMPLATES:
        get_template(str(path.relative_to(ROOT / "templates")))


def test_it_protects_every_form_that_posts() -> None:
    forms = found_in(TEMPLATES, r"<form[^>]*method=\"post\".*?</form>")
    assert forms
    bare = {path for path, hits in forms.items() if any("csrf_token" not in hit for hit in hits)}
    assert not bare


def test_it_gives_every_heading_cell_a_scope() -> None:
    assert found_in(TEMPLATES, r"<th\b(?![^>]*scope=)[^>]*>") == {}


def test_it_builds_no_code_and_no_markup_from_text() -> None:
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function|document\.write"
    assert found_in(SCRIPTS, ways) == {}
    assert len(found_in(SCRIPTS, '"use strict"')) == len(SCRIPTS)


def test_it_keeps_scripts_and_styles_short() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in SCRIPTS + STYLES}
    assert max(lengths.values()) <= 400, lengths


def test_it_states_every_colour_token_for_both_themes() -> None:
    text = (ROOT / "static/daybreak.css").read_text()
    colours = re.findall(r"^\s+(--[a-z-]+): (?:#|rgb)", text, flags=re.M)
    assert not colours, "a colour outside light-dark() would stay the same in the dark"
    used = set(
        re.findall(r"var\((--[a-z-]+)\)", "".join(p.read_text() for p in STYLES + TEMPLATES))
    )
    assert used <= set(re.findall(r"(--[a-z-]+):", "".join(p.read_text() for p in STYLES)))


def contrast(first: str, second: str) -> float:
    """WCAG 2.2 contrast ratio of two #rrggbb colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *(
        (ink, ground, 4.5)
        for ink in ("text", "muted", "faint")
        for ground in ("bg", "surface", "sunken")
    ),
    *((ink, "surface", 4.5) for ink in ("accent", "better", "worse", "bad", "ok")),
    *((f"{kind}-ink", f"{kind}-soft", 4.5) for kind in ("better", "worse")),
    *((kind, f"{kind}-soft", 4.5) for kind in ("accent", "bad", "ok")),
    ("accent-ink", "accent", 4.5),
    *((line, "surface", 3.0) for line in ("line-strong", "compute", "comm", "copy", "python")),
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground", "least"), PAIRS)
def test_it_has_enough_contrast(ink: str, ground: str, least: float, theme: int) -> None:
    text = (ROOT / "static/daybreak.css").read_text()
    found = dict(re.findall(r"(--[a-z-]+): light-dark\((#\w{6}, #\w{6})\)", text))
    tokens = {name: pair.split(", ")[theme] for name, pair in found.items()}
    assert contrast(tokens[f"--{ink}"], tokens[f"--{ground}"]) >= least


# Filters and tags


def shown(source: str, **values: object) -> str:
    request = RequestFactory().get("/runs/?page=3&q=a%26b")
    template = Template("{% load daybreak %}" + source)
    return template.render(RequestContext(request, values))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("line\nbreak\x1b[31m", "line\\nbreak\\x1b[31m"),
        ("x" * 1_000_000, "x" * 199 + "…"),
        ("aten::mm<4, float>", "aten::mm&lt;4, float&gt;"),
    ],
)
def test_it_makes_foreign_names_harmless(text: str, expected: str) -> None:
    assert shown("{{ name|foreign }}", name=text) == expected


def test_it_cuts_long_names_in_the_middle() -> None:
    text = shown("{{ name|short:21 }}", name="void at::native::vectorized_elementwise_kernel<4>")
    assert text == "void at::n…_kernel&lt;4&gt;"


@pytest.mark.parametrize(
    ("source", "value", "expected"),
    [
        ("{{ v|duration }}", 7_620_123, "7.62 ms"),
        ("{{ v|seconds }}", 90.0, "90.0 s"),
        ("{{ v|size }}", 3 * 2**30, "3.00 GiB"),
        ("{{ v|share }}", 0.386, "38.6 %"),
        ("{{ v|quantity:'tok/s' }}", 1050.0, "1.05 ktok/s"),
        ("{{ v|exact:'ns' }}", 7_620_123.0, "7,620,123 ns"),
        ("{{ v|exact:'count' }}", 12, "12"),
        ("{{ v|duration }}{{ v|exact }}{{ v|age }}{% when v %}", None, "––––"),
    ],
)
def test_it_formats_numbers_by_one_rule(source: str, value: object, expected: str) -> None:
    assert shown(source, v=value) == expected


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=119), "119 s"),
        (timedelta(minutes=3, seconds=5), "3 min"),
        (timedelta(hours=5), "5 h"),
        (timedelta(days=9), "9 d"),
    ],
)
def test_it_says_how_long_ago(passed: timedelta, expected: str) -> None:
    moment = timezone.now() - passed - timedelta(milliseconds=20)
    page = shown("{% when moment %}", moment=moment)
    assert f">{expected} ago</time>" in page
    assert f'datetime="{moment.isoformat()}"' in page


@pytest.mark.parametrize("state", [*RunState.values, *TraceState.values, "alive", "silent"])
def test_it_shows_a_state_as_word_and_icon(state: str) -> None:
    chip = shown("{% chip state %}", state=state)
    assert state.replace("_", " ").capitalize() in chip
    assert 'aria-hidden="true"' in chip


def test_it_sorts_by_a_link_that_keeps_the_rest_of_the_address() -> None:
    heading = shown("{% sorted_th 'took' 'Took' '-took' 'num' %}")
    assert 'aria-sort="descending"' in heading
    assert 'href="?q=a%26b&amp;sort=took"' in heading
    other = shown("{% sorted_th 'name' 'Name' '-took' %}")
    assert "aria-sort" not in other
    assert "sort=name" in other


def test_it_pages_with_the_total_and_keeps_the_address() -> None:
    page = shown("{% pager 3 5 230 50 'runs' %}")
    assert "101–150 of 230 runs" in page
    assert "?page=2&amp;q=a%26b" in page
    assert "?page=4&amp;q=a%26b" in page
    assert "?page=5&amp;q=a%26b" in page


def test_it_says_so_when_there_is_nothing_to_page() -> None:
    assert "<a" not in shown("{% pager 1 1 0 50 'runs' %}")
    assert "0 runs" in shown("{% pager 1 1 0 50 'runs' %}")


@pytest.mark.parametrize(("part", "width"), [(0.5, "50.00"), (7.0, "100.00"), (-1.0, "0.00")])
def test_it_draws_a_share_within_its_bar(part: float, width: str) -> None:
    assert f'width="{width}"' in shown("{% share_bar part %}", part=part)


def test_it_draws_a_sparkline_within_its_box() -> None:
    line = shown("{% sparkline values label %}", values=[3.0, 1.0, 2.0], label='of "x"')
    points = re.search(r'points="([^"]+)"', line)
    assert points is not None
    assert points[1] == "2.0,3.0 36.0,17.0 70.0,10.0"
    assert "of &quot;x&quot;" in line
    assert shown("{% sparkline values 'x' %}", values=[1.0]) == ""


# Glossary


def test_it_explains_every_metric_state_and_failure(viewer_client: Client) -> None:
    page = viewer_client.get("/glossary/").content.decode()
    anchors = [
        *(f"metric-{name}" for name in METRICS),
        *(f"state-{state}" for state in RunState.values),
        *(f"trace-{state}" for state in TraceState.values),
        *(f"failure-{kind}" for kind in FailureKind.values),
    ]
    assert not [anchor for anchor in anchors if f'id="{anchor}"' not in page]


def test_it_gives_every_term_an_address_of_its_own() -> None:
    anchors = [entry.anchor for section in glossary.sections() for entry in section.entries]
    assert len(anchors) == len(set(anchors))
    assert all(re.fullmatch(r"[a-z][\w-]*", anchor) for anchor in anchors)
