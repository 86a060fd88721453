"""Chromium as the system has it."""

from pathlib import Path

INSTALLED = [Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")]
CHROMIUM = next((path for path in INSTALLED if path.exists()), None)
