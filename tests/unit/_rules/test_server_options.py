# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whoever takes a server takes the same options, within the same limits."""

from __future__ import annotations

import pathlib
import typing as t

import jsonschema
import pytest
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._rules import server_options, server_requests
from ansible_collections.novalite.cloud.plugins.module_utils._stack import document
from api.jobs import kinds
from tests.support.cloud import validator

REPOSITORY = pathlib.Path(__file__).parents[3]
FILES = [{"path": "/etc/motd", "content": "hello"}]


def module_takes(entry: dict[str, t.Any]) -> bool:
    checked = validator("server").validate({"servers": [entry]})
    if checked.error_messages:
        return False
    try:
        server_requests.expand([{**checked.validated_parameters["servers"][0], "admin_password": None}])
    except NovaliteError:
        return False
    return True


def v1_takes(entry: dict[str, t.Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(kinds.SERVER).is_valid(entry))


def site_takes(entry: dict[str, t.Any]) -> bool:
    return bool(document.validator().is_valid({"servers": [entry]}))


ALL, OPERATORS, NOBODY = (True, True, True), (True, False, True), (False, False, False)


@pytest.mark.parametrize(
    ("option", "takers"),
    [
        ({}, ALL),
        ({"count": 3}, ALL),
        ({"count": "3"}, (True, False, False)),  # -e count=3
        ({"count": 0}, (False, False, True)),
        ({"count": 1001}, NOBODY),
        ({"flavor": "x" * 255}, ALL),
        ({"flavor": "x" * 256}, NOBODY),
        ({"hostname": "x" * 64}, NOBODY),
        ({"networks": ["a", {"name": "b", "fixed_ip": "10.0.0.9"}]}, ALL),
        ({"networks": []}, NOBODY),
        ({"networks": [f"n{number}" for number in range(11)]}, NOBODY),
        ({"networks": [{"name": "b", "ip": "10.0.0.9"}]}, NOBODY),
        ({"security_groups": ["web"]}, ALL),
        ({"security_groups": []}, ALL),
        ({"security_groups": ["web"] * 11}, NOBODY),
        ({"metadata": {"tier": "web", "rank": "1"}}, ALL),
        ({"metadata": {"rank": 1}}, NOBODY),  # it may have been 01, 1_0 or 0:1
        ({"metadata": {"tier": None}}, (False, False, True)),  # takes back what a profile said
        ({"metadata": {"tier": "x" * 256}}, NOBODY),
        ({"config_drive": True}, ALL),
        ({"volumes": [{"size": 3, "type": "fast", "boot": True, "delete_on_termination": True}]}, ALL),
        ({"volumes": [{"size": 3}] * 21}, NOBODY),
        ({"volumes": [{"size": 0}]}, NOBODY),
        ({"volumes": [{"size": 3, "sort": "fast"}]}, NOBODY),
        ({"hints": {"group": "db", "same_host": ["a", "b"], "query": '["=", "$host", "a"]'}}, ALL),
        ({"hints": {"host": "hv1"}}, OPERATORS),
        ({"rank": "-num_instances"}, ALL),
        ({"rank": ""}, NOBODY),
        ({"user_data": "#!/bin/sh"}, OPERATORS),  # variables of a job are kept
        ({"admin_password": "secret"}, OPERATORS),
        ({"files": FILES}, OPERATORS),
        ({"flavour": "m1.tiny"}, NOBODY),
    ],
)
def test_who_takes_what(option: dict[str, t.Any], takers: tuple[bool, bool, bool]) -> None:
    entry = {"name": "web", **option}
    assert (module_takes(entry), v1_takes(entry), site_takes(entry)) == takers


def test_text_from_a_template_is_a_volumes_size_and_truth() -> None:
    checked = validator("server").validate({"servers": [{"name": "web", "volumes": [{"size": "3", "boot": "true"}]}]})
    (request,) = server_requests.expand(checked.validated_parameters["servers"])
    assert [(volume.size_gb, volume.boot) for volume in request.volumes] == [(3, True)]


def test_what_a_playbook_is_told_of_a_server_reaches_the_module() -> None:
    (task,) = yaml.safe_load((REPOSITORY / "playbooks/tasks/create_servers.yml").read_text())
    assert list(task["vars"]["novalite_server"]) == [option.name for option in server_options.SERVER]
