# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of the policy table that the environment changes."""

from __future__ import annotations

import pathlib
import typing as t

import botocore.exceptions
import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from api import create_app
from api.ec2 import ids
from api.settings import Settings
from api.web import policy
from api.web.services import Service
from api.work import waiting
from tests.api import conftest, ec2_door


@pytest.fixture(autouse=True)
def own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    create_app(Settings())  # every service has said its rules
    monkeypatch.setattr(policy, "POLICY", dict(policy.POLICY))


def test_a_rule_is_changed() -> None:
    policy.override(" compute:hypervisors:read=admin, compute:servers:show=any,")
    assert (policy.POLICY["compute:hypervisors:read"], policy.POLICY["compute:servers:show"]) == ("admin", "any")


@pytest.mark.parametrize("text", ["nosuch=admin", "compute:servers:show", "compute:servers:show=public", "version=any"])
def test_what_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(NovaliteError, match=r"NOVALITE_API_POLICY has '.*': write operation=role"):
        policy.override(text)


# operation: method and body at Compute, job of /v1, call of EC2. Each door has a server of its own to ask about
REQUESTS: dict[str, tuple[str, t.Any, dict[str, t.Any], str]] = {
    "compute:servers:delete": (
        "DELETE",
        None,
        {"kind": "terminate", "variables": {"servers": [{"name": "web-1"}]}},
        "terminate_instances",
    ),
    "compute:servers:stop": ("POST", {"os-stop": None}, {"kind": "stop", "instances": []}, "stop_instances"),
    "compute:servers:console_output": (
        "POST",
        {"os-getConsoleOutput": {"length": 0}},
        {"kind": "console", "instances": []},
        "get_console_output",
    ),
}


def doors_that_let(door: ec2_door.Door, user: str, operation: str) -> set[str]:
    """The doors at which the user may do the operation. An answer that is neither yes nor "you may not" is an error."""
    api = door.api
    servers = {name: api.instance("demo", name, host="hv1") for name in ("web-0", "web-1", "web-2")}
    method, action, job, call = REQUESTS[operation]
    if "instances" in job:
        job = {**job, "instances": [servers["web-1"]]}
    client, path = api.client_as(user), f"/compute/v2.1/servers/{servers['web-0']}{'/action' if action else ''}"
    answers = {
        "compute": client.open(path, method=method, json=action).status_code,
        "v1": client.post("/v1/jobs", json=job).status_code,
    }
    number = ids.of("i", servers["web-2"])
    try:
        getattr(door.client(user), call)(
            **{"InstanceId": number} if call == "get_console_output" else {"InstanceIds": [number]}
        )
        answers["ec2"] = 200
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "UnauthorizedOperation", error
        answers["ec2"] = 403
    assert set(answers.values()) <= {200, 202, 204, 403}, answers
    return {name for name, status in answers.items() if status != 403}


@pytest.mark.parametrize("operation", REQUESTS)
@pytest.mark.parametrize(("rule", "member_may"), [("member", True), ("manager", False)])
def test_a_rule_holds_at_every_door(
    seeded: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    rule: str,
    member_may: bool,
) -> None:
    monkeypatch.setattr(waiting, "console_output", lambda *_arguments: "login: ")
    every = {"compute", "v1", "ec2"}
    for user, may in (("demo", member_may), ("admin", True)):
        home = tmp_path / user
        with (
            conftest.application(seeded, home, api_policy=f"{operation}={rule}") as api,
            ec2_door.open_door(api) as door,
        ):
            assert doors_that_let(door, user, operation) == (every if may else set())


# What administrators may besides, each an operation of its own: refused to members, unless its rule says otherwise
BESIDES = {
    "compute:servers:all_tenants": "/compute/v2.1/servers?all_tenants=1",
    "compute:servers:deleted": "/compute/v2.1/servers?status=deleted",
    "compute:server_groups:all_projects": "/compute/v2.1/os-server-groups?all_projects=1",
    "compute:limits:other_project": "/compute/v2.1/limits?tenant_id=another",
    "identity:users:others": "/identity/v3/users/{admin}/projects",
    "identity:trusts:others": "/identity/v3/OS-TRUST/trusts",
}


def test_what_administrators_may_besides_has_rules_of_its_own(seeded: pathlib.Path, tmp_path: pathlib.Path) -> None:
    answers = {}
    for name, rules in (("default", ""), ("opened", ",".join(f"{operation}=member" for operation in BESIDES))):
        with conftest.application(seeded, tmp_path / name, api_policy=rules) as api:
            admin = api.client_as("admin").get("/identity/v3/users?name=admin").get_json()["users"][0]["id"]
            client = api.client_as("demo")
            answers[name] = [client.get(path.format(admin=admin)).status_code for path in BESIDES.values()]
    assert answers == {"default": [403, 403, 403, 403, 404, 403], "opened": [200] * len(BESIDES)}


def test_a_function_answers_for_one_operation() -> None:
    """Of two, the check of the second would be missing."""
    service = Service("twice", "/twice")

    @service.get("/public", "version")
    def answer() -> str:
        return ""

    with pytest.raises(ValueError, match="two operations"):
        service.get("/private", "compute:servers:index")(answer)
