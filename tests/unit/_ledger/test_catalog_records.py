# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records that the API shows beside servers: the same answers from both databases."""

from __future__ import annotations

import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import flavors, image_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import server_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import (
    flavor_records,
    image_views,
    keypair_records,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import accounting
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import (
    group_records,
    network_records,
    pool_records,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import (
    hypervisor_records,
    server_group_records,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules
from ansible_collections.novalite.cloud.plugins.module_utils._rules.listed_nouns import NOBODY
from tests.support.rows import DEMO, a_flavor, add_host, add_image, add_instance, add_network, add_vif, change_address


@pytest.fixture
def connection(ledger: sa.Engine) -> t.Iterator[sa.Connection]:
    with transaction(ledger) as opened:
        yield opened


def add_server(connection: sa.Connection, name: str, **values: t.Any) -> str:
    return add_instance(connection, name, flavor=a_flavor(vcpus=2), **values)


def test_hosts_zones_and_aggregates(connection: sa.Connection) -> None:
    # a host that nobody has asked for an hour is not down: nothing reports by itself here
    now = int(time.time())
    for name, zone, up in (("hv1", "nova", True), ("hv2", "edge", False)):
        add_host(connection, name, zone=zone, last_seen_at=now - 3600, up=up)
    connection.execute(sa.insert(tables.aggregate).values(name="ssd", zone=None, metadata={"a": "b"}))
    connection.execute(sa.insert(tables.aggregate_host).values(aggregate_id=1, host="hv1"))
    server = add_server(connection, "a", host="hv1")
    claim = {"instance_uuid": server, "compute_host_id": 1, "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "created_at": 0}
    connection.execute(sa.insert(tables.allocation).values(**claim))
    first, second = hypervisor_records.hosts(connection, counted=True)
    assert (first.running, first.state.up, second.running, second.state.up) == (1, True, 0, False)
    assert list(hypervisor_records.zones(connection)) == ["edge", "nova"]
    assert [each["uuid"] for each in hypervisor_records.servers_on(connection, ["hv1", "hv2"])["hv1"]] == [server]
    (ssd,) = hypervisor_records.aggregates(connection)
    assert (ssd.hosts, ssd.metadata) == (["hv1"], {"a": "b"})


def test_networks_interfaces_and_floating_ips(connection: sa.Connection) -> None:
    net = add_network(connection, "n", "10.0.0.0/30")
    add_vif(connection, add_server(connection, "a", host="hv1"), net["id"], id="v")
    change_address(connection, "10.0.0.1", owner="vif:v")
    connection.execute(sa.insert(tables.floating_pool).values(name="p", cidr="203.0.113.0/30", interface="eth0"))
    lead = {"id": "f", "pool": "p", "address": 3405803777, "project_id": DEMO, "vif_id": "v"}
    connection.execute(sa.insert(tables.floating_ip).values(**lead))
    (seen,) = network_records.networks_seen(connection, DEMO)
    assert seen.ranges == [("10.0.0.1", "10.0.0.2")]
    (nic,) = network_records.interfaces_of(connection, DEMO)
    assert (nic.ip, nic.host, nic.security_groups) == ("10.0.0.1", "hv1", [])
    (floating,) = network_records.floating_ips_of(connection, DEMO)
    assert (floating.address, floating.fixed_ip, floating.host) == ("203.0.113.1", "10.0.0.1", "hv1")
    assert network_records.floating_ips_of(connection, "e" * 32) == []
    assert pool_records.pools_seen(connection)[0].ranges == [("203.0.113.1", "203.0.113.1")]


def test_rules_one_by_one(connection: sa.Connection) -> None:
    uuid = group_rules.create_group(connection, DEMO, "web", "")
    tcp = {"direction": "egress", "protocol": "tcp", "port_min": 80}
    number, group = group_rules.add_rule(connection, DEMO, uuid, tcp)
    with pytest.raises(ConflictError, match=number):
        group_rules.add_rule(connection, DEMO, uuid, tcp)
    with pytest.raises(NotFoundError):
        group_rules.add_rule(connection, "e" * 32, uuid, tcp)
    (shown,) = group_records.groups_of(connection, DEMO)
    assert len(shown["rules"]) == 3, "what was open stays open"
    for rule in shown["rules"]:
        assert group_rules.delete_rule(connection, DEMO, rule["id"]) == group
    (shown,) = group_records.groups_of(connection, DEMO)
    assert shown["rules"] == []
    stored = connection.execute(sa.select(tables.security_group_rule.c.cidr)).scalars().all()
    assert stored == [NOBODY], "a group without egress rules would let everything out"
    assert not group_rules.instances_concerned(connection, group)
    connection.execute(sa.insert(tables.quota).values(project_id=DEMO, resource="security_group_rules", hard_limit=1))
    group_rules.add_rule(connection, DEMO, uuid, {"protocol": "tcp", "port_min": 1})
    with pytest.raises(QuotaError):
        group_rules.add_rule(connection, DEMO, uuid, {"protocol": "tcp", "port_min": 2})


def test_flavors_images_keys_and_groups(connection: sa.Connection) -> None:
    sizes = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap_mb": 0}
    for number, public in (("7", True), ("8", False)):
        record = {"flavorid": number, "name": f"f{number}", "is_public": public, "description": None, **sizes}
        flavors.create_flavor(connection, record)
    with pytest.raises(ConflictError):
        flavors.create_flavor(connection, record)
    assert [row["flavorid"] for row in flavor_records.flavors_seen(connection, private=False)] == ["7"]
    add_image(connection, "a", id="i", owner=DEMO)
    (before,) = image_views.images_seen(connection, DEMO)
    image_records.update_image(connection, before, {**before, "tags": ["x"], "name": "b"})
    (after,) = image_views.images_seen(connection, DEMO, "i")
    assert (after["tags"], after["name"], after["properties"]) == (["x"], "b", {})
    project = {"id": DEMO, "name": "demo"}
    group = server_groups.create_server_group(connection, project, "g", "affinity", None)
    with pytest.raises(ConflictError):
        server_groups.create_server_group(connection, project, "g", "affinity", None)
    member = add_server(connection, "a", launched_at=100, terminated_at=200)
    connection.execute(sa.insert(tables.server_group_member).values(instance_uuid=member, group_id=group))
    assert server_group_records.server_groups(connection, DEMO)[0].members == [member]
    assert keypair_records.keypairs_of(connection, DEMO, None) == []
    used = counts.used(connection, DEMO)
    assert (used["instances"], used["cores"], used["images"], used["server_groups"]) == (1, 2, 1, 1)
    assert [row["seconds"] for row in accounting.ran_between(connection, DEMO, 150, 400)] == [50]
