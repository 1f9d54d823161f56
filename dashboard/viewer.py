"""The content security policy of the flame graph viewer's document."""

from __future__ import annotations

VIEWER_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)


def viewer_headers(headers: dict[str, str], path: str, url: str) -> None:
    """The flame graph viewer gets a policy of its own: only our page may frame it."""
    if "/vendor/speedscope/" in url and url.endswith(".html"):
        headers["Content-Security-Policy"] = VIEWER_POLICY
