# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quotas, and how much of them is taken. Everybody reads its own project's, administrators read and set all."""

from __future__ import annotations

import functools
import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.usage import usage
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.quota_records import (
    default_limits,
    quota_limits,
)

from ...web import policy
from ...web.bodies import Answer, Record
from ...web.context import check_project, current
from ...web.errors import BadRequestError
from ...web.schemas import LIMIT, Schema, wrapped
from ...web.services import reads, takes, writes, writes_checked
from ...work.calls import calling
from .blueprint import CLEAN, Version, compute, known, microversion
from .servers.schemas import BOOLEAN, TRUE

# Nova's names in Nova's order: ours, and the last microversion that has it
RESOURCES: dict[str, tuple[str, Version]] = {
    "cores": ("cores", (3, 0)),
    "fixed_ips": ("fixed_ips", (2, 35)),
    "floating_ips": ("floating_ips", (2, 35)),
    "injected_file_content_bytes": ("injected_file_content_bytes", (2, 56)),
    "injected_file_path_bytes": ("injected_file_path_length", (2, 56)),
    "injected_files": ("injected_files", (2, 56)),
    "instances": ("instances", (3, 0)),
    "key_pairs": ("key_pairs", (3, 0)),
    "metadata_items": ("metadata_items", (3, 0)),
    "ram": ("ram", (3, 0)),
    "security_group_rules": ("security_group_rules", (2, 35)),
    "security_groups": ("security_groups", (2, 35)),
    "server_group_members": ("server_group_members", (3, 0)),
    "server_groups": ("server_groups", (3, 0)),
}
DEFAULT_CLASS = "default"
QUERY = known(CLEAN, "user_id")


def _schema(key: str, more: Schema) -> Schema:
    limits = [name for name, (_ours, last) in RESOURCES.items() if microversion() <= last]
    return wrapped(key, {**dict.fromkeys(limits, LIMIT), **more})


OF_PROJECT = functools.partial(_schema, "quota_set", {"force": BOOLEAN, "tenant_id": {"type": "string"}})
OF_CLASS = functools.partial(_schema, "quota_class_set", {"id": {"type": "string", "maxLength": 255}})


@compute.get("/os-quota-sets/<project>", "compute:quotas:read", defaults={"default": False})
@compute.get("/os-quota-sets/<project>/defaults", "compute:quotas:read", QUERY, reads, defaults={"default": True})
def show_quotas(connection: Connection, project: str, default: bool) -> Answer:
    owner = check_project(connection, project)
    limits = default_limits(connection) if default else quota_limits(connection, owner)
    return {"quota_set": {"id": project, **_shown(limits)}}, 200


@compute.get("/os-quota-sets/<project>/detail", "compute:quotas:read", QUERY, reads)
def show_quotas_in_detail(connection: Connection, project: str) -> Answer:
    owner = check_project(connection, project)
    limits = _shown(quota_limits(connection, owner))
    used = counts.used(connection, owner)
    detail = {
        name: {"limit": limit, "in_use": used.get(RESOURCES[name][0], 0), "reserved": 0}
        for name, limit in limits.items()
    }
    return {"quota_set": {"id": project, **detail}}, 200


@compute.put("/os-quota-sets/<project>", "compute:quotas:write", QUERY, takes(OF_PROJECT), writes_checked)
def update_quotas(connection: Connection, body: Record, project: str) -> Answer:
    owner = check_project(connection, project)
    limits = quotas.set_limits(calling(connection), owner, _limits(body), force=body.get("force", False) in TRUE)
    return {"quota_set": _shown(limits)}, 200


@compute.delete("/os-quota-sets/<project>", "compute:quotas:write", QUERY, writes)
def delete_quotas(connection: Connection, project: str) -> Answer:
    owner = check_project(connection, project)
    quotas.reset(calling(connection), owner, [ours for ours, _last in RESOURCES.values()])
    return "", 202


@compute.get("/os-quota-class-sets/<name>", "compute:quotas:write", reads)
def show_class(connection: Connection, name: str) -> Answer:
    """Show a quota class. Only one exists, for projects without own limits; any other name shows the same limits."""
    return {"quota_class_set": {"id": name, **_shown(default_limits(connection))}}, 200


@compute.put("/os-quota-class-sets/<name>", "compute:quotas:write", takes(OF_CLASS), writes)
def update_class(connection: Connection, body: Record, name: str) -> Answer:
    if name != DEFAULT_CLASS:
        raise BadRequestError(f"there is no quota class '{name[:60]}': projects have the limits of '{DEFAULT_CLASS}'")
    return {"quota_class_set": _shown(quotas.set_default_limits(calling(connection), _limits(body)))}, 200


def _limits(body: Record) -> dict[str, int]:
    """Limits in a body, by our names."""
    return {ours: int(body[name]) for name, (ours, _last) in RESOURCES.items() if name in body}


def _shown(limits: t.Mapping[str, int]) -> dict[str, int]:
    return {name: limits[ours] for name, (ours, last) in RESOURCES.items() if microversion() <= last}


# --- GET /limits ----------------------------------------------------------------------------------------------------


# name in the answer, resource, and the last microversion that shows it
_LIMITS: tuple[tuple[str, str, Version | None], ...] = (
    ("maxTotalInstances", "instances", None),
    ("maxTotalCores", "cores", None),
    ("maxTotalRAMSize", "ram", None),
    ("maxTotalKeypairs", "key_pairs", None),
    ("maxServerMeta", "metadata_items", None),
    ("maxServerGroups", "server_groups", None),
    ("maxServerGroupMembers", "server_group_members", None),
    ("maxImageMeta", "metadata_items", (2, 38)),
    ("maxPersonality", "injected_files", (2, 56)),
    ("maxPersonalitySize", "injected_file_content_bytes", (2, 56)),
    ("maxSecurityGroups", "security_groups", (2, 35)),
    ("maxSecurityGroupRules", "security_group_rules", (2, 35)),
    ("maxTotalFloatingIps", "floating_ips", (2, 35)),
)
_USED: dict[str, tuple[str, Version | None]] = {
    "totalServerGroupsUsed": ("server_groups", None),
    "totalSecurityGroupsUsed": ("security_groups", (2, 35)),
    "totalFloatingIpsUsed": ("floating_ips", (2, 35)),
}


@compute.get("/limits", "compute:limits", known(CLEAN, "reserved tenant_id"), reads)
def show_limits(connection: Connection) -> Answer:
    """`reserved` asks to count what is reserved as taken: here nothing is in between, and the answer is the same."""
    caller, version = current(), microversion()
    project_id = request.args.get("tenant_id") or caller.project
    if project_id != caller.project:
        policy.check("compute:limits:other_project")
    limits = quota_limits(connection, project_id)
    used = usage(connection, project_id, ("instances",))
    absolute = {name: limits[what] for name, what, last in _LIMITS if last is None or version <= last}
    absolute |= {"totalInstancesUsed": used["instances"], "totalCoresUsed": used["cores"], "totalRAMUsed": used["ram"]}
    for name, (kind, last) in _USED.items():
        if last is None or version <= last:
            absolute[name] = counts.owned(connection, project_id, kind)
    return {"limits": {"rate": [], "absolute": absolute}}, 200
