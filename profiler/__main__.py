from __future__ import annotations

import sys

from profiler.cli import main

sys.exit(main())
