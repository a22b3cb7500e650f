# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests at random to API servers that are killed, as their workers are.

CHAOS_REQUESTS=200 makes it longer (default: 6, with --thorough 10); `python -m tests.api.chaos --lab` does the same
over hypervisors.
"""

from __future__ import annotations

import contextlib
import os
import pathlib

import pytest

from tests.api.chaos.__main__ import Chaos, options_of
from tests.api.jobs.clouds import JobCloud
from tests.support import postgresql


def wreak(home: pathlib.Path, thorough: bool, url: str | None = None) -> None:
    requests = os.environ.get("CHAOS_REQUESTS", 10 if thorough else 6)
    options = options_of([f"--requests={requests}", "--kill-every=3", "--pause=0.7", "--patience=900"])
    with contextlib.closing(JobCloud(home, url)) as cloud:
        cloud.seed()
        chaos = Chaos(cloud, options)
        assert chaos.wreak() == [], chaos.summary()


def test_on_sqlite_with_one_server(tmp_path: pathlib.Path, pytestconfig: pytest.Config) -> None:
    wreak(tmp_path / "home", pytestconfig.getoption("--thorough"))


@pytest.mark.thorough
def test_on_postgresql_with_two_servers_and_three_workers(tmp_path: pathlib.Path) -> None:
    with postgresql.shared_server(tmp_path) as server:
        wreak(tmp_path / "home", True, server.create("chaos"))
