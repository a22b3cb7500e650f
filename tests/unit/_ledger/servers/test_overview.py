# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.cloud_info import cloud_info


def look(cloud: t.Any, **params: t.Any) -> dict[str, t.Any]:
    with transaction(cloud.engine) as connection:
        return cloud_info(connection, {"project": None, "picture": False, **params})


def test_what_is_claimed_and_what_may_be(cloud: t.Any) -> None:
    [instance] = cloud.server({"name": "web", "flavor": "m1.tiny", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], "hv2")
    overview = look(cloud, picture=True)
    hosts = {host["name"]: host for host in overview["hosts"]}
    assert hosts["hv2"]["vcpus"] == [1, 32.0]
    assert hosts["hv2"]["memory_mb"] == [512, 15872.0]
    assert hosts["hv1"]["vcpus"] == [0, 32.0]
    assert hosts["hv1"]["up"], "a host that was not asked for a while is not down"
    [network] = overview["networks"]
    assert (network["name"], network["used"], network["size"]) == ("private", 2, 14)
    [server] = overview["servers"]
    assert (server["host"], server["vm_state"], server["ip"] is None) == ("hv2", "building", False)
    [group] = overview["security_groups"]
    assert (group["name"], group["members"]) == ("default", 1)
    assert overview["dot"].startswith("digraph cloud {")


def test_one_project_sees_its_own(cloud: t.Any) -> None:
    cloud.server({"name": "web", "flavor": "m1.tiny", "image": "ami-tiny"})
    cloud.network("theirs", "10.30.0.0/28", owner="d" * 32)
    overview = look(cloud, project="other")
    assert overview["servers"] == overview["security_groups"] == []
    assert [network["name"] for network in overview["networks"]] == ["private"]
    assert [network["project"] for network in look(cloud)["networks"]] == [None, "demo"]
    with pytest.raises(NotFoundError, match="unknown project 'nobody'"):
        look(cloud, project="nobody")
