# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits that were lowered below what a project has: it changes and gives back what it has, and gets no more."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import port_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.quotas import DEFAULTS, write_quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import (
    routers,
    subnet_pools,
    tenant_networks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    Port,
    network_of,
    networks_seen,
    ports_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.router_records import routers_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_pool_records import (
    subnet_pools_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_transfers, volumes
from tests.support.cloud import Cloud
from tests.support.rows import DEMO
from tests.unit._ledger.conftest import on_sqlite
from tests.unit._ledger.test_keypairs import GOOD

NAMES = "abc"  # three that there are, with a limit of one


@dataclasses.dataclass
class Noun:
    """A quota: what makes one more that it counts, and what changes, or gives back, some of what there is."""

    more: t.Callable[[str], object]
    less: t.Callable[[], object]


class Project:
    """The project `demo`, and its nouns that have quotas."""

    def __init__(self, cloud: Cloud, directory: pathlib.Path) -> None:
        self.cloud, self.directory = cloud, directory

    def within(self, function: t.Callable[..., t.Any], *args: t.Any, **more: t.Any) -> t.Any:
        with transaction(self.cloud.engine) as connection:
            return function(connection, *args, **more)

    def named(self, module: str, kind: str, change: dict[str, t.Any], **values: t.Any) -> Noun:
        def write(name: str, **more: t.Any) -> object:
            items: dict[str, t.Any] = {kind: [{"name": name, **values, **more}]}
            return self.cloud.run(module, project="demo", **items)

        return Noun(write, lambda: write("a", **change))

    def key_pairs(self) -> Noun:
        return self.named("keypair", "keypairs", {"public_key": GOOD[1]}, public_key=GOOD[0])

    def security_groups(self) -> Noun:
        return self.named("security_group", "security_groups", {"description": "other"})

    def security_group_rules(self) -> Noun:
        def write(*ports: int) -> object:
            rules = [{"protocol": "tcp", "port_min": port, "port_max": port, "cidr": "0.0.0.0/0"} for port in ports]
            return self.cloud.run("security_group", project="demo", security_groups=[{"name": "web", "rules": rules}])

        def less() -> None:
            write(1, 2, 4)
            write(1, 5)

        return Noun(lambda name: write(*range(1, NAMES.find(name) % 4 + 2)), less)

    def server_groups(self) -> Noun:
        return self.named("server_group", "server_groups", {"policy": "affinity"}, policy="anti-affinity")

    def images(self) -> Noun:
        disk = self.directory / "disk.raw"
        disk.write_bytes((bytes(510) + b"\x55\xaa") * 2048)
        source = {"source": str(disk), "disk_format": "raw"}
        return self.named("image", "images", {"min_disk_gb": 1}, **source)

    def networks(self) -> Noun:
        def more(name: str) -> object:
            how = tenant_networks.Carrier()
            return self.within(tenant_networks.create_network, DEMO, {"name": name}, how)

        def less() -> None:
            row = self.within(networks_seen, DEMO, bare=True)[0]
            self.within(tenant_networks.update_network, row, {"name": "other"})

        return Noun(more, less)

    def routers(self) -> Noun:
        def less() -> None:
            row = self.within(routers_of, DEMO)[0]
            self.within(routers.update_router, row, {"name": "other", "pool": None})

        return Noun(lambda name: self.within(routers.create_router, DEMO, {"name": name}), less)

    def subnet_pools(self) -> Noun:
        def more(name: str) -> object:
            attributes = {"name": name, "prefixes": ["10.66.0.0/16"]}
            return self.within(subnet_pools.create_subnet_pool, DEMO, attributes)

        def less() -> None:
            row = self.within(subnet_pools_seen, DEMO)[0]
            self.within(subnet_pools.update_subnet_pool, row, {"prefixes": ["10.66.0.0/16", "10.67.0.0/16"]})

        return Noun(more, less)

    def port(self) -> Port:
        """The one port of the project: a server's."""
        if not self.within(ports_of, DEMO):
            network = self.cloud.network()
            self.cloud.instance(DEMO, "web", self.cloud.host(), [(network, "10.20.0.5")], vm_state="active")
        return t.cast("Port", self.within(ports_of, DEMO)[0])

    def fixed_ips(self) -> Noun:
        def less() -> None:
            self.within(port_changes.change_fixed_ips, self.port(), going=self.port().more_ips[:1])
            port = self.port()
            fixed_ips = [{"ip_address": port.ip}, {"ip_address": "10.20.0.99"}]
            self.within(
                lambda connection: port_changes.update_port(
                    connection, network_of(connection, port), port, {"fixed_ips": fixed_ips}
                )
            )

        return Noun(lambda _name: self.within(port_changes.change_fixed_ips, self.port(), [{"ip_version": 4}]), less)

    def floating_ips(self) -> Noun:
        pool = {"name": "public", "cidr": "198.51.100.0/28", "interface": "eth0"}
        self.cloud.run("floating_pool", floating_pools=[pool])
        self.port()

        def write(**item: t.Any) -> t.Any:
            return self.cloud.run("floating_ip", project="demo", floating_ips=[item])

        def less() -> None:
            address = self.cloud.rows(
                sa.select(tables.floating_ip.c.address).where(tables.floating_ip.c.project_id == DEMO)
            )
            text = write(address=None, server="web")["floating_ips"][0]["address"]
            assert len(address) == len(NAMES)
            assert write(address=text, server="")["changed"]

        new = {name: f"198.51.100.{number}" for number, name in enumerate([*NAMES, "d"], 1)}
        return Noun(lambda name: write(address=new[name]), less)

    def volume(self, name: str) -> t.Any:
        return self.within(volumes.create_volume, DEMO, {"name": name, "size_gb": 1})

    def given_to_itself(self) -> None:
        row = self.within(volume_views.volumes_by, project_id=DEMO)[0]
        offer, key = self.within(volume_transfers.offer, row.id)
        self.within(volume_transfers.accept, offer.id, key, DEMO, None)

    def volumes(self) -> Noun:
        def less() -> None:
            self.given_to_itself()
            row = self.within(volume_views.volumes_by, project_id=DEMO)[0]
            self.within(volumes.begin_extend, row.id, 2, request_id="req-1")

        return Noun(self.volume, less)

    def gigabytes(self) -> Noun:
        return Noun(self.volume, self.given_to_itself)


NOUNS = sorted({name for name in vars(Project) if name in DEFAULTS})
# made, and gone, with no change between that a count is asked for; or bounded in a request, beside what there is
OTHERS = {
    *("instances", "cores", "ram", "server_snapshots", "server_group_members", "subnets", "ports", "snapshots"),
    *("backups", "backup_gigabytes", "image_size_total", "jobs", "groups", "rbac_policies", "per_volume_gigabytes"),
    *("metadata_items", "injected_files", "injected_file_content_bytes", "injected_file_path_length"),
}


def test_each_quota_is_looked_at_here() -> None:
    assert {*NOUNS} | OTHERS == {*DEFAULTS} and not OTHERS & {*NOUNS}


@on_sqlite
@pytest.mark.parametrize("resource", NOUNS)
def test_what_is_over_its_limit_changes_and_goes_and_gets_no_more(
    resource: str, ledger_url: str, ledger: sa.Engine, tmp_path: pathlib.Path
) -> None:
    project = Project(Cloud(ledger_url, ledger), tmp_path)
    noun: Noun = getattr(project, resource)()
    for name in NAMES:
        noun.more(name)
    project.within(write_quotas, DEMO, {resource: 1})
    noun.less()
    with pytest.raises(QuotaError):
        noun.more("d")
