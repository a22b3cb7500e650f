# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Network API, asked as clients ask it."""

from __future__ import annotations

import time
import typing as t
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import subnet_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import floating_pool
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.support.examples import part_of
from tests.support.rows import change_address

NOWHERE = "11111111-2222-3333-4444-555555555555"


def make_pool(cloud: Cloud, name: str = "public", cidr: str = "203.0.113.0/28") -> str:
    item = {"name": name, "cidr": cidr, "addresses": None, "interface": "eth0"}
    with transaction(cloud.engine) as connection:
        floating_pool(connection, {"floating_pools": [item], "state": "present"})
    return tables_addresses.pool_network_id(name)


def make_group(doors: Doors, name: str = "web") -> dict[str, t.Any]:
    body = {"security_group": {"name": name, "description": name}}
    return t.cast("dict[str, t.Any]", doors.member.post("/security-groups", body, 201)["security_group"])


def error_of(body: t.Any) -> str:
    assert set(body) == {"NeutronError"} and set(body["NeutronError"]) == {"type", "message", "detail"}, body
    return str(body["NeutronError"]["type"])


# --- Versions and errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/network", "/network/"])
def test_anybody_reads_the_versions(doors: Doors, path: str) -> None:
    (version,) = doors.client.get(path).get_json()["versions"]
    assert (version["id"], version["status"]) == ("v2.0", "CURRENT")
    assert doors.client.get("/network/v2.0").status_code == doors.client.get("/network/v2.0/").status_code == 200


def test_links_keep_the_path_that_a_proxy_serves_the_api_under(doors: Doors) -> None:
    answer = doors.client.get("/network/v2.0/", base_url="http://cloud/my_api")
    links = {row["name"]: row["links"][0]["href"] for row in answer.get_json()["resources"]}
    assert links["security_group"] == "http://cloud/my_api/network/v2.0/security-groups"


def test_without_a_token_nothing_is_told(doors: Doors) -> None:
    assert doors.client.get("/network/v2.0/networks").status_code == 401


def test_unknown_paths_and_methods(doors: Doors) -> None:
    assert error_of(doors.member.get("/nosuch", 404)) == "HTTPNotFound"
    assert error_of(doors.member.delete("/security-groups", 405)) == "MethodNotAllowed"
    answer = doors.member.ask("GET", "/networks")
    assert answer.headers["X-OpenStack-Request-Id"].startswith("req-")


# --- Networks, subnets, ports ---------------------------------------------------------------------------------------


def test_networks_are_public_or_own(cloud: Cloud, doors: Doors) -> None:
    public = cloud.network("private", "10.20.0.0/24")
    own = cloud.network("mine", "10.21.0.0/24", owner=doors.project)
    cloud.network("theirs", "10.22.0.0/24", owner=doors.other)
    pool = make_pool(cloud)
    network_by_name = {network["name"]: network for network in doors.member.get("/networks")["networks"]}
    assert set(network_by_name) == {"private", "mine", "public"}
    assert network_by_name["private"]["shared"] and not network_by_name["mine"]["shared"]
    assert network_by_name["public"]["router:external"] and not network_by_name["private"]["router:external"]
    assert network_by_name["private"]["subnets"] == [str(uuid.uuid5(uuid.UUID(public.uuid), "IPv4"))]
    assert doors.member.get("/networks/private", 404)["NeutronError"]["type"] == "NetworkNotFound"
    (named,) = doors.member.get("/networks?name=private")["networks"]
    assert doors.member.get(f"/networks/{named['id']}")["network"] == named
    assert doors.member.get(f"/networks/{pool}")["network"]["name"] == "public"
    doors.stranger.get(f"/networks/{own.uuid}", 404)
    assert "provider:network_type" not in named
    assert doors.admin.get(f"/networks/{public.uuid}")["network"]["provider:network_type"] == "flat"
    assert [network["name"] for network in doors.member.get("/networks?router:external=True")["networks"]] == ["public"]


def test_subnets_are_a_networks_families(cloud: Cloud, doors: Doors) -> None:
    both = cloud.network("both", "10.20.0.0/29", cidr_v6="fd00:1::/64", dns=["10.20.0.2", "fd00:1::53"])
    with transaction(cloud.engine) as connection:
        change_address(connection, "10.20.0.3", reserved="user")
    four, six = doors.member.get(f"/subnets?network_id={both.uuid}&sort_key=ip_version")["subnets"]
    assert four["allocation_pools"] == [
        {"start": "10.20.0.1", "end": "10.20.0.2"},
        {"start": "10.20.0.4", "end": "10.20.0.6"},
    ]
    assert (four["ip_version"], four["cidr"], four["dns_nameservers"]) == (4, "10.20.0.0/29", ["10.20.0.2"])
    assert (six["ip_version"], six["ipv6_ra_mode"], six["dns_nameservers"]) == (6, "slaac", ["fd00:1::53"])
    assert doors.member.get(f"/subnets/{six['id']}")["subnet"] == six
    assert doors.member.get("/networks")["networks"][0]["subnets"] == [four["id"], six["id"]]


def test_ports_are_the_interfaces_of_the_projects_servers(cloud: Cloud, doors: Doors) -> None:
    net = cloud.network("private", "10.20.0.0/24")
    number, group = doors.group("web")
    mine = cloud.instance(doors.project, "a", cloud.host("hv1"), [(net, "10.20.0.5")], groups=[number], power_state=1)
    cloud.instance(doors.other, "b", "hv1", [(net, "10.20.0.6")])
    (port,) = doors.member.get("/ports")["ports"]
    assert port["device_id"] == mine and port["status"] == "ACTIVE" and port["security_groups"] == [group]
    assert port["fixed_ips"] == [{"subnet_id": subnet_records.derived_id(net.uuid, 4), "ip_address": "10.20.0.5"}]
    assert doors.member.get(f"/ports?device_id={mine}")["ports"] == [port]
    assert doors.member.get(f"/ports?fixed_ips=ip_address%3D10.20.0.5&network_id={net.uuid}")["ports"] == [port]
    assert doors.member.get("/ports?fixed_ips=ip_address%3D10.20.0.9")["ports"] == []
    assert "binding:host_id" not in port
    assert doors.admin.get(f"/ports/{port['id']}")["port"]["binding:host_id"] == "hv1"
    doors.stranger.get(f"/ports/{port['id']}", 404)


def test_what_the_operator_made_is_refused_with_a_reason(cloud: Cloud, doors: Doors) -> None:
    net = cloud.network("private", "10.20.0.0/24")
    own = cloud.network("mine", "10.21.0.0/24", owner=doors.project)
    pool = make_pool(cloud)
    for number in (net.uuid, own.uuid, pool):
        change = {"network": {"name": "x"}}
        assert error_of(doors.member.put(f"/networks/{number}", change, 403)) == "PolicyNotAuthorized"
        assert error_of(doors.member.delete(f"/networks/{number}", 403)) == "PolicyNotAuthorized"
        subnet = subnet_records.derived_id(number, 4)
        assert error_of(doors.member.put(f"/subnets/{subnet}", {"subnet": {"name": "x"}}, 403)) == "PolicyNotAuthorized"
        assert error_of(doors.member.delete(f"/subnets/{subnet}", 403)) == "PolicyNotAuthorized"
        doors.member.put(f"/networks/{number}/tags/red", None, 403)


@pytest.mark.parametrize("plural", ["networks", "subnets", "ports", "routers"])
def test_what_is_not_there_cannot_be_changed(doors: Doors, plural: str) -> None:
    doors.member.put(f"/{plural}/{NOWHERE}", {plural[:-1]: {"name": "x"}}, 404)
    doors.member.delete(f"/{plural}/{NOWHERE}", 404)


# --- Lists ----------------------------------------------------------------------------------------------------------


def test_fields_sorting_and_pages(doors: Doors) -> None:
    for name in ("b", "c", "a"):
        doors.group(name)
    path = "/security-groups?fields=name&sort_key=name&sort_dir=desc"
    assert doors.member.get(path)["security_groups"] == [{"name": name} for name in ("default", "c", "b", "a")]
    names, href = [], "/security-groups?limit=3&sort_key=name&fields=name&fields=id"
    while href:
        page = doors.member.get(href)
        names += [group["name"] for group in page["security_groups"]]
        links = {link["rel"]: link["href"] for link in page.get("security_groups_links", [])}
        href = links.get("next", "").partition("/network/v2.0")[2]
    assert names == ["a", "b", "c", "default"]
    last = doors.member.get("/security-groups?sort_key=name")["security_groups"][-1]["id"]
    back = doors.member.get(f"/security-groups?limit=2&sort_key=name&page_reverse=True&marker={last}")
    assert [group["name"] for group in back["security_groups"]] == ["b", "c"]


@pytest.mark.parametrize(
    "query",
    [
        "colour=red",
        f"marker={NOWHERE}",
        "limit=many",
        "limit=-5",
        "sort_key=colour",
        "sort_key=name&sort_dir=up",
        "sort_dir=asc",
    ],
)
def test_a_query_that_means_nothing_is_refused(doors: Doors, query: str) -> None:
    doors.member.get(f"/security-groups?{query}", 400)


def rule_body(group: str, **more: t.Any) -> dict[str, t.Any]:
    return {"security_group_rule": {"security_group_id": group, "direction": "ingress", **more}}


def test_quotas_hold(cloud: Cloud, doors: Doors) -> None:
    cloud.insert(tables.quota, project_id=doors.project, resource="security_groups", hard_limit=1)
    make_group(doors)
    assert error_of(doors.member.post("/security-groups", {"security_group": {"name": "b"}}, 409)) == "OverQuota"
    limits = doors.member.get(f"/quotas/{doors.project}")["quota"]
    assert (limits["security_group"], limits["floatingip"], limits["port"]) == (1, 10, 500)
    details = doors.member.get(f"/quotas/{doors.project}/details.json")["quota"]
    assert details["security_group"] == {"limit": 1, "used": 1, "reserved": 0}
    doors.member.get(f"/quotas/{doors.other}", 404)
    doors.member.put(f"/quotas/{doors.project}", {"quota": {"security_group": 5}}, 403)
    assert doors.admin.put(f"/quotas/{doors.other}", {"quota": {"security_group": 4}})["quota"]["security_group"] == 4
    assert doors.admin.put("/quotas/alt", {"quota": {"security_group": 5}})["quota"]["security_group"] == 5
    assert doors.admin.get(f"/quotas/{doors.other}")["quota"] == doors.admin.get("/quotas/alt")["quota"]
    listed = {limits["project_id"]: limits for limits in doors.admin.get("/quotas")["quotas"]}
    assert {project: limits["security_group"] for project, limits in listed.items()} == {
        doors.project: 1,
        doors.other: 5,
    }
    doors.member.get("/quotas", 403)
    doors.member.get("/quotas/alt", 404)
    # of what there is none a limit is kept
    assert doors.admin.put(f"/quotas/{doors.other}", {"quota": {"rbac_policy": 0}})["quota"]["rbac_policy"] == 0
    doors.admin.put(f"/quotas/{doors.other}", {"quota": {"trunk": 5}}, 400)
    doors.admin.delete(f"/quotas/{doors.other}", 204)
    assert doors.admin.get(f"/quotas/{doors.other}")["quota"]["security_group"] == 10
    assert doors.admin.get(f"/quotas/{doors.other}")["quota"]["rbac_policy"] == -1
    doors.admin.get(f"/quotas/{uuid.uuid4().hex}", 404)


def test_readers_change_nothing(doors: Doors) -> None:
    group = make_group(doors)["id"]
    for method, path, body in (
        ("POST", "/security-groups", {"security_group": {"name": "x"}}),
        ("PUT", f"/security-groups/{group}", {"security_group": {"name": "x"}}),
        ("DELETE", f"/security-groups/{group}", None),
        ("POST", "/security-group-rules", rule_body(group)),
        ("POST", "/floatingips", {"floatingip": {"floating_network_id": NOWHERE}}),
    ):
        answer = doors.reader.ask(method, path, body)
        assert answer.status_code == 403 and error_of(answer.get_json()) == "PolicyNotAuthorized", path


# --- Floating IPs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def served(cloud: Cloud, doors: Doors) -> tuple[str, str]:
    """A pool's network, and the port of a server."""
    net = cloud.network("private", "10.20.0.0/24")
    cloud.instance(doors.project, "a", cloud.host("hv1"), [(net, "10.20.0.5")])
    return make_pool(cloud), str(doors.member.get("/ports")["ports"][0]["id"])


def test_a_floating_ip_comes_leads_and_goes(doors: Doors, served: tuple[str, str]) -> None:
    pool, port = served
    body = {"floatingip": {"floating_network_id": pool}}
    first = doors.member.post("/floatingips", body, 201)["floatingip"]
    second = doors.member.post("/floatingips", body, 201)["floatingip"]
    assert first["floating_ip_address"] != second["floating_ip_address"], "each request is for one more"
    assert (first["status"], first["port_id"], first["fixed_ip_address"]) == ("DOWN", None, None)
    assert not doors.jobs()
    path = f"/floatingips/{first['id']}"
    led = doors.member.put(path, {"floatingip": {"port_id": port}})["floatingip"]
    assert (led["status"], led["port_id"], led["fixed_ip_address"]) == ("ACTIVE", port, "10.20.0.5")
    (job,) = doors.jobs()
    assert job["kind"] == "floating_ips"
    assert job["variables"] == {"project": "demo", "network_hosts": ["hv1"], "holders": ["hv1"]}
    doors.member.put(path, {"floatingip": {"port_id": port}})
    assert len(doors.jobs()) == 1, "nothing changed"
    taken = doors.member.put(f"/floatingips/{second['id']}", {"floatingip": {"port_id": port}}, 409)
    assert error_of(taken) == "FloatingIPPortAlreadyAssociated"
    assert [f["id"] for f in doors.member.get(f"/floatingips?port_id={port}")["floatingips"]] == [first["id"]]
    doors.member.put(path, {"floatingip": {"port_id": None}})
    assert doors.jobs()[1]["variables"] == {"project": "demo", "network_hosts": ["hv1"], "holders": []}
    doors.stranger.get(path, 404)
    doors.stranger.delete(path, 404)
    doors.member.delete(path, 204)
    doors.member.delete(path, 404)
    assert [f["id"] for f in doors.member.get("/floatingips")["floatingips"]] == [second["id"]]


def test_a_floating_ip_with_a_port_at_once(doors: Doors, served: tuple[str, str]) -> None:
    pool, port = served
    floating_ip_body = {"floating_network_id": pool, "port_id": port, "floating_ip_address": "203.0.113.9"}
    doors.member.post("/floatingips", {"floatingip": floating_ip_body}, 403)  # to choose one is an administrator's
    of_member = {**floating_ip_body, "project_id": doors.project}
    floating_ip = doors.admin.post("/floatingips", {"floatingip": of_member}, 201)["floatingip"]
    assert (floating_ip["floating_ip_address"], floating_ip["port_id"]) == ("203.0.113.9", port)
    doors.member.post("/floatingips", {"floatingip": {**floating_ip_body, "port_id": None}}, 409)
    doors.stranger.post("/floatingips", {"floatingip": {**floating_ip_body, "port_id": None}}, 403)
    doors.member.delete(f"/floatingips/{floating_ip['id']}", 204)
    assert [job["variables"]["holders"] for job in doors.jobs()] == [["hv1"], []]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"floating_network_id": NOWHERE}, 404),
        ({"floating_network_id": "public"}, 400),
        ({"port_id": NOWHERE}, 404),
        ({"fixed_ip_address": "10.20.0.5"}, 400),
        ({"floating_ip_address": "198.51.100.1"}, 404),
        ({"floating_ip_address": "nonsense"}, 400),
        ({"project_id": "0" * 32}, 403),
    ],
)
def test_floating_ips_that_cannot_be(
    doors: Doors, served: tuple[str, str], more: dict[str, t.Any], status: int
) -> None:
    doors.member.post("/floatingips", {"floatingip": {"floating_network_id": served[0], **more}}, status)
    assert doors.member.get("/floatingips")["floatingips"] == []


# --- The rest -------------------------------------------------------------------------------------------------------


def test_extensions_and_zones(doors: Doors) -> None:
    aliases = {extension["alias"] for extension in doors.member.get("/extensions")["extensions"]}
    assert {"security-group", "router", "quotas"} <= aliases and "trunk" not in aliases
    doors.member.get("/extensions/security-group")
    doors.member.get("/extensions/trunk", 404)
    assert doors.member.get("/availability_zones?resource=network")["availability_zones"] == [
        {"name": "nova", "resource": "network", "state": "available"}
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.sampled_from(
    [
        "name",
        "description",
        "security_group_id",
        "direction",
        "protocol",
        "ethertype",
        "port_range_min",
        "port_range_max",
        "remote_ip_prefix",
        "remote_group_id",
        "floating_network_id",
        "port_id",
        "fixed_ip_address",
        "floating_ip_address",
        "tags",
        "floatingip",
        "stateful",
    ]
)
VALUES = JSON | st.sampled_from(["ingress", "egress", "tcp", "icmp", "IPv4", "10.0.0.0/8", "80", NOWHERE])


@settings(max_examples=part_of(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["/security-groups", "/security-group-rules", "/floatingips", "/networks", "/quotas/x"]),
    st.sampled_from(["POST", "PUT"]),
    st.dictionaries(ATTRIBUTES, VALUES, max_size=5),
    JSON,
)
def test_no_body_is_answered_with_5xx(
    doors: Doors, path: str, method: str, inner: dict[str, t.Any], junk: t.Any
) -> None:
    group = doors.rows(tables.security_group)[:1]
    known = {"security_group_id": group[0]["uuid"]} if group else {}
    for body in ({path[1:-1].replace("-", "_"): {**known, **inner}}, {"security_group": inner}, junk):
        answer = doors.admin.ask(method, path, body)
        assert answer.status_code < 500, (path, body, answer.get_data(as_text=True))


@settings(max_examples=part_of(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["networks", "subnets", "ports", "security-groups", "security-group-rules", "floatingips"]),
    st.dictionaries(
        st.sampled_from(["limit", "marker", "sort_key", "sort_dir", "fields", "name", "fixed_ips", "page_reverse"]),
        st.text(max_size=12) | st.sampled_from(["id", "name", "fixed_ips", "asc", "1", "ip_address=1"]),
    ),
    st.text(max_size=20),
)
def test_no_query_is_answered_with_5xx(doors: Doors, plural: str, query: dict[str, str], number: str) -> None:
    asked = doors.client.get(f"{doors.base}/{plural}", query_string=query, headers=doors.admin.headers)
    assert asked.status_code < 500, (plural, query, asked.get_data(as_text=True))
    shown = doors.client.get(f"{doors.base}/{plural}/{number}", headers=doors.admin.headers)
    assert shown.status_code < 500


def test_a_token_that_ran_out_is_refused(cloud: Cloud, doors: Doors) -> None:
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_identity import token

    cloud.write(token.update().values(expires_at=time.time() - 1))
    doors.member.get("/networks", 401)
