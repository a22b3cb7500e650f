# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One libvirtd for all tests of a file."""

from __future__ import annotations

import os
import pathlib
import tempfile
import typing as t

import pytest

from tests.unit._backup.hypervisor import Hypervisor


@pytest.fixture(scope="module")
def host() -> t.Iterator[Hypervisor]:
    with tempfile.TemporaryDirectory(prefix="backups-") as directory:
        os.chmod(directory, 0o711)
        running = Hypervisor(pathlib.Path(directory))
        try:
            yield running
        finally:
            running.close()
