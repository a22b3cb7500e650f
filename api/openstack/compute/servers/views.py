# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers as the Compute API shows them: records of server_listing in, bodies out."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._model.whole_servers import domain_name
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import status_of

from ....web import policy
from ....web.addresses import base_url
from ....web.bodies import Body, Record
from ....web.host_names import host_id
from ....web.times import iso, precise
from ..blueprint import Version, microversion

_WITH_PROGRESS = frozenset(["ACTIVE", "BUILD", "DELETED", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"])


@dataclasses.dataclass(frozen=True)
class RenderContext:
    """Context of a rendered server: the microversion, whether it has Nova's extended attributes, the API's root."""

    version: Version
    extended: bool
    root: str  # the URL of "/", with the slash

    @property
    def shows_user_data(self) -> bool:
        """Tell whether a server's details include its user data, for administrators only: it may hold secrets."""
        return self.extended and self.version >= (2, 3)

    def from_version(self, first: Version, fields: Body) -> Body:
        """`fields`, which came with microversion `first`; none in an earlier one."""
        return fields if self.version >= first else {}

    def href(self, kind: str, resource_id: str) -> str:
        return f"{self.root}compute/v2.1/{kind}/{resource_id}"

    def links(self, kind: str, resource_id: str) -> list[Body]:
        return [{"rel": "self", "href": self.href(kind, resource_id)}, *self.bookmark(kind, resource_id)]

    def bookmark(self, kind: str, resource_id: str) -> list[Body]:
        return [{"rel": "bookmark", "href": f"{self.root}compute/{kind}/{resource_id}"}]


def render_context() -> RenderContext:
    """Return the current request's context."""
    return RenderContext(microversion(), policy.allowed("compute:servers:extended"), f"{base_url()}/")


def brief(record: Record, context: RenderContext) -> Body:
    """An item of GET /servers."""
    return {
        "id": record["uuid"],
        "name": record["display_name"] or record["name"],
        "links": context.links("servers", record["uuid"]),
    }


def detail(record: Record, context: RenderContext) -> Body:
    """An item of GET /servers/detail; also GET /servers/{id}."""
    status = status_of(record["vm_state"], record["task_state"])
    groups = [{"name": name} for name in record["security_groups"]]
    volumes = []
    for volume in record["volumes"]:
        kept = {"delete_on_termination": volume["delete_on_termination"]}
        volumes.append({"id": volume["volume_id"], **context.from_version((2, 3), kept)})
    return {
        **brief(record, context),
        "status": status,
        "tenant_id": record["project_id"],
        "user_id": record["user_id"] or "",
        "metadata": record["metadata"],
        "hostId": host_id(record["project_id"], record["host"]),
        "image": _image(record, context),
        "flavor": _flavor(record["flavor"], context),
        "created": iso(record["created_at"]),
        "updated": iso(record["updated_at"]),
        "addresses": addresses(record["nics"]),
        "accessIPv4": record["access_ip_v4"] or "",
        "accessIPv6": record["access_ip_v6"] or "",
        "OS-DCF:diskConfig": record["disk_config"],
        **({"progress": 0} if status in _WITH_PROGRESS else {}),
        **({"fault": _fault(record)} if status in ("ERROR", "DELETED") and record["fault"] else {}),
        "OS-EXT-AZ:availability_zone": record["zone"] or "",
        "config_drive": "True" if record["config_drive"] else "",
        "key_name": record["key_name"],
        "OS-SRV-USG:launched_at": precise(record["launched_at"]),
        "OS-SRV-USG:terminated_at": precise(record["terminated_at"]),
        **({"security_groups": groups} if groups else {}),
        "OS-EXT-STS:task_state": record["task_state"],
        "OS-EXT-STS:vm_state": record["vm_state"],
        "OS-EXT-STS:power_state": record["power_state"],
        "os-extended-volumes:volumes_attached": volumes,
        **(_for_admins(record, context) if context.extended else {}),
        **context.from_version((2, 9), {"locked": record["locked"]}),
        **context.from_version((2, 19), {"description": record["description"]}),
        **context.from_version((2, 26), {"tags": record["tags"]}),
        **context.from_version((2, 63), {"trusted_image_certificates": None}),
        **context.from_version((2, 73), {"locked_reason": record["locked_reason"]}),
        **context.from_version((2, 90), {"OS-EXT-SRV-ATTR:hostname": record["hostname"]}),
        **context.from_version((2, 96), {"pinned_availability_zone": record["availability_zone"]}),
    }


def _for_admins(record: Record, context: RenderContext) -> Body:
    later = {
        **{"reservation_id": record["reservation_id"], "launch_index": 0, "hostname": record["hostname"]},
        **{"kernel_id": "", "ramdisk_id": "", "root_device_name": "/dev/vda"},
        "user_data": record.get("user_data"),
    }
    attributes: Body = {
        **dict.fromkeys(("host", "hypervisor_hostname"), record["host"]),
        "instance_name": domain_name(record["id"], record["adopted"]),
        **context.from_version((2, 3), later),
    }
    status = context.from_version((2, 16), {"host_status": _host_status(record)})
    return {**{f"OS-EXT-SRV-ATTR:{name}": value for name, value in attributes.items()}, **status}


# What the answers to PUT and to a rebuild had not before they became the same as a look at the server
_NOT_OF_CHANGES = re.compile(
    r"OS-EXT-(AZ|STS|SRV-ATTR):|OS-SRV-USG:|os-extended-volumes:|(config_drive|key_name|security_groups|host_status)$"
)


def changed(record: Record, context: RenderContext) -> Body:
    """A server as the answer to its change shows it."""
    body = detail(record, context)
    if context.version >= (2, 75):
        return body
    body["addresses"] = addresses(record["nics"], extended=False)
    return {key: value for key, value in body.items() if not _NOT_OF_CHANGES.match(key)}


def rebuilt(record: Record, context: RenderContext) -> Body:
    """A server as the answer to its rebuild shows it, but for its password and user data."""
    body = changed(record, context)
    if context.version >= (2, 54):
        body["key_name"] = record["key_name"]
    body.pop("OS-EXT-SRV-ATTR:user_data", None)  # it is there by a name of its own
    return body


def created(
    uuid: str, group_names: list[str], password: str, context: RenderContext, disk_config: str = "MANUAL"
) -> Body:
    """The answer to POST /servers."""
    return {
        "server": {
            "id": uuid,
            "links": context.links("servers", uuid),
            "OS-DCF:diskConfig": disk_config,
            "security_groups": [{"name": name} for name in group_names or ["default"]],
            "adminPass": password,
        }
    }


def addresses(nics: t.Iterable[Record], extended: bool = True) -> dict[str, list[Body]]:
    """{network: its addresses}; floating ones with the interface that they lead to."""
    by_network: dict[str, list[Body]] = {}
    for nic in nics:
        fixed = [(4, address, "fixed") for address in nic["ips"]]
        floating = [(4, address, "floating") for address in nic["floating_ips"]]
        for version, address, kind in [*fixed, (6, nic["ipv6"], "fixed"), *floating]:
            if address is not None:
                more = {"OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": nic["mac"]} if extended else {}
                by_network.setdefault(nic["network"], []).append({"version": version, "addr": address, **more})
    return by_network


def _flavor(flavor: Record, context: RenderContext) -> Body:
    if context.version < (2, 47):
        return {"id": flavor["flavorid"], "links": context.bookmark("flavors", flavor["flavorid"])}
    return {
        "vcpus": flavor["vcpus"],
        "ram": flavor["memory_mb"],
        "disk": flavor["root_gb"],
        "ephemeral": flavor["ephemeral_gb"],
        "swap": flavor["swap_mb"],
        "original_name": flavor["name"],
        "extra_specs": flavor["extra_specs"],
    }


def _image(record: Record, context: RenderContext) -> Body | str:
    """Nothing, as in Nova, for one that starts from a volume."""
    if any(volume["boot_index"] == 0 for volume in record["volumes"]):
        return ""
    return {"id": record["image_id"], "links": context.bookmark("images", record["image_id"])}


def _fault(record: Record) -> Body:
    fault = record["fault"]
    return {
        "code": fault.get("code", 500),
        "created": iso(int(fault.get("created", record["updated_at"]))),
        "message": fault.get("message", ""),
    }


def _host_status(record: Record) -> str:
    if record["host"] is None:
        return ""
    if record["host_up"] is None:
        return "UNKNOWN"
    if not record["host_up"]:
        return "DOWN"
    return "UP" if record["host_enabled"] else "MAINTENANCE"
