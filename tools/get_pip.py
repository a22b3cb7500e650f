"""Replacement of get-pip.py, for ansible-test: Python's own pip, which then installs the pip that was asked for."""

from __future__ import annotations

import subprocess
import sys

# Both as processes of their own: ensurepip inside this one would make pip ignore its configuration files.
requirements = [argument for argument in sys.argv[1:] if argument.startswith(("pip==", "setuptools==", "wheel=="))]
subprocess.run([sys.executable, "-m", "ensurepip"], stdout=subprocess.DEVNULL, check=True)
subprocess.run(
    [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *requirements], check=True
)
