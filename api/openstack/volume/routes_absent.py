# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources of Cinder that this cloud never has: groups, messages and so on.

Their lists are empty, and of none of them is there one, in Cinder's words: so clients that look at everything go on.
"""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError

from ...web.bodies import Answer, Body
from ...web.services import Handler, Layer, takes
from . import listing
from .blueprint import since, volume


class Absent(t.NamedTuple):
    """A kind of resource. `missing` is said of an id; microversion 3.`minor` brought it; `detailed`: as a list, too."""

    path: str
    missing: str
    minor: int = 0
    plural: str = ""  # in answers; without one, as in the path
    operation: str = "volume:read"
    detailed: bool = True


ABSENT = (
    Absent("cgsnapshots", "CgSnapshot {} could not be found."),
    Absent("clusters", "Cluster {} could not be found.", 7, operation="volume:admin"),
    Absent("consistencygroups", "ConsistencyGroup {} could not be found."),
    Absent("default-types", "Default type for project {} not found.", 62, "default_types", "volume:admin", False),
    Absent("group_snapshots", "GroupSnapshot {} could not be found.", 14),
    Absent("group_types", "Group type {} could not be found.", 11, detailed=False),
    Absent("groups", "Group {} could not be found.", 13),
    Absent("messages", "Message {} could not be found.", 3, detailed=False),
    Absent("qos-specs", "No such QoS spec {}.", 0, "qos_specs", "volume:admin", False),
)
MANAGEABLE = {"volumes": "manageable-volumes", "snapshots": "manageable-snapshots"}


def _lists(plural: str) -> Handler:
    def list_nothing() -> Answer:
        listing.check(plural)
        return {plural: []}, 200

    return list_nothing


def _misses(message: str) -> Handler:
    def show_nothing(number: str) -> Answer:
        raise NotFoundError(message.format(number[:60]))

    return show_nothing


for _kind in ABSENT:
    _path, _end = f"/<project>/{_kind.path}", _kind.path.replace("-", "_")
    _layers: tuple[Layer, ...] = (since(_kind.minor),)
    _list, _miss = _lists(_kind.plural or _kind.path), _misses(_kind.missing)
    volume.get(_path, _kind.operation, *_layers, endpoint=f"list_{_end}", strict_slashes=True)(_list)
    if _kind.detailed:
        volume.get(f"{_path}/detail", _kind.operation, *_layers, endpoint=f"detail_{_end}")(_list)
    volume.get(f"{_path}/<number>", _kind.operation, *_layers, endpoint=f"show_{_end}")(_miss)

for _name, _plural in MANAGEABLE.items():  # files that hosts have and the cloud does not know
    for _path in (f"/<project>/manageable_{_name}", f"/<project>/manageable_{_name}/detail"):
        _end = f"list_{_path.replace('/<project>/', '').replace('/', '_')}"
        volume.get(_path, "volume:admin", since(8), endpoint=_end)(_lists(_plural))


@volume.get("/<project>/resource_filters", "volume:read", since(33))
def list_filters() -> Answer:
    """Say by which parameters lists are filtered."""
    resource = request.args.get("resource")
    filters = [*listing.FILTERS, "metadata"]
    kinds = ("volume", "snapshot", "attachment")
    shown: list[Body] = [{"resource": kind, "filters": filters} for kind in kinds if resource in (None, kind)]
    return {"resource_filters": shown}, 200


@volume.put("/<project>/os-services/get-log", "volume:admin", since(32), takes({"type": "object", "properties": {}}))
def show_log_levels(_body: Body) -> Answer:
    """Hosts run no service of ours whose journal has levels."""
    return {"log_levels": []}, 200
