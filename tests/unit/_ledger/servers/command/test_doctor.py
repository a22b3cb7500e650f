# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`novalite doctor`: each finding by the state that it is about, and the command over a ledger."""

from __future__ import annotations

import json
import pathlib
import typing as t

import click.testing
import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api import cli
from api.cli.doctor import UNSEEN, Health, findings, has_libvirt_collection
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.command.test_command import WEB

NOW = 2_000_000_000
HOST = {"name": "hv1", "up": True, "down_reason": None, "last_seen_at": NOW, "differences": 0, "facts": {}}
ADDRESSES = {"total": 256, "instances": 1, "hosts": 1, "reserved": 2, "resting": 0, "free": 252}
NETWORK = {"name": "private", "owner": "", "is_default": False, "addresses": ADDRESSES}
SERVER = {"name": "web", "uuid": "1f", "vm_state": "building", "task_state": None, "silent_for": None, "fault": None}


def health(**changes: t.Any) -> Health:
    """The health of a cloud that lacks nothing, but for these changes."""
    return Health(**{"now": NOW, "hosts": [HOST], "networks": [NETWORK], **changes})


def test_a_cloud_in_order_has_no_findings() -> None:
    own = {**NETWORK, "name": "own", "owner": "e" * 32}
    assert findings(health(networks=[NETWORK, own])) == []
    assert findings(health(networks=[NETWORK, {**NETWORK, "name": "other", "is_default": True}])) == []


@pytest.mark.parametrize(
    ("changes", "about", "problem"),
    [
        ({"behind": "the ledger is older than hv1"}, "ledger", "older than hv1"),
        ({"has_libvirt_collection": False}, "controller", "community.libvirt is missing"),
        ({"hosts": []}, "hosts", "knows no compute host"),
        ({"hosts": [{**HOST, "up": False, "down_reason": "no ssh"}]}, "host hv1", "down: no ssh"),
        ({"hosts": [{**HOST, "last_seen_at": NOW - UNSEEN - 3600}]}, "host hv1", "not heard of for 25 hours"),
        ({"hosts": [{**HOST, "last_seen_at": None}]}, "host hv1", "never heard of"),
        ({"hosts": [{**HOST, "differences": 3}]}, "host hv1", "3 differences"),
        ({"hosts": [{**HOST, "facts": {"security_driver": "none"}}]}, "host hv1", "confines no guest"),
        ({"hosts": [{**HOST, "facts": {"clock_ahead": -120}}]}, "host hv1", "120 s behind this controller's"),
        ({"hosts": [{**HOST, "facts": {"other_ledger": "e-d"}}]}, "host hv1", "guests of another ledger (e-d)"),
        ({"networks": [NETWORK, {**NETWORK, "name": "other"}]}, "networks", "other, private: none is the default"),
        (
            {"networks": [{**NETWORK, "addresses": {**ADDRESSES, "instances": 253, "free": 0}}]},
            "network private",
            "0 of 254 addresses are free",
        ),
        (
            {"troubled": [{**SERVER, "task_state": "spawning", "silent_for": 3600}]},
            "server web (1f)",
            "spawning, no sign of life for 60 min",
        ),
        ({"troubled": [{**SERVER, "fault": {"message": "disk full"}}]}, "server web (1f)", "disk full"),
        ({"uncopied": [{**SERVER, "fault": "hv2 is dead"}]}, "server web (1f)", "not copied: hv2 is dead"),
    ],
)
def test_each_state_has_its_finding(changes: dict[str, t.Any], about: str, problem: str) -> None:
    (finding,) = findings(health(**changes))
    assert finding.about == about and problem in finding.problem and finding.remedy


def test_the_collection_is_looked_for_where_ansible_looks(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ansible_collections/community/libvirt").mkdir(parents=True)
    assert has_libvirt_collection([str(tmp_path)])


@pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)
def test_the_command_tells_of_servers_that_are_stuck(
    cloud: Cloud, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOVALITE_LEDGER_URL", raising=False)
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    cloud.server({**WEB, "name": "dead"})
    cloud.server({**WEB, "name": "under-way"})
    cloud.write(sa.update(tables.instance).where(tables.instance.c.name == "dead").values(updated_at=1))

    def run(*words: str) -> click.testing.Result:
        return click.testing.CliRunner().invoke(cli.main, ["doctor", *words])

    done = run("-o", "json")
    by_subject = {finding["about"].split(" (")[0]: finding for finding in json.loads(done.output)}
    assert done.exit_code == 1 and "no sign of life" in by_subject["server dead"]["problem"]
    assert "server under-way" not in by_subject and "not heard of for" in by_subject["host hv1"]["problem"]
    for_people = run()
    assert for_people.exit_code == 1 and "  -> novalite reconcile" in for_people.output.splitlines()
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path / "empty"))
    empty = run("-o", "json")
    assert empty.exit_code == 1 and f"there is no ledger in {tmp_path / 'empty'}" in empty.output


@pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)
def test_home_and_inventory_are_compared(cloud: Cloud, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOVALITE_LEDGER_URL", "NOVALITE_INVENTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    path = tmp_path / "hosts.yml"

    def problems(home: object, hosts: dict[str, None]) -> dict[str, str]:
        group = {"hosts": hosts, "vars": {"novalite_base": str(home)}}
        variables = {"novalite_base": str(home), "novalite_home": "{{ novalite_base }}"}
        path.write_text(json.dumps({"all": {"vars": variables, "children": {"compute": group}}}))
        said = click.testing.CliRunner().invoke(cli.main, ["doctor", "-i", str(path), "-o", "json"])
        return {finding["about"]: finding["problem"] for finding in json.loads(said.stdout)}

    assert not {"home", "inventory"} & problems(tmp_path, {"hv1": None}).keys()
    differing = problems("/srv/other", {})
    assert f"playbooks use /srv/other (the inventory's novalite_home), this command {tmp_path}" in differing["home"]
    assert "no host in the group 'compute'" in differing["inventory"]
