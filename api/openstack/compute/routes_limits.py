# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GET /limits: the project's quotas, and how much of them is taken."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import quotas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import counts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.usage import usage

from ...web.bodies import Answer
from ...web.context import current
from ...web.errors import ForbiddenError
from ...web.ledger import reading_ledger
from .blueprint import compute
from .microversions import Version, microversion

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


@compute.get("/limits", "compute:limits")
def show_limits() -> Answer:
    """`reserved` asks to count what is reserved as taken: here nothing is in between, and the answer is the same."""
    caller, version = current(), microversion()
    project_id = request.args.get("tenant_id") or caller.project
    if project_id != caller.project and not caller.is_admin:
        raise ForbiddenError("Policy doesn't allow compute:limits:other_project to be performed.")
    with reading_ledger() as connection:
        limits = quotas.quota_limits(connection, project_id)
        used = usage(connection, project_id, ("instances",))
        absolute = {name: limits[what] for name, what, last in _LIMITS if last is None or version <= last}
        absolute |= {
            "totalInstancesUsed": used["instances"],
            "totalCoresUsed": used["cores"],
            "totalRAMUsed": used["ram"],
        }
        for name, (kind, last) in _USED.items():
            if last is None or version <= last:
                absolute[name] = counts.owned(connection, project_id, kind)
    return {"limits": {"rate": [], "absolute": absolute}}, 200
