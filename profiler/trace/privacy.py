"""How the warning about credentials and personal details in a trace begins and ends.

In a module of its own so that whoever only reads reports loads no reader.
"""

from __future__ import annotations

HOLDS = "the file holds "
CLEAN_COPY = ": none of it is kept; --redact writes a clean copy"
