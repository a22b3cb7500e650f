# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of the journal about moves."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.plugin_utils._decision_log import decisions
from tests.unit._ledger.servers.test_server_migration import ask, server, well

pytestmark = pytest.mark.usefixtures("two_hosts", "no_domains")


def test_a_move_and_its_refusal_are_told_to_the_journal(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "live-migration", "web")
    assert decisions("server_migration", begun) == [f"server_migration: web ({uuid}) moves from hv1 to hv2"]
    failed = ask(cloud, "live-migration", state="end", moves=begun["moves"], outcomes=well("hv1", error="no room"))
    (line,) = decisions("server_migration", failed)
    assert line.startswith("server_migration: refused: ") and "no room" in line


def test_a_move_is_told_to_the_journal_once(cloud: t.Any) -> None:
    server(cloud)
    begun = ask(cloud, "migrate", "web")
    committed = ask(cloud, "migrate", state="commit", before=begun, outcomes=well("hv1", "hv2"))
    ended = ask(cloud, "migrate", state="end", before=committed, outcomes=well("hv1", "hv2"))
    assert committed["done"] == ended["done"] != []
    assert [len(decisions("server_migration", result)) for result in (begun, committed, ended)] == [1, 0, 0]
