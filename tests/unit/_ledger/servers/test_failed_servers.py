# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that failed before they ran, and are asked for again, as they were or otherwise."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.unit._ledger.servers.test_servers import ask

REQUEST: dict[str, t.Any] = {
    "networks": [{"name": "private", "fixed_ip": "10.20.0.9"}],
    "volumes": [{"size": 50}],
    "metadata": {"role": "db"},
    "hostname": "db",
    "ha_priority": 1,
}


@pytest.mark.parametrize(
    "corrected",
    [
        {"networks": [{"name": "private", "fixed_ip": "10.20.0.10"}]},
        {"networks": ["private"]},
        {"volumes": [{"size": 5}]},
        {"volumes": [{"size": 50}, {"size": 50}]},
        {"metadata": {"role": "web"}},
        {"hostname": "db2"},
        {"ha_priority": 2},
    ],
)
def test_a_failed_server_has_what_it_is_asked_for_the_second_time(cloud: t.Any, corrected: dict[str, t.Any]) -> None:
    (instance,) = cloud.server(ask(**REQUEST))["to_build"]
    cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "No valid host"})
    for unchanged in ({}, REQUEST):  # what is not said is as it was
        (again,) = cloud.server(ask(**unchanged))["to_build"]
        assert again["uuid"] == instance["uuid"] and again["nics"][0]["ip"] == "10.20.0.9"
        cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "No valid host"})
    (again,) = cloud.server(ask(**{**REQUEST, **corrected}))["to_build"]
    assert again["uuid"] != instance["uuid"]
    wishes = {**REQUEST, **corrected}
    assert [volume["size_gb"] for volume in again["volumes"]] == [volume["size"] for volume in wishes["volumes"]]
    assert (again["metadata"], again["hostname"]) == (wishes["metadata"], wishes["hostname"])
    (network,) = wishes["networks"]
    assert again["nics"][0]["ip"] == (network["fixed_ip"] if isinstance(network, dict) else None)


@pytest.mark.parametrize("table", [tables.flavor, tables.image])
def test_a_failed_server_is_made_of_what_has_its_name_by_now(cloud: t.Any, table: sa.Table) -> None:
    (instance,) = cloud.server(ask())["to_build"]
    cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "No valid host"})
    values = {"memory_mb": 128} if table is tables.flavor else {"checksum": "sha256:" + "1" * 64}
    cloud.write(sa.update(table).where(table.c.name.in_([instance["flavor"]["name"], "ami-tiny"])).values(**values))
    (again,) = cloud.server(ask())["to_build"]
    assert again["uuid"] != instance["uuid"]
    assert values.items() <= {**again["flavor"], "checksum": again["image"]["checksum"]}.items()


def test_a_failed_server_is_made_of_its_own_copy_where_its_image_can_start_nothing_by_now(cloud: t.Any) -> None:
    (instance,) = cloud.server(ask())["to_build"]
    cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "No valid host"})
    cloud.write(sa.update(tables.image).where(tables.image.c.name == "ami-tiny").values(status="deactivated"))
    assert [again["uuid"] for again in cloud.server(ask())["to_build"]] == [instance["uuid"]]
