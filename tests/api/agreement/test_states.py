# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One operation, one state, many doors: each of them says what the table of states says.

Playbooks are asked by their modules, in check mode; the command `novalite` by the playbook that it would run.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import time
import typing as t
import uuid

import click.testing
import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, StateError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.server_actions import action_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import (
    tables,
    tables_images,
    tables_jobs,
    tables_volumes,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_ec2 import ec2_instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import volume_type_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import state_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.state_rules import RULES, StateRule
from api import cli
from api.cli import playbooks
from api.ec2 import ids
from api.web.operations import OPERATIONS
from tests.api.agreement.doors import Answer, Cloud
from tests.api.agreement.operations import INSTANCES, OPERATIONS_BY_DOOR, Ec2, Http, Page, Request, action, job


@dataclasses.dataclass(frozen=True)
class Playbook:
    """The module that decides in a playbook, and its arguments."""

    module: str
    arguments: t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Command:
    """Words of the command `novalite`, whose playbook's variables are arguments of `module`."""

    words: tuple[str, ...]
    module: str
    arguments: t.Mapping[str, t.Any]


Door = t.Union[Request, Playbook, Command]

ADOPTED = {"domain": "alts", "at": 1, "disks": [], "reserved": []}
AT_REST: dict[str, t.Any] = {
    **{"vm_state": "active", "task_state": None, "host": "hv1", "locked": False, "adopted": None},
    **{"power_state": 1, "rescue_image": None},
}
# name -> columns of the instance
STATES: dict[str, dict[str, t.Any]] = {
    **{
        name: {"vm_state": name}
        for name in ("active", "stopped", "paused", "suspended", "rescued", "resized", "shelved")
    },
    "error": {"vm_state": "error"},
    "offloaded": {"vm_state": "shelved_offloaded", "host": None},
    "failed to build": {"vm_state": "error", "host": None},
    "being built": {"vm_state": "building", "task_state": "scheduling", "host": None},
    # the rest is added to a state that allows the operation
    "under way": {"task_state": "rebooting"},
    "deleting": {"task_state": "deleting"},
    "locked": {"locked": True},
    "adopted": {"adopted": ADOPTED},
    "termination-protected": {},
    "stop-protected": {},
}
PROTECTIONS = {"termination-protected": "disable_api_termination", "stop-protected": "disable_api_stop"}

NAMED = {"project": "alt", "servers": ["alts"]}
ACTIONS = (
    *("stop", "start", "reboot", "pause", "unpause", "suspend", "resume", "rescue", "unrescue", "rebuild"),
    *("shelve", "shelveOffload", "unshelve", "lock", "unlock"),
)
SNAPSHOTS = {"createSnapshot": "new", "revertSnapshot": "former", "deleteSnapshot": "former"}
BACKUPS = {"createBackup": "new", "restoreBackup": "former", "verifyBackup": "former", "deleteBackup": "former"}
MOVES = ("resize", "migrate", "confirmResize", "revertResize", "live-migration", "evacuate")
ATTACHING = {"attachments": [{"volume": "spare", "server": "alts"}], "project": "alt"}
PLAYBOOKS: dict[str, tuple[Playbook | Command, ...]] = {
    **{name: (Playbook("server_action", {"action": name, **NAMED}),) for name in ACTIONS},
    **{
        name: (
            Playbook("server_action", {"action": name, **NAMED}),
            Command((name, "-p", "alt", "alts"), "server_action", {"action": name}),
        )
        for name in ("stop", "start", "pause", "lock")
    },
    "reboot HARD": (Playbook("server_action", {"action": "reboot", "hard": True, **NAMED}),),
    "createImage": (Playbook("server_action", {"action": "createImage", "request": {"image_name": "new"}, **NAMED}),),
    "live-resize": (Playbook("server_action", {"action": "live-resize", "request": {"flavor": "m1.small"}, **NAMED}),),
    **{
        name: (Playbook("server_action", {"action": name, "request": {"snapshot": snapshot}, **NAMED}),)
        for name, snapshot in SNAPSHOTS.items()
    },
    **{
        name: (Playbook("server_action", {"action": name, "request": {"backup": backup}, **NAMED}),)
        for name, backup in BACKUPS.items()
    },
    "replicate": (Playbook("server_replica", {"state": "begin", **NAMED}),),
    **{name: (Playbook("server_migration", {"action": name, "flavor": "m1.small", **NAMED}),) for name in MOVES},
    "delete": (
        Playbook("server", {"project": "alt", "state": "absent", "servers": [{"name": "alts"}]}),
        Command(("delete", "-y", "-p", "alt", "alts"), "server", {"state": "absent"}),
    ),
    "attach_volume": (Playbook("volume_action", ATTACHING),),
    "detach_volume": (
        Playbook("volume_action", {"attachments": [{"volume": "alts"}], "project": "alt", "state": "absent"}),
    ),
    "attach_interface": (
        Playbook("server_interface", {"project": "alt", "interfaces": [{"server": "alts", "network": "private"}]}),
    ),
    "detach_interface": (
        Playbook(
            "server_interface",
            {"project": "alt", "state": "absent", "interfaces": [{"server": "alts", "network": "alts"}]},
        ),
    ),
    "change_cdrom": (Playbook("server_cdrom", {"project": "alt", "servers": ["alts"]}),),
    "change_ha": (
        Playbook("server_ha", {"ha_priority": 1, **NAMED}),
        Command(("ha", "set", "-p", "alt", "alts", "--off"), "server_ha", {}),
    ),
    "change_security_groups": (
        Playbook(
            "server_security_groups",
            {"project": "alt", "servers": [{"name": "alts", "security_groups": ["alts"]}], "state": "present"},
        ),
    ),
    "give a floating IP to": (
        Playbook("floating_ip", {"project": "alt", "floating_ips": [{"pool": "public", "server": "alts"}]}),
    ),
}

VOLUMES = "/volume/v3/{own_project}/volumes"
SERVER = "/compute/v2.1/servers/{server}"
# Where the row of OPERATIONS_BY_DOOR is not the request, or there is none because only one API has the operation
REQUESTS: dict[str, tuple[Request, ...]] = {
    "reboot": (action("reboot", {"type": "SOFT"}), job("reboot", type="SOFT"), Ec2("reboot_instances", INSTANCES)),
    "reboot HARD": (action("reboot", {"type": "HARD"}), job("reboot", type="HARD")),
    "attach_volume": (
        Http("POST", f"{SERVER}/os-volume_attachments", {"volumeAttachment": {"volumeId": "{spare}"}}),
        Http("POST", f"{VOLUMES}/{{spare}}/action", {"os-attach": {"instance_uuid": "{server}"}}),
        Ec2("attach_volume", {"VolumeId": "{ec2_spare}", "InstanceId": "{ec2_server}", "Device": "/dev/vdc"}),
    ),
    "detach_volume": (
        Http("DELETE", f"{SERVER}/os-volume_attachments/{{volume}}"),
        Http("POST", f"{VOLUMES}/{{volume}}/action", {"os-detach": {}}),
        Ec2("detach_volume", {"VolumeId": "{ec2_volume}", "InstanceId": "{ec2_server}"}),
    ),
    "attach_interface": (Http("POST", f"{SERVER}/os-interface", {"interfaceAttachment": {}}),),
    "detach_interface": (
        Http("DELETE", f"{SERVER}/os-interface/{{port}}"),
        Http("DELETE", "/network/v2.0/ports/{port}"),
    ),
    "update_port": (Http("PUT", "/network/v2.0/ports/{port}", {"port": {"fixed_ips": []}}),),
    "change_fixed_ips": (action("addFixedIp", {"networkId": "{nothing}"}),),
    "give a floating IP to": (
        Http("PUT", "/network/v2.0/floatingips/{floating_ip}", {"floatingip": {"port_id": "{port}"}}),
        Ec2("associate_address", {"AllocationId": "{ec2_floating_ip}", "InstanceId": "{ec2_server}"}),
    ),
    "change_cdrom": (job("cdrom", eject=True),),
    "change_ha": (
        Http("PATCH", "/v1/instances/{server}/ha", {"ha_priority": 1}),
        Page("POST", "/instances/{server}/ha"),
    ),
    "change_security_groups": (
        action("addSecurityGroup", {"name": "alts"}),
        Ec2("modify_instance_attribute", {"InstanceId": "{ec2_server}", "Groups": ["{ec2_security_group}"]}),
    ),
    "resize": (action("resize", {"flavorRef": "2"}), job("resize", flavor="m1.small")),
    "live-resize": (job("live-resize", flavor="m1.small"),),
    "change_tags": (Http("PUT", f"{SERVER}/tags/blue"),),
    "lock": (action("lock"),),
    "unlock": (action("unlock"),),
    "reset_state": (action("os-resetState", {"state": "active"}),),
    "reset_network": (action("resetNetwork"),),
    **{name: (job(name, snapshot=snapshot),) for name, snapshot in SNAPSHOTS.items()},
    **{name: (job(name, backup=backup),) for name, backup in BACKUPS.items()},
    "replicate": (job("replicate"),),
    "changePassword": (action("changePassword", {"adminPass": "secret-1"}),),
}

# What a door answers otherwise, because what it speaks for answers so: (door, operation) -> the states, and why
DIFFERENCES: dict[tuple[str, str], tuple[frozenset[str], str]] = {
    ("ec2", "start"): (
        frozenset({"active", "rescued", "resized", "being built", "paused", "suspended"}),
        "Amazon's StartInstances is no error for an instance that runs; what is halted otherwise is stopped to EC2",
    ),
    ("ec2", "stop"): (
        frozenset({"stopped", "paused", "suspended", "shelved", "offloaded", "error"}),
        "Amazon's StopInstances is no error for an instance that is stopped, and takes only one that runs",
    ),
    ("network", "detach_interface"): (frozenset({"deleting"}), "Neutron's port of a server that goes, goes with it"),
}

SOME = ("is locked", "while it is in", "is not ready", "was adopted", "is protected")  # words of a refusal by state
# InvalidInstanceID is Amazon's for AssociateAddress
CODES = ("IncorrectInstanceState", "IncorrectState", "OperationNotPermitted", "InvalidInstanceID")
ROWS = {**RULES, "reboot HARD": state_rules.HARD_REBOOT}


def doors_of(name: str, rule: StateRule) -> tuple[Door, ...]:
    """Return the requests for an operation that are about the server `alts`."""
    listed = REQUESTS.get(name, OPERATIONS_BY_DOOR.get(rule.policy, ()))
    about = [request for request in listed if any(name in repr(request) for name in ("server}", "'alts'", "{port}"))]
    return (*map(in_earnest, about), *PLAYBOOKS.get(name, ()))


def in_earnest(request: Door) -> Door:
    """Return the request without the check mode in which states count for nothing."""
    if isinstance(request, Http) and isinstance(request.body, dict):
        body = {name: value for name, value in request.body.items() if name != "check_mode"}
        return dataclasses.replace(request, body=body)
    return request


def door_of(request: Door) -> str:
    if isinstance(request, Http):
        return request.path.split("/")[1]
    return type(request).__name__.lower()


@pytest.fixture(scope="module")
def stateful(cloud: Cloud) -> Cloud:
    """The cloud with a volume that is free, and a snapshot, a backup and a second host of the server."""
    spare, project = str(uuid.uuid4()), cloud.api.projects["alt"]
    own = {"id": spare, "project_id": project, "name": "spare", "size_gb": 1, "metadata": {}, "format": "qcow2"}
    made = {
        "type_id": volume_type_records.DEFAULT_ID,
        "status": "available",
        "created_at": 1,
        "updated_at": 1,
        "made_at": 1,
    }
    cloud.api.insert(tables_volumes.volume, **own, **made)
    of_server = {"id": str(uuid.uuid4()), "instance_uuid": cloud.ids["server"], "name": "former", "host": "hv1"}
    kept = {"status": "available", "volumes": [], "created_at": 1, "updated_at": 1}
    cloud.api.insert(tables_images.server_snapshot, **of_server, **kept)
    of_project = {"project_id": project, "server": "alts", "disks": [], "gigabytes": 1, "flavor": {}}
    backup = {**of_server, **of_project, "status": "available", "created_at": 1, "updated_at": 1}
    cloud.api.insert(tables_images.server_backup, **backup)
    copy = {"instance_uuid": cloud.ids["server"], "every": 300, "host": "hv2", "former": []}
    cloud.api.insert(tables_images.replica, **copy, created_at=1, updated_at=1)
    return dataclasses.replace(cloud, ids={**cloud.ids, "spare": spare, "ec2_spare": ids.of("vol", spare)})


def columns_of(rule: StateRule, state: str) -> dict[str, t.Any]:
    """Return the columns of a server in this state which, but for what the state says, allows the operation."""
    vm_states = sorted(rule.vm_states or {"active"})
    return {**AT_REST, "vm_state": vm_states[0], **STATES[state]}


@functools.cache
def restoring(server: str, spare: str, attached: str, attachment: str) -> tuple[sa.sql.expression.UpdateBase, ...]:
    """Return what puts back all that requests make of a server and of what it has, but for its state: built once, for
    to build it takes longer than to do it."""
    links, group, hung = tables_jobs.job_instance, tables.instance_security_group, tables_volumes.volume_attachment
    disk, moves = tables_volumes.volume, tables.tables_migrations.migration
    numbers = sa.select(links.c.job_id).where(links.c.instance_uuid == server)
    number = sa.select(tables.instance.c.id).where(tables.instance.c.uuid == server).scalar_subquery()
    whole = {"id": attachment, "volume_id": attached, "instance_uuid": server, "device": "vdb"}
    return (
        sa.delete(ec2_instance).where(ec2_instance.c.instance_uuid == server),
        sa.delete(tables_jobs.job).where(tables_jobs.job.c.id.in_(numbers)),
        sa.delete(links).where(links.c.instance_uuid == server),
        sa.delete(group).where(group.c.instance_id == number),
        sa.update(tables.vif).where(tables.vif.c.instance_uuid == server).values(status=None),
        sa.delete(hung).where(hung.c.instance_uuid == server),
        sa.insert(hung).values(**whole, created_at=1, attached_at=1),
        sa.update(disk).where(disk.c.id == spare).values(status="available", host=None),
        sa.update(disk).where(disk.c.id == attached).values(status="in-use"),
        sa.delete(moves).where(moves.c.instance_uuid == server),
        sa.delete(tables.image).where(tables.image.c.name == "new"),
        sa.update(tables.floating_ip).values(vif_id=None),
    )


def put(cloud: Cloud, rule: StateRule, state: str) -> None:
    """Put the server `alts` into a state, whatever requests made of it and of what it has."""
    server = cloud.ids["server"]
    protected = {column: column == PROTECTIONS.get(state) for column in PROTECTIONS.values()}
    cloud.api.write(
        sa.update(tables.instance)
        .where(tables.instance.c.uuid == server)
        .values(updated_at=int(time.time()), **columns_of(rule, state)),
        *restoring(server, *(cloud.ids[name] for name in ("spare", "volume", "volume_attachment"))),
        sa.insert(ec2_instance).values(instance_uuid=server, **protected),
    )


def refuses(cloud: Cloud, caller: str, request: Door, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Tell whether the door refuses the request because of the server's state."""
    if isinstance(request, Command):
        request = Playbook(request.module, {**request.arguments, **variables(cloud, request.words, monkeypatch)})
    if isinstance(request, Playbook):
        try:
            cloud.api.task(request.module, check_mode=True, **request.arguments)
        except NovaliteError as error:
            return isinstance(error, StateError) or "since" in str(error)  # a run is at it
        return False
    answer: Answer = cloud.ask(caller, request)
    return answer.text in CODES or (answer.status in (400, 409) and any(words in answer.text for words in SOME))


def variables(cloud: Cloud, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> dict[str, t.Any]:
    """Return what `novalite` with these words tells its playbook."""
    commands: list[t.Sequence[str]] = []
    monkeypatch.setenv("NOVALITE_LEDGER_URL", cloud.api.url)
    monkeypatch.setattr(playbooks, "replace_process", lambda command, _environment: commands.append(command))
    done = click.testing.CliRunner().invoke(cli.main, list(words), catch_exceptions=False)
    assert commands, done.output
    return t.cast("dict[str, t.Any]", json.loads(commands[0][commands[0].index("-e") + 1]))


def caller_of(rule: StateRule) -> str:
    return {"admin": "administrator"}.get(OPERATIONS[rule.policy], OPERATIONS[rule.policy])


def expected(cloud: Cloud, rule: StateRule, state: str, caller: str) -> bool:
    """Tell whether the table refuses the operation."""
    columns = columns_of(rule, state)
    server = {key: columns[key] for key in ("vm_state", "task_state", "host", "locked")}
    seen = state_rules.State(cloud.ids["server"], "alts", **server, adopted=columns["adopted"] is not None)
    if rule.operation == "delete" and state == "deleting":
        return False  # it is deleted once more
    protected = rule.protection is not None and rule.protection == PROTECTIONS.get(state)
    return protected or state_rules.refusal(rule, seen, by_admin=caller == "administrator") is not None


def is_so_already(name: str, state: str) -> bool:
    """Tell whether a playbook has nothing to do: it says which state a server is to be in, and not what to do."""
    if name not in ACTIONS or name in ("reboot", "lock", "unlock"):
        return False
    vm_state = columns_of(RULES[name], state)["vm_state"]
    return vm_state == action_of(name).vm_state or (name, vm_state) == ("shelve", "shelved_offloaded")


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_door_says_what_the_table_says(stateful: Cloud, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, wrong = ROWS[name], {}
    least = caller_of(rule)
    for state in STATES:
        callers = dict.fromkeys((least, "administrator") if state in ("locked", *PROTECTIONS) else (least,))
        for caller in callers:
            for request in doors_of(name, rule):
                door = door_of(request)
                by_operator = isinstance(request, Playbook | Command)  # who is no administrator of an API
                right = expected(stateful, rule, state, "operator" if by_operator else caller)
                if by_operator and is_so_already(name, state):
                    right = state == "under way"
                if state in DIFFERENCES.get((door, name), ((), ""))[0]:
                    right = not right
                put(stateful, rule, state)
                if refuses(stateful, caller, request, monkeypatch) != right:
                    wrong[f"{state}, {caller}: {request}"] = "allowed" if right else "refused"
    assert wrong == {}


def test_every_operation_on_a_server_has_its_states() -> None:
    """Each operation of the policy that a member may do to a server is in the table, or has no server yet."""
    reads = ("index", "detail", "show", "placement", "plan", "console_output", "samples", "action")
    stateless = {
        *(f"compute:servers:{name}" for name in (*reads, "create", "create:forced_host", "create:host_attributes")),
        *(
            f"compute:servers:{name}"
            for name in ("create:private", "all_tenants", "deleted", "extended", "override_lock")
        ),
        *("compute:servers:unshelve_to_host", "compute:servers:migrate_to"),  # beside the action's own entry
    }
    of_servers = {name for name in OPERATIONS if name.startswith("compute:servers:")} - stateless
    assert of_servers <= {rule.policy for rule in RULES.values()} <= set(OPERATIONS)


def test_every_state_rule_has_a_request() -> None:
    assert [name for name, rule in ROWS.items() if not doors_of(name, rule)] == []
