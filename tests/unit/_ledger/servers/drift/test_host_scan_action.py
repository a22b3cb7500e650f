# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of the step `host_drift`, without a host: one trip for the look, none to compare, in both modes."""

from __future__ import annotations

import time
import types
import typing as t
import unittest.mock

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.plugin_utils import _host_scan_action
from ansible_collections.novalite.cloud.plugins.plugin_utils._host_scan_action import HostDrift
from tests.unit._ledger.servers.drift.test_contested import ON, launched, look_of, no_domains, traces

__all__ = ["no_domains"]
Result = dict[str, t.Any]


class Host:
    """A host that is looked at by the plug-in; counts the trips."""

    def __init__(self, cloud: t.Any, name: str, look: Result) -> None:
        self.cloud, self.name, self.look, self.trips = cloud, name, look, 0

    def act(self, check_mode: bool = False, **args: t.Any) -> Result:
        """Take the step `host_drift` for this host, as a worker does."""
        args = {"ledger_url": self.cloud.url, **args}
        task = types.SimpleNamespace(args=args, check_mode=check_mode, diff=False, async_val=0, delegate_to=None)
        action = HostDrift(task, *[unittest.mock.MagicMock() for _ in range(5)])

        def run_on_host(module: str, arguments: Result, _task_vars: Result) -> Result:
            assert module == "host_drift" and set(arguments) == {"state_dir", "uri"}
            self.trips += 1
            return {"changed": False, "found": self.look}

        with (
            unittest.mock.patch.object(action, "run_on_host", run_on_host),
            unittest.mock.patch.object(action, "state_dir", lambda _task_vars: "/var/lib/novalite"),
        ):
            return action.run(task_vars={"inventory_hostname": self.name})


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it happens long after the ledger was written."""
    later = types.SimpleNamespace(monotonic=lambda: time.monotonic() + 1000)
    monkeypatch.setattr(_host_scan_action, "time", later)


@pytest.mark.usefixtures("moment")
def test_check_mode_names_what_a_run_repairs(cloud: t.Any) -> None:
    web, _missing, silent = (launched(cloud, name, host) for name, host in (("web", "hv2"), ("o", "hv1"), ("s", "hv3")))
    one_host = Host(cloud, "hv1", look_of(cloud, traces(web, ON), traces(silent, ON)))
    next_host = Host(cloud, "hv2", look_of(cloud, traces(web, ON)))
    dumped = cloud.dump()
    looked = {host.name: host.act(look_only=True) for host in (one_host, next_host)}
    assert all(set(result) == {"changed", "found", "began", "seen"} for result in looked.values())
    assert looked["hv2"]["seen"]["sights"] == {web["uuid"]: vars(ON)} and cloud.dump() == dumped
    seen = {name: result["seen"] for name, result in looked.items()}
    where = cloud.run("whereabouts", seen=seen)
    rows: dict[bool, list[Result]] = {}
    for check_mode in (True, False):
        more: Result = {"rehearsal": {"build_timeout": 600}} if check_mode else {}
        results = [
            host.act(check_mode, look=looked[host.name], elsewhere=where["hosts"][host.name], **more)
            for host in (one_host, next_host)
        ]
        assert not any(result.get("failed") for result in results), results
        rows[check_mode] = [row for result in results for row in result["rows"]]
    assert rows[True] == rows[False]
    assert {row["repair"] for row in rows[True]} == {
        "none: web runs on hv1, the ledger has it on hv2",
        "none: s runs on hv1, the ledger has it on hv3",
        "none: not known: hv3 was not asked",  # of the one that hv1 is to have
    }
    assert (one_host.trips, next_host.trips) == (1, 1)
    assert set(cloud.rows(sa.select(tables.instance.c.vm_state))) == {("active",)}


@pytest.mark.usefixtures("moment")
def test_a_look_alone_and_a_look_that_failed(cloud: t.Any) -> None:
    host = Host(cloud, "hv1", look_of(cloud))
    assert host.act()["rows"] is not None and host.trips == 1  # looks and compares, as anybody may do
    failed = {"failed": True, "msg": "libvirt does not answer"}
    assert host.act(look=failed) == failed and host.trips == 1
