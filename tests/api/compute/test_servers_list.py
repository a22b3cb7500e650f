# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of servers: states, filters, order, pages."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._rules import server_status
from tests.api import seeds
from tests.api.compute.test_servers_shown import SERVERS, ClientAs, at, nic


def names(client: FlaskClient, query: str, version: str = "2.96") -> list[str]:
    answer = client.get(f"{SERVERS}?{query}", headers=at(version))
    assert answer.status_code == 200, answer.get_json()
    return [server["name"] for server in answer.get_json()["servers"]]


@pytest.mark.parametrize(
    ("vm_state", "task_state", "status"),
    [
        ("building", "spawning", "BUILD"),
        ("building", "deleting", "BUILD"),
        ("active", None, "ACTIVE"),
        ("active", "deleting", "ACTIVE"),
        ("active", "rebooting", "REBOOT"),
        ("active", "rebooting_hard", "HARD_REBOOT"),
        ("active", "powering-off", "ACTIVE"),
        ("stopped", None, "SHUTOFF"),
        ("stopped", "powering-on", "SHUTOFF"),
        ("stopped", "rebooting_hard", "HARD_REBOOT"),
        ("paused", None, "PAUSED"),
        ("suspended", None, "SUSPENDED"),
        ("error", None, "ERROR"),
        ("rescued", None, "RESCUE"),
        ("nonsense", None, "UNKNOWN"),
    ],
)
def test_states_have_their_status_and_can_be_found_by_it(
    api: seeds.Api, client_as: ClientAs, vm_state: str, task_state: str | None, status: str
) -> None:
    assert server_status.status_of(vm_state, task_state) == status
    api.instance("demo", "it", vm_state=vm_state, task_state=task_state)
    client = client_as("demo")
    if status != "UNKNOWN":
        assert names(client, f"status={status.lower()}") == ["it"]
    others = {"BUILD", "ACTIVE", "REBOOT", "HARD_REBOOT", "SHUTOFF", "PAUSED", "SUSPENDED", "ERROR"} - {status}
    assert names(client, "&".join(f"status={other}" for other in others)) == []
    assert names(client, "status=nosuch") == []


@pytest.fixture
def crowd(api: seeds.Api) -> dict[str, str]:
    """Servers of two projects, each made a second after the other."""
    made: dict[str, str] = {}
    servers: list[tuple[str, str, dict[str, t.Any]]] = [
        ("demo", "web-1", {"host": "hv1", "tags": ["a", "b"], "reservation_id": "r-1"}),
        ("demo", "web-2", {"host": "hv2", "tags": ["b"], "key_name": "test"}),
        ("demo", "db", {"display_name": "Data base", "vm_state": "stopped", "power_state": 4, "config_drive": True}),
        ("demo", "gone", {"vm_state": "deleted", "deleted": 99}),
        ("alt", "theirs", {"host": "hv1"}),
    ]
    for number, (project, name, values) in enumerate(servers):
        moment = 1_600_000_000 + number
        made[name] = api.instance(project, name, created_at=moment, updated_at=moment, **values)
    nic(api, made["web-1"], "10.20.0.11", "fd00::11", "fa:16:3e:00:00:11")
    nic(api, made["web-2"], "10.20.0.12", None, "fa:16:3e:00:00:12")
    return made


@pytest.mark.parametrize(
    ("query", "expected_names"),
    [
        ("", ["Data base", "web-2", "web-1"]),
        ("name=web", ["web-2", "web-1"]),
        ("name=^web-[2-9]$", ["web-2"]),
        ("name=data", []),
        ("name=" + "(a%2B)%2B%24" * 10, []),
        ("ip=10.20.0.1", ["web-2", "web-1"]),
        ("ip=10.20.0.12", ["web-2"]),
        ("ip6=fd00", ["web-1"]),
        ("ip=nosuch&ip6=fd00", ["web-1"]),
        ("tags=a,b", ["web-1"]),
        ("tags=b", ["web-2", "web-1"]),
        ("tags-any=a,c", ["web-1"]),
        ("not-tags=a", ["Data base", "web-2"]),
        ("not-tags-any=a,b", ["Data base"]),
        ("key_name=test", ["web-2"]),
        ("reservation_id=r-1", ["web-1"]),
        ("vm_state=stopped", ["Data base"]),
        ("power_state=4", ["Data base"]),
        ("power_state=99999999999999999", []),
        ("config_drive=true", ["Data base"]),
        ("task_state=None", ["Data base", "web-2", "web-1"]),
        ("host=hv1", ["Data base", "web-2", "web-1"]),  # not a member's to ask
        ("availability_zone=nova", ["web-2", "web-1"]),
        ("availability_zone=mars", []),
        ("flavor=2", ["Data base", "web-2", "web-1"]),
        ("flavor=1", []),
        (f"image=http://x/images/{seeds.IMAGE_ID}", ["Data base", "web-2", "web-1"]),
        ("image=nosuch", []),
        ("deleted=True", ["Data base", "web-2", "web-1"]),  # neither
        ("changes-since=2020-09-13T12:26:42Z", ["gone", "Data base"]),
        ("changes-since=2020-09-13T14:26:42+02:00", ["gone", "Data base"]),
        ("changes-before=2020-09-13T12:26:40Z", ["web-1"]),
        ("sort_key=display_name&sort_dir=asc", ["Data base", "web-1", "web-2"]),
        ("sort_key=vm_state&sort_dir=desc&sort_key=created_at&sort_dir=asc", ["Data base", "web-1", "web-2"]),
        ("sort_key=key_name&sort_dir=asc", ["web-1", "Data base", "web-2"]),
        ("limit=0", []),
    ],
)
def test_filters(crowd: dict[str, str], client_as: ClientAs, query: str, expected_names: list[str]) -> None:
    assert names(client_as("demo"), query) == expected_names


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "limit=-1",
        "limit=1.5",
        "marker=nosuch",
        "sort_key=nosuch",
        "sort_dir=up",
        "changes-since=yesterday",
        "sort_key=host",
        "sort_dir=asc&sort_dir=asc",
        "config_drive=perhaps",
        "name=" + "a" * 300,
        "changes-since=9999-99-99T00:00:00Z",
        "power_state=x",
        "limit=" + "9" * 40,
    ],
)
def test_queries_that_cannot_be(crowd: dict[str, str], client_as: ClientAs, query: str) -> None:
    assert client_as("demo").get(f"{SERVERS}?{query}", headers=at("2.96")).status_code == 400


def test_what_administrators_may_ask(crowd: dict[str, str], api: seeds.Api, client_as: ClientAs) -> None:
    admin, member = client_as("admin"), client_as("demo")
    assert names(admin, "") == ["Data base", "web-2", "web-1"]
    assert names(admin, "all_tenants=1") == ["theirs", "Data base", "web-2", "web-1"]
    assert names(admin, "all_tenants") == ["theirs", "Data base", "web-2", "web-1"]
    assert names(admin, "all_tenants=True&host=hv1") == ["theirs", "web-1"]
    assert names(admin, f"all_tenants=True&project_id={api.projects['alt']}") == ["theirs"]
    assert names(admin, "deleted=True") == ["gone"]
    assert names(admin, "status=DELETED") == ["gone"]
    assert names(admin, "sort_key=host&sort_dir=desc&host=hv2") == ["web-2"]
    for query in ("all_tenants=1", "status=deleted"):
        assert member.get(f"{SERVERS}?{query}").status_code == 403
    assert names(member, "all_tenants=0") == ["Data base", "web-2", "web-1"]


@pytest.mark.parametrize(
    "sort", ["", "sort_key=display_name&sort_dir=asc&", "sort_key=key_name&", "sort_key=vm_state&sort_dir=asc&"]
)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_pages_hold_everything_once(crowd: dict[str, str], client_as: ClientAs, sort: str, size: int) -> None:
    client = client_as("demo")
    whole = names(client, sort)
    url, server_names, pages = f"{SERVERS}?{sort}limit={size}", [], 0
    while url:
        body = client.get(url).get_json()
        assert len(body["servers"]) <= size
        server_names += [server["name"] for server in body["servers"]]
        url = body["servers_links"][0]["href"] if "servers_links" in body else ""
        pages += 1
    assert (server_names, pages) == (whole, 3 // size + 1)


def test_a_foreign_marker_is_none(crowd: dict[str, str], client_as: ClientAs) -> None:
    answer = client_as("demo").get(f"{SERVERS}?marker={crowd['theirs']}")
    assert answer.status_code == 400
    assert answer.get_json()["badRequest"]["message"] == f"marker [{crowd['theirs']}] not found"


def test_a_list_is_read_in_batches(api: seeds.Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        api.instance("demo", f"b{number}", host="hv1")
    with reading(api.engine) as connection:
        numbers = server_listing.find(connection, server_listing.Query())
        whole = server_listing.load(connection, numbers)
        monkeypatch.setattr(server_listing, "BATCH", 3)
        assert server_listing.load(connection, numbers) == whole
    assert [record["id"] for record in whole] == numbers and len(numbers) >= 7


def test_lists_take_the_same_queries_for_one_and_for_many(api: seeds.Api, client_as: ClientAs) -> None:
    client = client_as("demo")
    counts: list[int] = []
    statements: list[str] = []
    sa.event.listen(api.engine, "before_cursor_execute", lambda _c, _cu, text, *_rest: statements.append(text))
    for round_ in range(2):
        for number in range(4):
            server = api.instance("demo", f"s{round_}{number}", host="hv1")
            nic(api, server, None, None, f"fa:16:3e:00:{round_:02}:{number:02}")
        statements.clear()
        assert len(client.get(f"{SERVERS}/detail").get_json()["servers"]) == 4 * (len(counts) + 1)
        counts.append(len([statement for statement in statements if statement.lstrip().upper().startswith("SELECT")]))
    # two of them are for what a token gives; further addresses of ports are one, and the zones of aggregates
    assert counts[0] == counts[1] <= 11
