from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """A run fixes torch's threads for its process; here many runs share one."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
