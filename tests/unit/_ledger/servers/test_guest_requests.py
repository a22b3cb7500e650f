# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests that only the guest is told of: bounds, what is recorded, and that nobody else is shown any of it."""

from __future__ import annotations

import base64
import json
import subprocess
import types
import typing as t
import unittest.mock

import pytest
import sqlalchemy as sa
from ansible.errors import AnsibleActionFail

from ansible_collections.novalite.cloud.plugins.action.ledger_step import ActionModule as StepAction
from ansible_collections.novalite.cloud.plugins.action.server import ActionModule as ServerAction
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_plan import server_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server import prepare_server
from ansible_collections.novalite.cloud.plugins.module_utils._rules import guest_requests

CANARY = "canary-PA55"
USER_DATA = f"#cloud-config\n# {CANARY}\n"
ASK = {
    "name": "web",
    "flavor": "m1.nano",
    "image": "ami-tiny",
    "user_data": USER_DATA,
    "config_drive": True,
    "files": [{"path": "/etc/app", "content": CANARY}],
    "admin_password": CANARY,
}
FACTS = {"domain_type": "qemu", "arch": "x86_64", "machine": "pc", "emulator": "/q", "disk_cache": "none"}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def ask(cloud: t.Any, *entries: dict[str, t.Any], **params: t.Any) -> dict[str, t.Any]:
    servers = prepare_server(cloud.engine, {"servers": entries})["servers"]
    return t.cast("dict[str, t.Any]", cloud.server(*servers, **params))


def stored(cloud: t.Any, name: str = "web") -> t.Any:
    table = tables.instance
    (row,) = cloud.rows(sa.select(table).where(table.c.name == name, table.c.deleted == 0))
    return row


def test_recorded_but_shown_to_nobody(cloud: t.Any) -> None:
    result = ask(cloud, ASK)
    row = stored(cloud)
    assert base64.b64decode(row.user_data).decode() == USER_DATA
    assert row.config_drive and row.files == [{"path": "/etc/app", "content": b64(CANARY)}]
    salt = row.password_hash.split("$")[2]
    said = subprocess.run(
        ["openssl", "passwd", "-6", "-salt", salt, "-stdin"], input=CANARY, capture_output=True, text=True, check=True
    )
    assert row.password_hash.startswith("$6$") and said.stdout.strip() == row.password_hash
    details = cloud.rows(sa.select(tables.instance_action.c.details))
    shown = json.dumps([result, cloud.info(actions=True), details], default=str)
    for secret in (CANARY, b64(CANARY), row.user_data, row.password_hash):
        assert secret not in shown


def test_the_plan_of_a_host_has_it_and_says_that_it_is_secret(cloud: t.Any) -> None:
    plain = {"name": "db", "flavor": "m1.nano", "image": "ami-tiny"}
    for entry in (ASK, plain):
        (instance,) = ask(cloud, entry)["to_build"]
        cloud.place(instance["uuid"])
    params: dict[str, t.Any] = {
        "existing": [],
        "leaving": [],
        "compute_hosts": [{"name": "hv1", **FACTS}],
        "state_dir": "/var/lib/novalite",
    }
    web, db = (cloud.info(name=name)[0] for name in ("web", "db"))
    with transaction(cloud.engine) as connection:
        result = server_plan(connection, {**params, "instances": [web, db]})
        public = server_plan(connection, {**params, "instances": [db], "existing": [web]})
    assert result["secret"] and result["hosts"]["hv1"]["build"]["secret"]
    first, second = result["hosts"]["hv1"]["build"]["injections"]
    assert first["files"] == [{"path": "/etc/app", "content": b64(CANARY)}]
    assert first["password_hash"] == stored(cloud).password_hash
    assert (second["files"], second["password_hash"]) == ([], None)
    assert not public["secret"] and b64(CANARY) not in json.dumps(public)


def task(action: t.Any, args: dict[str, t.Any]) -> dict[str, t.Any]:
    made = types.SimpleNamespace(args=args, check_mode=False, diff=True, async_val=0)
    return t.cast("dict[str, t.Any]", action(made, *[unittest.mock.MagicMock() for _ in range(5)]).run(task_vars={}))


def test_tasks_hide_secrets_and_leave_names_alone(cloud: t.Any) -> None:
    # a weak password may be any word of the result
    result = task(ServerAction, {"servers": [{**ASK, "admin_password": "web"}], "ledger_url": cloud.url})
    (instance,) = result["to_build"]
    assert instance["name"] == "web" and CANARY not in json.dumps(result) and "_ansible_no_log" not in result
    cloud.place(instance["uuid"])
    plan = task(
        StepAction,
        {
            "step": "server_plan",
            "args": {"instances": cloud.info(name="web"), "compute_hosts": [{"name": "hv1", **FACTS}]},
            "ledger_url": cloud.url,
        },
    )
    assert plan["_ansible_no_log"] is True and "secret" not in plan
    with pytest.raises(AnsibleActionFail) as caught:
        task(ServerAction, {"servers": [{**ASK, "count": 1, "surprise": 1}], "ledger_url": cloud.url})
    assert CANARY not in str(caught.value)


def test_an_image_may_insist_on_a_config_drive(cloud: t.Any) -> None:
    image = tables.image
    cloud.write(sa.update(image).where(image.c.name == "ami-tiny").values(properties={"os_config_drive": "mandatory"}))
    entry = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny"}
    assert cloud.server({**entry, "config_drive": False})["to_build"][0]["config_drive"] is True
    mounted = {"properties": {"os_host_mount": "yes"}}
    assert guest_requests.wants_config_drive(guest_requests.GuestRequest(), mounted) is False


def test_what_no_host_may_mount_gets_a_config_drive_whatever_is_asked(cloud: t.Any) -> None:
    cloud.write(sa.update(tables.image).where(tables.image.c.name == "ami-tiny").values(properties={}))
    entry = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "config_drive": False}
    assert cloud.server(entry)["to_build"][0]["config_drive"] is True
    (again,) = cloud.server(entry, takeover=True)["to_build"]  # no other server is asked for
    assert again["config_drive"] is True


@pytest.mark.parametrize(
    ("said", "has"), [({}, True), ({"config_drive": True}, True), ({"config_drive": False}, False)]
)
def test_one_that_starts_from_a_volume_has_its_key_on_a_config_drive(
    cloud: t.Any, said: dict[str, bool], has: bool
) -> None:
    entry = {"name": "web", "flavor": "m1.nano", "image": "ami-tiny", **said}
    assert cloud.server({**entry, "volumes": [{"size": 1, "boot": True}]})["to_build"][0]["config_drive"] is has
    (instance,) = cloud.server({**entry, "name": "plain", "volumes": [{"size": 1}]})["to_build"]
    assert instance["config_drive"] is said.get("config_drive", False)


def test_a_failed_server_is_begun_anew_with_other_user_data(cloud: t.Any) -> None:
    def failed(**change: t.Any) -> dict[str, t.Any]:
        (instance,) = ask(cloud, {**ASK, **change})["to_build"]
        cloud.state({"uuids": [instance["uuid"]], "state": "error", "reason": "no room"})
        return t.cast("dict[str, t.Any]", instance)

    first = failed()
    again = failed(admin_password="another")
    assert again["uuid"] == first["uuid"] and stored(cloud).password_hash.startswith("$6$")
    changes: list[dict[str, t.Any]] = [{"user_data": "#!other"}, {"files": []}, {"config_drive": False}]
    for change in changes:
        assert failed(**change)["uuid"] != first["uuid"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user_data": "#" * 49152}, "has 65536 bytes in base64: at most 65535"),
        ({"config_drive": "maybe"}, "say true or false"),
        ({"files": [{"path": "etc/x", "content": "x"}]}, "a path must be absolute"),
        ({"files": [{"path": "/etc/../x", "content": "x"}]}, "a path must be absolute"),
        ({"files": [{"path": "/etc/\nx", "content": "x"}]}, "a path must be absolute"),
        ({"files": [{"path": "/", "content": "x"}]}, "a path must be absolute"),
        ({"files": [{"path": "/x", "content": "&", "encoding": "base64"}]}, "is not base64"),
        ({"files": [{"path": "/x", "content": "x"}] * 2}, "named twice"),
        ({"files": [{"path": "/x"}]}, "a path and a content"),
        ({"admin_password": "two\nlines"}, "without control characters"),
        ({"admin_password": ""}, "without control characters"),
        ({"admin_password": "x" * 513}, "at most 512 bytes"),
    ],
)
def test_bounds(change: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message) as caught:
        (entry,) = guest_requests.with_hashes([{**ASK, **change}])
        guest_requests.checked("web", entry)
    assert CANARY not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([{"path": f"/{n}", "content": ""} for n in range(6)], "injected_files is 6, at most 5"),
        ([{"path": "/" + "x" * 255, "content": ""}], "injected_file_path_length is 256, at most 255"),
        ([{"path": "/x", "content": "x" * 10241}], "injected_file_content_bytes is 10241, at most 10240"),
    ],
)
def test_novas_quotas_hold(cloud: t.Any, files: list[dict[str, str]], message: str) -> None:
    with pytest.raises(QuotaError, match=message):
        ask(cloud, {**ASK, "files": files})
    assert cloud.info() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user_data": "#!", "user_data_encoding": "base64"}, "user_data of 'web' is not base64"),
        ({"user_data": "x", "user_data_encoding": "gzip"}, "user_data_encoding is not text or base64"),
        ({"user_data": "\ud800"}, "no text has: give it in base64 .filter b64encode., with user_data_encoding"),
        ({"files": [{"path": "/x", "content": "\udfff"}]}, "the content of /x has characters .*, with encoding base64"),
        ({"files": [{"path": "/x", "content": "x", "encoding": "Base64"}]}, "encoding is not text or base64"),
    ],
)
def test_what_has_no_bytes_is_refused_with_the_way_to_give_them(change: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        guest_requests.checked("web", {"name": "web", **change})
