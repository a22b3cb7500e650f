# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite replica ...`."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import replica
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.command.test_command import active, called, novalite

__all__ = ["called", "novalite"]  # fixtures


@pytest.fixture(autouse=True)
def on_sqlite(cloud: Cloud) -> None:
    if cloud.engine.dialect.name != "sqlite":
        pytest.skip("a home holds a file")


def test_copies_are_listed(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    uuid = active(cloud, "web")
    of_server = {"instance_uuid": uuid, "host": "hv2", "every": 300, "former": [], "created_at": 1, "updated_at": 1}
    cloud.write(
        sa.insert(replica).values(**of_server, next_host="hv3", moved=2049, reason="hv2 has no copy", fault="no room")
    )
    head, line = novalite("replica", "list").splitlines()
    assert " ".join(head.split()) == "SERVER FROM HOST NEXT HOST EVERY AGE MOVED KIB WHY FULL FAULT"
    assert line.split()[0] == "web" and line.split()[2:7] == ["hv2", "hv3", "5m", "NONE", "3"] and "no room" in line
    (listed,) = json.loads(novalite("replica", "list", "-o", "json"))
    assert (listed["instance_uuid"], listed["host"], listed["fault"]) == (uuid, "hv2", "no room")


@pytest.mark.parametrize(
    ("words", "playbook", "said"),
    [
        (["set", "web", "--every", "5m", "--host", "hv2"], "replica", {"every": "5m", "host": "hv2"}),
        (["unset", "web"], "replica", {"replica_state": "absent"}),
        (["run", "web"], "replicate", {}),
    ],
)
def test_what_is_done_is_its_playbook(
    called: t.Callable[..., dict[str, t.Any]],
    tmp_path: pathlib.Path,
    words: list[str],
    playbook: str,
    said: dict[str, t.Any],
) -> None:
    argv = called("--home", str(tmp_path), "replica", *words)["argv"]
    assert f"novalite.cloud.{playbook}" in argv
    assert json.loads(argv[argv.index("-e") + 1]) == {"server": "web", **said}
