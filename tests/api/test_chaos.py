# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests at random while who asks and who works are killed.

CHAOS_REQUESTS=200 makes it longer; `python -m tests.api.chaos --lab` does the same over hypervisors.
"""

from __future__ import annotations

import os
import pathlib

from tests.api.chaos.__main__ import Chaos, options_of
from tests.api.jobs.clouds import JobCloud
from tests.unit._ledger import postgresql

REQUESTS = os.environ.get("CHAOS_REQUESTS", "12")


def wreak(cloud: JobCloud, *words: str) -> None:
    options = options_of([f"--requests={REQUESTS}", "--kill-every=5", "--pause=1", "--patience=900", *words])
    try:
        cloud.seed()
        chaos = Chaos(cloud, options)
        wrong = chaos.wreak()
        assert wrong == [], f"seed {options.seed}: {chaos.summary()}"
    finally:
        cloud.close()


def test_on_sqlite(tmp_path: pathlib.Path) -> None:
    wreak(JobCloud(tmp_path / "home"), "--workers=1")


def test_on_postgresql_with_three_workers(tmp_path: pathlib.Path) -> None:
    with postgresql.shared_server(tmp_path) as server:
        wreak(JobCloud(tmp_path / "home", server.create("chaos")), "--workers=3")
