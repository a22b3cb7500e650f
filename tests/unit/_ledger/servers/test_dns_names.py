# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""On a network that projects share, a name leads to the server that had it first, and to no other."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import threading
import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import new_servers, server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    HEAD,
    move_to_revision,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import dns_names
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import host_networks
from ansible_collections.novalite.cloud.plugins.module_utils._plan.networks import dhcp_networks
from tests.support.cloud import Cloud, sqlite
from tests.support.former import make_former
from tests.support.rows import DEMO, OTHER

PROJECTS = {"demo": DEMO, "other": OTHER}
NAMES = ["web", "db", "wpad", "isatap", "localhost", "gateway", "metadata", "host-10-20-0-3"]
names = st.sampled_from(["web", "db", *NAMES])
STEPS = st.one_of(
    st.tuples(st.just("playbook"), st.sampled_from(sorted(PROJECTS)), names, st.none() | names),
    st.tuples(st.just("api"), st.sampled_from(sorted(PROJECTS)), names, st.none() | names),
    st.tuples(st.just("rename"), st.integers(0, 9), names),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("leave"), st.integers(0, 9)),
)


def create(cloud: Cloud, project: str, name: str, hostname: str | None = None) -> str:
    """A server as the API makes it. Returns its UUID."""
    with transaction(cloud.engine) as connection:
        image = connection.execute(sa.select(tables.image.c.id).where(tables.image.c.name == "ami-tiny")).scalar_one()
        request = new_servers.CreateRequest(name, "1", image, hostname=hostname or "")
        (uuid,) = new_servers.create(connection, PROJECTS[project], request, request_id="req-1").uuids
    return uuid


def from_playbook(cloud: Cloud, project: str, name: str, hostname: str | None = None) -> str:
    server = {"name": name, "flavor": "m1.nano", "image": "ami-tiny", "networks": ["private"], "hostname": hostname}
    result = cloud.server(server, project=project)
    (made,) = result["to_build"]
    warning = f"server '{made['hostname']}' has no name in the DNS of network 'private'"
    warned = any(warning in text for text in result.get("warnings", ()))
    assert warned == (made["nics"][0]["dns_name"] is None)
    return str(made["uuid"])


def the_server(cloud: Cloud, uuid: str) -> t.Any:
    with transaction(cloud.engine) as connection:
        return instances_by(connection, uuids=[uuid])[0]


def rename(cloud: Cloud, uuid: str, hostname: str) -> None:
    with transaction(cloud.engine) as connection:
        row = server_listing.instance_row(connection, uuid, None)
        server_changes.change(connection, row, {"hostname": hostname})


def shown(cloud: Cloud) -> tuple[dict[str, set[str]], dict[str, str]]:
    """The names of the network as its DHCP servers get them, for their own guests and for those of other hosts."""
    here: dict[str, set[str]] = {}
    with transaction(cloud.engine) as connection:
        instances = instances_by(connection)
        for instance in instances:
            for nic in instance["nics"]:
                nic["dhcp_server"] = nic["dhcp_server"] or "10.20.0.14"
        for server in dhcp_networks(instances):
            for host in server["hosts"]:
                here.setdefault(host["hostname"], set()).add(host["uuid"])
        elsewhere = {
            uuid: name["hostname"]
            for of_hosts in host_networks.guests(connection, [1]).values()
            for entries in of_hosts.values()
            for uuid, name in entries
        }
    return here, elsewhere


def made(cloud: Cloud, step: tuple[t.Any, ...], servers: list[str], owners: dict[str, str]) -> None:
    """Do one step, and the same to `owners`, a model of the names."""
    by_uuid = {uuid: name for name, uuid in owners.items()}

    def is_refused(name: str, uuid: str | None = None) -> bool:
        return dns_names.is_nobodys(name) or owners.get(name, uuid) != uuid

    if step[0] in ("playbook", "api"):
        door = from_playbook if step[0] == "playbook" else create
        try:
            uuid = door(cloud, *step[1:])
        except NovaliteError:
            # a playbook's names are handles, one of a kind in a project
            assert step[0] == "playbook" or is_refused(step[3])
            return
        hostname = the_server(cloud, uuid)["hostname"]
        servers.append(uuid)
        if not is_refused(hostname):
            owners[hostname] = uuid
        else:
            assert step[3] is None
    elif step[1] < len(servers):
        uuid = servers[step[1]]
        if step[0] == "rename":
            before = the_server(cloud, uuid)["hostname"]
            is_on_network = bool(the_server(cloud, uuid)["nics"])
            try:
                rename(cloud, uuid, step[2])
            except NovaliteError:
                assert is_refused(step[2], uuid) and the_server(cloud, uuid)["hostname"] == before
                return
            if step[2] != before and is_on_network:
                assert not is_refused(step[2])
                owners.pop(by_uuid.get(uuid, ""), None)
                owners[step[2]] = uuid
            return
        owners.pop(by_uuid.get(uuid, ""), None)
        if step[0] == "delete":
            cloud.delete(uuid)
            servers.remove(uuid)
        else:
            cloud.write(sa.delete(tables.vif).where(tables.vif.c.instance_uuid == uuid))


@given(steps=st.lists(STEPS, min_size=1, max_size=9))
def test_a_name_is_the_first_owners(seeded: pathlib.Path, steps: list[tuple[t.Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        shutil.copy(seeded, home)
        cloud = Cloud(sqlite(pathlib.Path(home)))
        servers: list[str] = []
        owners: dict[str, str] = {}
        for step in steps:
            made(cloud, step, servers, owners)
            for uuid in servers:
                info = the_server(cloud, uuid)
                if info["host"] is None and info["nics"]:
                    cloud.place(uuid, f"hv{servers.index(uuid) % 3 + 1}")
            here, elsewhere = shown(cloud)
            assert all(len(uuids) == 1 for uuids in here.values()), here
            known = {name: uuid for name, (uuid,) in here.items()}
            assert elsewhere == {uuid: name for name, uuid in known.items()}
            assert {name: uuid for name, uuid in known.items() if not name.startswith("host-")} == owners
            assert not known.keys() & dns_names.NOBODYS
        cloud.close()


@pytest.mark.parametrize("name", sorted(dns_names.NOBODYS))
def test_what_is_nobodys_is_refused_where_it_was_chosen(cloud: Cloud, name: str) -> None:
    with pytest.raises(NovaliteError, match=f"hostname '{name}' is not given to a server: choose another"):
        create(cloud, "demo", "web", name)
    uuid = create(cloud, "demo", name)
    with pytest.raises(NovaliteError, match="is not given to a server"):
        rename(cloud, uuid, "wpad" if name != "wpad" else "isatap")


@pytest.mark.both_databases
def test_of_two_at_once_one_has_the_name(cloud: Cloud) -> None:
    outcomes: list[str] = []

    def make(project: str) -> None:
        try:
            outcomes.append(create(cloud, project, f"of-{project}", "web"))
        except ConflictError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=make, args=(project,)) for project in PROJECTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cloud.rows(sa.select(tables.dns_name).where(tables.dns_name.c.name == "web"))) == 1
    assert sum("hostname 'web' is another server's on network 'private'" in outcome for outcome in outcomes) == 1


@pytest.mark.both_databases
def test_the_first_one_has_it_in_a_ledger_from_before(cloud: Cloud) -> None:
    first, second, proxy = (
        create(cloud, project, name) for project, name in (("demo", "web"), ("other", "web"), ("other", "wpad"))
    )
    before = cloud.rows(sa.select(tables.dns_name))
    assert [row.instance_uuid for row in before] == [first] and second != proxy
    with cloud.engine.begin() as connection:
        make_former(connection, "0036")
    with cloud.engine.begin() as connection:
        move_to_revision(connection, HEAD)
    assert cloud.rows(sa.select(tables.dns_name)) == before
