"""Markdown of people as HTML: their text is never markup, their links never run anything."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

SCHEMES = ("http", "https", "mailto")
_HEADING = 3
"""Headings of a note stand below those of the page."""
_KEPT_CONTROLS = "\n\t"


def _link_is_harmless(url: str) -> bool:
    """Addresses of the web and of mail, and paths of this site; nothing that runs."""
    parts = urlsplit(url.strip())
    if parts.scheme:
        return parts.scheme.lower() in SCHEMES
    return not parts.netloc


def _link_open(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: Any,  # noqa: ANN401 - the library's own signature
    env: MutableMapping[str, Any],
) -> str:
    tokens[index].attrSet("rel", "nofollow noopener noreferrer")
    return renderer.renderToken(tokens, index, options, env)


def _heading(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: Any,  # noqa: ANN401 - the library's own signature
    env: MutableMapping[str, Any],
) -> str:
    tokens[index].tag = f"h{min(6, int(tokens[index].tag[1:]) + _HEADING)}"
    return renderer.renderToken(tokens, index, options, env)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # A picture would tell another server who reads the note.
    parser.disable("image")
    parser.validateLink = _link_is_harmless  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("heading_open", _heading)
    parser.add_render_rule("heading_close", _heading)
    return parser


_PARSER = _parser()


def _visible(text: str) -> str:
    """Control and direction characters written out, so that nothing reads as what it is not."""
    return "".join(
        c if c.isprintable() or c in _KEPT_CONTROLS else c.encode("unicode_escape").decode()
        for c in text
    )


@lru_cache(maxsize=512)
def rendered(text: str) -> SafeString:
    """The note as HTML. The parser escapes all text itself: raw HTML is switched off."""
    return SafeString(_PARSER.render(_visible(text.replace("\r\n", "\n"))))
