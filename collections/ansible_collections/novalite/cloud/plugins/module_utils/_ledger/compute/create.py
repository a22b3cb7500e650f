# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""New servers, whoever asks for them: what each may be, how many a project may have, and their records.

The playbooks' door (operations/server.py) looks up what is called by names, and a server's name is its handle; the
APIs' (new_servers.py) looks up ids, and a name is only shown. Both end here.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing.macs import MAC_PREFIX
from ..._guest import image_properties
from ..._model.instance import Flavor, Image
from ..._rules.volume_asks import VolumeRequest, root_of
from ..queries.usage import usage
from .server_requests import check_fits, check_own_quota, check_quota
from .server_writes import NewInstance, write


def check_image(name: str, flavor: Flavor, image: Image, volumes: t.Sequence[VolumeRequest]) -> None:
    """Raise NovaliteError for an image that a server cannot start from: now, and not when a host is to build it."""
    # the volume that it starts from is looked at when that is recorded
    check_fits(name, flavor if root_of(volumes) is None else {**flavor, "root_gb": 0}, image)
    image_properties.check(image)


def amounts(flavors: t.Sequence[Flavor], nics: int) -> dict[str, int]:
    """What quotas count of servers of these flavors, one for each, with so many interfaces in all."""
    return {
        "instances": len(flavors),
        "cores": sum(flavor["vcpus"] for flavor in flavors),
        "ram": sum(flavor["memory_mb"] for flavor in flavors),
        "fixed_ips": nics,
    }


def record_servers(
    connection: sa.Connection,
    project_id: str,
    new_instances: list[NewInstance],
    limits: t.Mapping[str, int],
    request_id: str,
    now: int,
    *,
    mac_prefix: str = MAC_PREFIX,
    user_id: str | None = None,
) -> None:
    """Record new servers: see write(), which this adds the quotas to. Raises QuotaError.

    The project's are looked at when the servers are written: what was counted before may have grown since, where the
    database lets two transactions read at once.
    """
    for new_instance in new_instances:
        check_own_quota(new_instance.request, limits)
    write(connection, project_id, new_instances, request_id, now, mac_prefix, user_id)
    asked = amounts([plan.flavor for plan in new_instances], sum(len(plan.nics) for plan in new_instances))
    limited = [what for what in asked if asked[what] and limits.get(what, -1) >= 0]
    used = usage(connection, project_id, limited)
    check_quota(asked, {what: used[what] - asked[what] for what in used}, limits)
