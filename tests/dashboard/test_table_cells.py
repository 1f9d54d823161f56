"""Cells of a table as HTML."""

from __future__ import annotations

import pytest

from dashboard.panels.table import Cell
from dashboard.templatetags.rows import asked, table_cells

HEAD = Cell(shown="run 3", title="run 3", kind="text")


@pytest.mark.parametrize(
    ("cell", "drawn"),
    [
        (Cell(shown="n = 3", title="", kind="text"), "<td>n = 3</td>"),
        (Cell(shown="aten::mm", title="all", kind="mono"), '<td class="mono" title="all">aten::mm'),
        (
            Cell(shown="2.00 ms", title="2e6 ns", kind="ns"),
            '<td class="num" title="2e6 ns">2.00 ms',
        ),
        (
            Cell(shown="straggler", title="", kind="text"),
            '<span class="chip worse">straggler</span>',
        ),
        (Cell(shown="7", title="7", kind="count", href="/runs/7/"), '<a href="/runs/7/">7</a>'),
        (Cell(shown="25.0 %", title="0.25", kind="share", part=0.25), '<rect width="25.00"'),
    ],
)
def test_it_draws_each_kind(cell: Cell, drawn: str) -> None:
    assert drawn in table_cells([HEAD, cell])


@pytest.mark.parametrize("kind", ["mono", "text", "share", "count"])
@pytest.mark.parametrize("place", [0, 1])
def test_it_escapes_foreign_text(kind: str, place: int) -> None:
    hostile = '"><script>alert(1)</script>'
    cells = [HEAD, HEAD]
    cells[place] = Cell(shown=hostile, title=hostile, kind=kind, href=f"/{hostile}", part=0.5)
    drawn = table_cells(cells)
    assert "<script>" not in drawn
    assert '""' not in drawn.replace('title=""', "")
    assert "&lt;script&gt;" in drawn


def test_the_first_cell_heads_the_row() -> None:
    head = Cell(shown="", title="", kind="mono")
    assert table_cells([head, HEAD]).startswith('<th scope="row" class="mono" title="">–</th>')


def test_a_question_is_a_link() -> None:
    drawn = table_cells([HEAD, Cell(shown="", title="", kind="ask", href='/t/?if_name="><script>')])
    assert '<td><a href="/t/?if_name=&quot;&gt;&lt;script&gt;" data-asks' in drawn


def test_it_says_why_there_is_no_question() -> None:
    assert 'title="its name is too long to ask about"' in asked("")
