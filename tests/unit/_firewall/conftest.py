# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from tests.unit._firewall.host_model import Host


@pytest.fixture(params=["read", "kept"])
def host(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Host:
    """A host of which each run reads the rules, or trusts what the one before it kept."""
    return Host(directory=tmp_path if request.param == "kept" else None)
