# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A password that the agent in a guest sets: what its host is told, and that nothing else knows it."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables

CANARY = "canary-PA55"


@pytest.fixture
def web(cloud: t.Any) -> str:
    return server(cloud, {"hw_qemu_guest_agent": "yes", "os_admin_user": "ubuntu"})


def server(cloud: t.Any, properties: dict[str, str]) -> str:
    """Record a server that runs, whose image has these properties."""
    (instance,) = cloud.server({"name": "web", "flavor": "m1.tiny", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], "hv1")
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    image = {**cloud.rows(sa.select(tables.instance.c.image))[0][0], "properties": properties}
    cloud.write(sa.update(tables.instance).values(image=image))
    return str(instance["uuid"])


def ask(cloud: t.Any, password: str | None = CANARY) -> dict[str, t.Any]:
    asked = {"action": "changePassword", "servers": ["web"], "request": {"admin_password": password}}
    return t.cast("dict[str, t.Any]", cloud.run("server_action", **asked))


def test_the_host_is_told_whose_password_and_its_hash(cloud: t.Any, web: str) -> None:
    begun = ask(cloud)
    (password,) = begun["hosts"]["hv1"]["passwords"]
    assert (password["uuid"], password["user"]) == (web, "ubuntu") and password["name"].startswith("instance-")
    assert password["password_hash"].startswith("$6$") and begun["secret"]
    assert CANARY not in repr(begun)
    outcomes = [{"host": "hv1", "results": [{"uuid": web, "error": None}]}]
    ended = cloud.task("server_action", action="changePassword", outcomes=outcomes, plans=begun["hosts"])
    assert ended["errors"] == [] and cloud.info(name="web")[0]["task_state"] is None
    actions = repr(cloud.rows(sa.select(tables.instance_action)))
    assert "changePassword" in actions and "$6$" not in actions and CANARY not in actions


def test_what_the_agent_did_not_do_is_said(cloud: t.Any, web: str) -> None:
    begun = ask(cloud)
    outcomes = [{"host": "hv1", "results": [{"uuid": web, "error": "the agent does not answer"}]}]
    ended = cloud.task("server_action", action="changePassword", outcomes=outcomes, plans=begun["hosts"])
    assert "does not answer" in ended["errors"][0]["message"]
    left = cloud.info(name="web")[0]
    assert (left["vm_state"], left["task_state"]) == ("active", None)


def test_a_guest_without_an_agent_is_refused(cloud: t.Any) -> None:
    server(cloud, {})
    with pytest.raises(ConflictError, match="QEMU guest agent is not enabled"):
        ask(cloud)


def test_a_password_is_needed(cloud: t.Any, web: str) -> None:
    with pytest.raises(NovaliteError, match="admin_password"):
        ask(cloud, None)
