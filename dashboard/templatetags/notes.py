"""What templates of notes need: their text as harmless HTML, and who may change one."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from dashboard.markdown import rendered
from dashboard.models import Note, User
from dashboard.views.requests import may_change as may_change_note

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    """Markdown of a person; see `dashboard.markdown` for what keeps it harmless."""
    return rendered(text)


@register.simple_tag
def may_change(user: User, note: Note) -> bool:
    """Whether the reader may edit and delete the note."""
    return may_change_note(user, note)
