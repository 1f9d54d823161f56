"""Loaded before Django's settings: where tests keep things, and on which CPU they run.

Tests that run side by side have a CPU each: two programs whose threads wait for each
other at every step run many times slower on shared CPUs than one after the other.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "VAR_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="daybreak-tests-")
    os.environ["VAR_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if worker and hasattr(os, "sched_setaffinity"):
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[int(worker.removeprefix("gw")) % len(cpus)]})
