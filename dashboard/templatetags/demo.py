"""The banner over pages that show demo data."""

from __future__ import annotations

from django import template
from django.template.base import NodeList, Parser, Token
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.services.demo_story import MARK

register = template.Library()


class DemoBannerNode(template.Node):
    """The content of a page; where it names demo data a banner says that it is generated.

    Whatever page names a demo row is found by the row's name, also pages that
    know nothing of the demo.
    """

    def __init__(self, nodelist: NodeList) -> None:
        self.nodelist = nodelist

    def render(self, context: template.Context) -> SafeString:
        content = self.nodelist.render(context)
        if MARK not in content:
            return content
        banner = render_to_string("dashboard/partials/demo_banner.html", {"mark": MARK})
        return format_html("{}{}", banner, content)


@register.tag
def demo_banner(parser: Parser, token: Token) -> DemoBannerNode:
    """`{% demo_banner %}...{% enddemo_banner %}` around the content of a page."""
    nodelist = parser.parse(("enddemo_banner",))
    parser.delete_first_token()
    return DemoBannerNode(nodelist)
