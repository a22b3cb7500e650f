# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions, which anybody may read, and the parts of the API by their names as extensions."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError

from ...web.addresses import base_url
from ...web.bodies import Answer, Body
from .blueprint import MAX_VERSION, MIN_VERSION, compute, compute_versions, text


def _document() -> Body:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": text(MAX_VERSION),
        "min_version": text(MIN_VERSION),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{base_url()}/compute/v2.1/"}],
    }


@compute_versions.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    return {"versions": [_document()]}, 200


@compute.get("/", "version", strict_slashes=False)
def show_version() -> Answer:
    media = [{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}]
    return {"version": {**_document(), "media-types": media}}, 200


UPDATED = "2014-12-03T00:00:00Z"
# Aliases of which the name is made, and those with another name
ALIASES = (
    *("flavors", "ips", "limits", "os-admin-actions", "os-aggregates", "os-attach-interfaces", "os-availability-zone"),
    *("os-block-device-mapping", "os-config-drive", "os-console-output", "os-consoles", "os-evacuate"),
    *("os-extended-volumes", "os-flavor-access", "os-flavor-extra-specs", "os-flavor-manage", "os-floating-ip-pools"),
    *("os-floating-ips", "os-hosts", "os-hypervisors", "os-instance-actions", "os-keypairs", "os-lock-server"),
    *("os-migrate-server", "os-migrations", "os-multiple-create", "os-pause-server", "os-rescue", "os-security-groups"),
    *("os-server-diagnostics", "os-server-external-events", "os-server-groups", "os-server-list-multi-status"),
    *("os-server-password", "os-server-start-stop", "os-services", "os-simple-tenant-usage", "os-suspend-server"),
    *("os-tenant-networks", "os-used-limits", "os-user-data", "os-volumes", "server-metadata", "servers", "versions"),
)
OTHERS = {
    "OS-DCF": "DiskConfig",
    "OS-EXT-AZ": "ExtendedAvailabilityZone",
    "OS-EXT-IMG-SIZE": "ImageSize",
    "OS-EXT-IPS": "ExtendedIps",
    "OS-EXT-IPS-MAC": "ExtendedIpsMac",
    "OS-EXT-SRV-ATTR": "ExtendedServerAttributes",
    "OS-EXT-STS": "ExtendedStatus",
    "OS-FLV-DISABLED": "FlavorDisabled",
    "OS-FLV-EXT-DATA": "FlavorExtraData",
    "OS-SCH-HNT": "SchedulerHints",
    "OS-SRV-USG": "ServerUsage",
    "os-instance_usage_audit_log": "InstanceUsageAuditLog",
    "os-quota-class-sets": "QuotaClasses",
    "os-quota-sets": "Quotas",
}
NAMES = {alias: alias.removeprefix("os-").title().replace("-", "") for alias in ALIASES} | OTHERS
EXTENSIONS = dict(sorted(NAMES.items()))


@compute.get("/extensions", "compute:extensions:read")
def list_extensions() -> Answer:
    return {"extensions": [_extension(alias) for alias in EXTENSIONS]}, 200


@compute.get("/extensions/<alias>", "compute:extensions:read")
def show_extension(alias: str) -> Answer:
    if alias not in EXTENSIONS:
        raise NotFoundError(f"No extension is known as {alias[:60]}")
    return {"extension": _extension(alias)}, 200


def _extension(alias: str) -> Body:
    name = EXTENSIONS[alias]
    namespace = "http://docs.openstack.org/compute/ext/fake_xml"
    return {"alias": alias, "name": name, "description": name, "namespace": namespace, "updated": UPDATED, "links": []}
