# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the Compute API by the names that they had as extensions. Old clients look for some of them."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError

from ...web import policy
from .blueprint import Answer, compute

UPDATED = "2014-12-03T00:00:00Z"
EXTENSIONS = {
    "OS-DCF": "DiskConfig",
    "OS-EXT-AZ": "ExtendedAvailabilityZone",
    "OS-EXT-SRV-ATTR": "ExtendedServerAttributes",
    "OS-EXT-STS": "ExtendedStatus",
    "OS-FLV-DISABLED": "FlavorDisabled",
    "OS-FLV-EXT-DATA": "FlavorExtraData",
    "OS-SCH-HNT": "SchedulerHints",
    "OS-SRV-USG": "ServerUsage",
    "flavors": "Flavors",
    "ips": "Ips",
    "limits": "Limits",
    "os-aggregates": "Aggregates",
    "os-availability-zone": "AvailabilityZone",
    "os-config-drive": "ConfigDrive",
    "os-console-output": "ConsoleOutput",
    "os-consoles": "Consoles",
    "os-flavor-extra-specs": "FlavorExtraSpecs",
    "os-flavor-manage": "FlavorManage",
    "os-hosts": "Hosts",
    "os-hypervisors": "Hypervisors",
    "os-instance-actions": "InstanceActions",
    "os-keypairs": "Keypairs",
    "os-lock-server": "LockServer",
    "os-multiple-create": "MultipleCreate",
    "os-pause-server": "PauseServer",
    "os-quota-sets": "Quotas",
    "os-security-groups": "SecurityGroups",
    "os-server-groups": "ServerGroups",
    "os-services": "Services",
    "os-simple-tenant-usage": "SimpleTenantUsage",
    "os-suspend-server": "SuspendServer",
    "os-user-data": "UserData",
    "server-metadata": "ServerMetadata",
    "servers": "Servers",
    "versions": "Versions",
}


@compute.get("/extensions")
@policy.allows("compute:extensions:read")
def list_extensions() -> Answer:
    return {"extensions": [_extension(alias) for alias in EXTENSIONS]}, 200


@compute.get("/extensions/<alias>")
@policy.allows("compute:extensions:read")
def show_extension(alias: str) -> Answer:
    if alias not in EXTENSIONS:
        raise NotFoundError(f"No extension is known as {alias[:60]}")
    return {"extension": _extension(alias)}, 200


def _extension(alias: str) -> dict[str, t.Any]:
    name = EXTENSIONS[alias]
    namespace = "http://docs.openstack.org/compute/ext/fake_xml"
    return {"alias": alias, "name": name, "description": name, "namespace": namespace, "updated": UPDATED, "links": []}
