# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""DHCP options of ports, and their bindings."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import ports
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.port_plan import port_plan
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.network.test_port_security import FACTS
from tests.api.network.test_tenant_networks import error_of, network, port, subnet


def option(name: str, value: str | None, version: int = 4) -> dict[str, t.Any]:
    return {"opt_name": name, "opt_value": value, "ip_version": version}


def test_dhcp_options_are_set_changed_and_taken_away_one_by_one(doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    first, second = option("bootfile-name", "pxelinux.0"), option("150", "192.0.2.1")
    made = port(doors, of, extra_dhcp_opts=[{"opt_name": "bootfile-name", "opt_value": "pxelinux.0"}, second])
    assert made["extra_dhcp_opts"] == [first, second]
    changes = [option("bootfile-name", None), option("150", "192.0.2.2"), option("dns-server", "[fd00::1]", 6)]
    after = doors.member.put(f"/ports/{made['id']}", {"port": {"extra_dhcp_opts": changes, "name": "n"}})["port"]
    assert after["extra_dhcp_opts"] == [option("150", "192.0.2.2"), option("dns-server", "[fd00::1]", 6)]
    nothing: t.Any
    for nothing in ([], None):
        same = doors.member.put(f"/ports/{made['id']}", {"port": {"extra_dhcp_opts": nothing}})["port"]
        assert same["extra_dhcp_opts"] == after["extra_dhcp_opts"]
    assert port(doors, of, extra_dhcp_opts=[option("router", None)])["extra_dhcp_opts"] == []


@pytest.mark.parametrize(
    "refused",
    [
        option("router", "10.0.0.1\ndhcp-script=/bin/sh"),
        option("router", "10.0.0.1\n"),
        option("router", 'a"b'),
        option("router", "a" * 256),
        option("router,x", "a"),
        option("tag:x", "a"),
        option("255", "a"),
        option("", "a"),
        {"opt_value": "a"},
        {**option("router", "a"), "ip_version": 5},
        {**option("router", "a"), "more": 1},
    ],
)
def test_dhcp_options_that_are_none(doors: Doors, refused: dict[str, t.Any]) -> None:
    """What a host writes into dnsmasq's files stays on its line."""
    of = network(doors)
    subnet(doors, of)
    doors.member.post("/ports", {"port": {"network_id": of["id"], "extra_dhcp_opts": [refused]}}, 400)
    made = port(doors, of)
    doors.member.put(f"/ports/{made['id']}", {"port": {"extra_dhcp_opts": [refused]}}, 400)
    many = [option(str(number), "x") for number in range(1, 40)]
    doors.member.put(f"/ports/{made['id']}", {"port": {"extra_dhcp_opts": many}}, 400)
    doors.member.put(f"/ports/{made['id']}", {"port": {"extra_dhcp_opts": many[:20]}})
    doors.member.put(f"/ports/{made['id']}", {"port": {"extra_dhcp_opts": many[20:]}}, 400)


def test_the_host_of_a_server_hears_of_dhcp_options(cloud: Cloud, doors: Doors) -> None:
    nics = [(cloud.network("private"), "10.20.0.5")]
    cloud.instance(doors.project, "a", cloud.host("hv1", facts=FACTS), nics, power_state=1)
    (made,) = doors.member.get("/ports")["ports"]
    port_body = {"port": {"extra_dhcp_opts": [option("tftp-server", "192.0.2.1")]}}
    doors.member.put(f"/ports/{made['id']}", port_body)
    doors.member.put(f"/ports/{made['id']}", port_body)
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]["ports"]) == ("security_groups", [made["id"]])
    with transaction(cloud.engine) as connection:
        plan = port_plan(connection, {"ports": [made["id"]], "state_dir": "/var/lib/novalite"})
    (host,) = plan["hosts"]["hv1"]["dhcp_networks"][0]["hosts"]
    assert host["options"] == [{"name": "tftp-server", "value": "192.0.2.1", "version": 4}]


def test_administrators_say_where_a_port_is_to_be_bound(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    profile = {"foo": "bar"}
    port_body = {"network_id": of["id"], "binding:profile": profile, "binding:host_id": "localhost"}
    made = doors.admin.post("/ports", {"port": port_body}, 201)["port"]
    assert (made["binding:profile"], made["binding:host_id"]) == (profile, "localhost")
    assert (made["binding:vnic_type"], made["binding:vif_type"]) == ("normal", "unbound")
    path = f"/ports/{made['id']}"
    change: t.Any
    for change in ({"binding:profile": {"a": 1}}, {"binding:host_id": "hv1"}, {"binding:profile": {}}):
        assert error_of(doors.member.put(path, {"port": change}, 403)) == "PolicyNotAuthorized"
        doors.member.post(
            "/ports", {"port": {"network_id": of["id"], **change}}, 403 if change != {"binding:profile": {}} else 201
        )
    assert "binding:profile" not in doors.member.get(path)["port"]
    doors.member.put(path, {"port": {"binding:vnic_type": "baremetal"}})
    doors.member.put(path, {"port": {"binding:vnic_type": "none"}}, 400)
    after = doors.admin.put(path, {"port": {"binding:profile": {}, "binding:host_id": "127.0.0.1"}})["port"]
    assert (after["binding:profile"], after["binding:host_id"]) == ({}, "127.0.0.1")
    assert after["binding:vnic_type"] == "baremetal"
    with transaction(cloud.engine) as connection, pytest.raises(NovaliteError, match="baremetal"):
        ports.attachable(connection, doors.project, made["id"])
    long = {"binding:profile": {"a": "x" * 5000}}
    doors.admin.put(path, {"port": long}, 400)
    aliases = {extension["alias"] for extension in doors.member.get("/extensions")["extensions"]}
    assert {"port-security", "binding", "extra_dhcp_opt"} <= aliases
