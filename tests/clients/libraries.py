# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""openstacksdk, and the openstack.cloud collection that is made with it."""

from __future__ import annotations

import os
import pathlib
import secrets
import typing as t

from .cloud import ROOT, Cloud, play_result
from .command import login
from .report import Report, Skipped

PLAYBOOK = pathlib.Path(__file__).with_name("server.yml")
TIMEOUT = 300  # seconds
RULES = 8  # of the playbook's security group


def sdk(report: Report, cloud: Cloud) -> None:
    part, name = "sdk", f"web-sdk-{secrets.token_hex(2)}"
    ids: dict[str, t.Any] = {}
    connection = cloud.connect()
    with report.step(part, "create_server(wait=True)"):
        server = connection.create_server(
            name,
            image="ami-tiny",
            flavor="m1.tiny",
            key_name="test",
            network="private",
            wait=True,
            auto_ip=False,
            timeout=TIMEOUT,
            meta={"made": "by the SDK"},
            userdata="#!/bin/sh\n",
            security_groups=["default"],
        )
        ids["id"] = server.id
        assert server.status == "ACTIVE", server
        assert server.metadata == {"made": "by the SDK"}
        assert [address["addr"] for address in server.addresses["private"]]
    login(report, cloud, part, ids, name)
    with report.step(part, "get_server, list_servers, console output, limits, quotas"):
        if "id" not in ids:
            raise Skipped("there is no server")
        assert connection.get_server(name).id == ids["id"]
        assert ids["id"] in {instance.id for instance in connection.list_servers()}
        assert isinstance(connection.get_server_console(ids["id"]), str)
        assert connection.get_compute_limits().total_instances_used >= 1
        assert list(connection.list_ports(filters={"device_id": ids["id"]}))
    with report.step(part, "delete_server(wait=True)"):
        if "id" not in ids:
            raise Skipped("there is no server")
        assert connection.delete_server(ids["id"], wait=True, timeout=TIMEOUT)
        assert connection.get_server(ids["id"]) is None
    connection.close()


def ansible(report: Report, cloud: Cloud) -> None:
    part, name = "ansible", f"web-ansible-{secrets.token_hex(2)}"
    ids: dict[str, t.Any] = {}

    def play(state: str) -> dict[str, t.Any]:
        variables = {"server_name": name, "server_state": state}
        environment = {**cloud.environment(), "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
        return play_result(PLAYBOOK, variables, 2 * TIMEOUT, environment)

    with report.step(part, "openstack.cloud.security_group with rules, openstack.cloud.server: present"):
        made = play("present")
        ids["id"] = made["id"]
        assert made["changed"] and made["status"] == "ACTIVE", made
        assert made["group_changed"] and made["rules"] == RULES, made
    login(report, cloud, part, ids, name)
    with report.step(part, "both: present already"):
        if "id" not in ids:
            raise Skipped("there is no server")
        again = play("present")
        assert again == {**made, "changed": False, "group_changed": False}, again
    with report.step(part, "both: absent"):
        if "id" not in ids:
            raise Skipped("there is no server")
        gone = play("absent")
        assert gone["changed"] and gone["group_changed"], gone


def collection_is_there() -> bool:
    paths = os.environ.get("ANSIBLE_COLLECTIONS_PATH", "").split(":")
    places = [*(pathlib.Path(path) for path in paths if path), ROOT / ".cache/collections"]
    return any((place / "ansible_collections/openstack/cloud").is_dir() for place in places)
