"""A template as text and back: TOML that people edit, with every mistake named in one line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping

import msgspec

from dashboard.services.spec_fields import SpecField, spec_fields
from profiler.bench import templates
from profiler.bench.templates import Template
from profiler.errors import SpecError, printable

SIZE_LIMIT = 64 << 10
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
RESERVED = ("new",)
"""Words of the addresses of templates."""

TITLE_CHARS = 120
ABOUT_CHARS = 500
_KEYS = ("name", "version", "title", "about", "fields", "axes")
_VERSION = re.compile(r"^version[ \t]*=.*$", re.MULTILINE)


def read(text: str, *, kind: str = "toml") -> Template:
    """The template that `text` (TOML or JSON) holds, every run of it checked.

    Raises `SpecError` that names line, field, value and what is allowed.
    """
    if len(text) > SIZE_LIMIT:
        raise SpecError("The template is longer than 64 KiB", "split it into several")
    tree = _tree(text, kind)
    _check_head(tree)
    for part in ("fields", "axes"):
        _check_part(part, tree.get(part, {}))
    _check_required(tree)
    return templates.parse(msgspec.json.encode(tree), kind="json")


def stored(text: str) -> Template:
    """A template that was checked when it was stored; later rules are not applied to it."""
    return msgspec.convert(tomllib.loads(text), Template)


def _tree(text: str, kind: str) -> dict[str, object]:
    try:
        tree = tomllib.loads(text) if kind == "toml" else msgspec.json.decode(text)
    except (tomllib.TOMLDecodeError, msgspec.DecodeError) as error:
        raise SpecError(f"The template is no valid {kind.upper()}: {error}") from None
    if not isinstance(tree, dict):
        raise SpecError("The template is no table", "see the shipped templates")
    return tree


def _check_head(tree: Mapping[str, object]) -> None:
    unknown = sorted(tree.keys() - set(_KEYS))
    if unknown:
        allowed = f"allowed: {', '.join(_KEYS)}; fields of a run stand under [fields] or [axes]"
        raise SpecError(f"{unknown[0]} is no part of a template", allowed)
    name = tree.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED:
        allowed = "1 to 40 small letters, digits and hyphens, but not new"
        raise SpecError(f"name is {_shown(name)}", f"allowed: {allowed}")
    version = tree.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SpecError(f"version is {_shown(version)}", "allowed: a whole number from 1")
    for key, most, least in (("title", TITLE_CHARS, 1), ("about", ABOUT_CHARS, 0)):
        value = tree.get(key, "")
        if not isinstance(value, str) or not least <= len(value) <= most:
            raise SpecError(f"{key} is {_shown(value)}", f"allowed: {least} to {most} characters")


def _check_part(part: str, values: object) -> None:
    if not isinstance(values, dict):
        raise SpecError(f"{part} is {_shown(values)}", f"write a table [{part}]")
    known = spec_fields()
    for name, value in values.items():
        field = known.get(name)
        if field is None:
            raise SpecError(f"{part}.{name} is no field of a run", f"allowed: {', '.join(known)}")
        if part == "fields":
            _check_value(field, value)
            continue
        _check_axis(field, value)


def _check_axis(field: SpecField, value: object) -> None:
    if not isinstance(value, list) or not value:
        raise SpecError(f"axes.{field.name} is {_shown(value)}", "write a list of values")
    for one in value:
        _check_value(field, one)


def _check_required(tree: Mapping[str, object]) -> None:
    given = {name for part in ("fields", "axes") for name in _table(tree, part)}
    for field in spec_fields().values():
        if field.required and field.name not in given:
            raise SpecError(
                f"{field.name} is missing", f"give it under [fields] or [axes]: {field.allowed}"
            )


def _table(tree: Mapping[str, object], part: str) -> Mapping[str, object]:
    found = tree.get(part, {})
    assert isinstance(found, dict)
    return found


def _check_value(field: SpecField, value: object) -> None:
    if not field.accepts(value):
        raise SpecError(f"{field.name} is {_shown(value)}", f"allowed: {field.allowed}")


def _shown(value: object) -> str:
    return "missing" if value is None else printable(repr(value), 80)


def numbered(text: str, number: int) -> str:
    """`text` with its version set; comments and order stay as they are."""
    return _VERSION.sub(f"version = {number}", text, count=1)


def write(template: Template) -> str:
    """`template` as TOML that `read` gives back."""
    head = {"name": template.name, "version": template.version, "title": template.title}
    lines = [f"{key} = {_toml(value)}" for key, value in head.items()]
    if template.about:
        lines.append(f"about = {_toml(template.about)}")
    for part, values in (("fields", template.fields), ("axes", template.axes)):
        if values:
            lines += [
                "",
                f"[{part}]",
                *(f"{key} = {_toml(value)}" for key, value in values.items()),
            ]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_quoted(str(key))} = {_toml(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    if value is None:
        raise SpecError("The configuration holds null", "TOML has none: leave that key out")
    return repr(value)


def _quoted(text: str) -> str:
    """JSON's escapes are TOML's, but for the one control character that JSON lets stand."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
