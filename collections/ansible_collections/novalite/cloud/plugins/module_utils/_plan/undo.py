# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan of what the undo of a failed build takes away: what this very run made, and nothing that it found. Pure."""

from __future__ import annotations

import typing as t

from .._disk.layout import DISK
from .._disk.overlay import NOTE
from .._json import JsonMapping, JsonObject

# part of a plan that reclaim takes away -> the module whose step makes it
_MAKERS = {
    "domains": "domain",
    "dhcp_networks": "dhcp",
    "firewall_instances": "firewall",
    "filters": "nwfilter",
    "staying_routers": "router",
    "last_routers": "router",
    "last_metadata_networks": "metadata_proxy",
    "last_bridges": "bridge",
    "disks": "disk",
    "volumes_gone": "volume_disk",
}
_NEW = ("create", "copy")  # actions of volume_disk


def made_by(plan: JsonMapping, steps: t.Sequence[JsonMapping]) -> JsonObject:
    """The `plan` of a build with what its `steps` made, as host_steps returns them, alone.

    A step that failed may have done a part. Where no step is told of, because the answer of the host was lost, nobody
    knows what was made: all goes that is marked as these instances' own, but the data of volumes.
    """
    if not steps:
        return {**plan, "volumes_gone": []}
    results = [(step["module"], step["result"]) for step in steps]
    makers = {module for module, result in results if result.get("changed") or result.get("failed")}
    made = {**plan, **{part: [] for part, module in _MAKERS.items() if module not in makers}}
    disks = {
        disk["uuid"]
        for _module, result in results
        for disk in result.get("disks", ())
        if {DISK, NOTE} & set(disk.get("created", ()))
    }
    volumes = {
        volume["id"]
        for _module, result in results
        for volume in result.get("volumes", ())
        if volume["action"] in _NEW and volume["error"] is None
    }
    made["disks"] = [disk for disk in made["disks"] if disk["uuid"] in disks]
    made["volumes_gone"] = [volume for volume in made["volumes_gone"] if volume["id"] in volumes]
    return made
