"""Loaded before Django's settings: tests keep nothing in the installation's own folder."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if "VAR_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="daybreak-tests-")
    os.environ["VAR_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
