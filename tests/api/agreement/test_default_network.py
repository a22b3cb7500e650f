# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network of a server that names none: the same at every door, whichever networks there are and one of them is the
default."""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api import ec2_door
from tests.api.compute.test_interfaces_api import ask
from tests.api.ec2.test_ec2_instances import RUN
from tests.api.ec2_door import Client
from tests.api.seeds import IMAGE_ID, Api

# name -> whose it is; demo asks
OWNERS = {"private": None, "public": None, "mine": "demo", "hidden": "alt"}
SEEN = ("private", "public", "mine")
NETWORKS = "/network/v2.0/networks"


@dataclasses.dataclass(frozen=True)
class Case:
    there: tuple[str, ...]
    default: str | None

    @property
    def network(self) -> str | None:
        """The network that a server gets; None: it has to name one."""
        seen = [name for name in self.there if name in SEEN]
        return seen[0] if len(seen) == 1 else self.default if self.default in seen else None

    @property
    def first(self) -> str:
        """The network that EC2 takes, which refuses nobody: an own one before the operator's."""
        return self.network or ("mine" if "mine" in self.there else next(name for name in self.there if name in SEEN))


CASES = [
    Case(there, default)
    for size in range(1, 5)
    for there in itertools.combinations(OWNERS, size)
    if set(there) & set(SEEN)
    for default in (None, *there)
]


def build(api: Api, case: Case) -> None:
    """Let the ledger have the networks of the case, and no server."""
    for table in (tables.vif, tables.instance, tables.network):
        api.write(sa.delete(table))
    for number, name in enumerate(case.there):
        owner = OWNERS[name]
        api.network(
            name,
            f"10.3{number}.0.0/28",
            owner="" if owner is None else api.projects[owner],
            is_default=name == case.default,
        )


def networks(api: Api) -> list[str]:
    """The networks of all servers' interfaces."""
    query = sa.select(tables.network.c.name).join(tables.vif, tables.vif.c.network_id == tables.network.c.id)
    return [row.name for row in api.rows(query)]


def by_playbook(api: Api, _amazon: Client) -> None:
    api.task("server", servers=[{"name": "web", "flavor": "m1.nano", "image": "ami-tiny"}])


def by_compute(api: Api, _amazon: Client) -> None:
    server = {"name": "web", "imageRef": IMAGE_ID, "flavorRef": "1"}
    answer = api.client_as("demo").post("/compute/v2.1/servers", json={"server": server})
    if answer.status_code == 409:
        assert "Multiple possible networks found" in answer.get_data(as_text=True)
        raise NovaliteError("409")
    assert answer.status_code == 202, answer.get_data(as_text=True)


def by_ec2(_api: Api, amazon: Client) -> None:
    amazon.run_instances(**RUN)


DOORS: dict[str, t.Callable[[Api, Client], None]] = {"playbook": by_playbook, "Compute": by_compute, "EC2": by_ec2}


@pytest.mark.parametrize("name", DOORS)
def test_a_server_that_names_no_network_gets_the_only_one_or_the_default(api: Api, name: str) -> None:
    with ec2_door.open_door(api) as door:
        amazon = door.client()
        for case in CASES:
            build(api, case)
            expected = case.first if name == "EC2" else case.network
            if expected is None:
                with pytest.raises(NovaliteError):
                    DOORS[name](api, amazon)
                assert networks(api) == [], case
            else:
                DOORS[name](api, amazon)
                assert networks(api) == [expected], case


def test_a_plan_and_an_interface_take_the_same_network(api: Api) -> None:
    demo, server = api.client_as("demo"), {"name": "new", "flavor": "m1.nano", "image": "ami-tiny"}
    for case in CASES:
        build(api, case)
        refused = case.network is None
        plan = demo.post("/v1/plan", json={"servers": [server]})
        assert plan.status_code == (400 if refused else 200), (case, plan.get_data(as_text=True))
        instance = api.instance("demo", "web", host="hv1")
        path = f"/compute/v2.1/servers/{instance}/os-interface"
        attached = demo.post(path, json={"interfaceAttachment": {}})
        assert (attached.status_code == 400) == refused, (case, attached.get_data(as_text=True))
        assert networks(api) == ([] if refused else [case.network]), case


def test_openstacksdk_makes_one_network_the_default(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    admin = sdk("admin").network
    other = admin.create_network(name="other", is_shared=True, is_default=True)
    second = admin.create_network(name="second", is_shared=True)
    assert other.is_default and not second.is_default
    assert [network.name for network in admin.networks(is_default=True)] == ["other"]
    answer = ask(api.client_as("admin"), "PUT", f"{NETWORKS}/{second.id}", {"network": {"is_default": True}}, 409)
    assert answer["NeutronError"]["type"] == "DefaultExternalNetworkExists"
    assert other.id in answer["NeutronError"]["message"]
    admin.update_network(other, is_default=False)
    assert admin.update_network(second, is_default=True).is_default


def test_a_task_passes_the_default_on_whatever_the_order(api: Api) -> None:
    api.task("network", networks=[{"name": "private", "is_default": True}])
    other = {"name": "other", "cidr": "10.9.0.0/24", "is_default": True}
    with pytest.raises(NovaliteError, match=r"A default network already exists: .*\(private\)"):
        api.task("network", networks=[other])
    assert api.task("network", networks=[other, {"name": "private", "is_default": False}])["changed"]
    assert not api.task("network", networks=[other, {"name": "private"}])["changed"]
    with pytest.raises(ConflictError, match="UNIQUE"):  # whatever the code says
        api.write(sa.update(tables.network).values(is_default=True))
