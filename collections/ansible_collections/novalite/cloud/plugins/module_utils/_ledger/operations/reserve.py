# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reserve for the death of a host, as the ledger has it: which instances would find room elsewhere."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import NotFoundError
from ..._json import JsonMapping, JsonObject
from ..._scheduling import reserve
from ..._scheduling.balance_placed import Placed
from ..._scheduling.options import Options
from ..._scheduling.rows import request_of, unpinned
from ..db import clock
from ..queries.compute.views import instances_by
from ..queries.placement.groups import groups_of
from ..queries.placement.host_states import EVER, host_states
from ..volumes.ha_disks import local_volumes


def losses(
    connection: sa.Connection,
    host: str | None = None,
    options: JsonMapping | None = None,
    limit_to: t.Collection[str] | None = None,
) -> list[JsonObject]:
    """The loss of each host that has instances (of `host` alone, if it is named), as the module documents `hosts`.

    Raises NotFoundError for a `host` that the ledger does not know, NovaliteError for an unknown option.
    """
    chosen = Options.of(options)
    states, _versions = host_states(
        connection, clock.seconds(connection), limit_to, EVER, with_instances=True, with_claims=True
    )
    asked = [state.name for state in states if host in (None, state.name)]
    if host is not None and not asked:
        raise NotFoundError(f"compute host {host} could not be found")
    instances = {instance["uuid"]: instance for instance in instances_by(connection, hosts=asked)}
    groups, volumes = groups_of(connection, list(instances.values())), local_volumes(connection)
    placed: list[Placed] = []
    bound: dict[str, list[reserve.Stranded]] = collections.defaultdict(list)
    for uuid, instance in instances.items():
        here, name = instance["host"] or "", instance["name"]
        if instance["adopted"] is not None:
            reason = f"{name!r} was adopted: its disks are on {here} alone, and novalite cannot make them anew"
        elif uuid in volumes:
            reason = f"{name!r} has volume {volumes[uuid]}, which is on {here} alone"
        else:
            placed.append(Placed(request_of({**unpinned(instance), "attempts": []}, groups.get(uuid)), here))
            continue
        bound[here].append(reserve.Stranded(uuid, name, reason))
    return [_shown(loss) for loss in reserve.losses(states, placed, bound, chosen)]


def _shown(loss: reserve.Loss) -> JsonObject:
    return {**dataclasses.asdict(loss), "stranded": [dataclasses.asdict(instance) for instance in loss.stranded]}
