# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `capacity_info`: how many more instances the hosts can hold."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules import hints
from ..._rules.volume_mappings import NO_IMAGE
from ..._scheduling import capacity_tools
from ..._scheduling.options import Options
from ..._scheduling.rows import request_of
from ..db import clock
from ..queries import lookups
from ..queries.compute.views import flavor_of, image_of
from ..queries.placement.host_states import EVER, host_states


def capacity_info(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return how many more instances of a flavor fit on each host, and in all, and what is in the way of the next."""
    options = Options.of(params["options"])
    owner = lookups.project_by_name(connection, params["project"])
    image = NO_IMAGE
    if params["image"] is not None:
        image = image_of(lookups.image_by_name(connection, params["image"], owner["id"]))
    server = {
        "uuid": "",
        "name": params["flavor"],
        "project": {"id": owner["id"]},
        "flavor": flavor_of(lookups.flavor_by_name(connection, params["flavor"])),
        "image": image,
        "availability_zone": params["availability_zone"],
        "request": hints.checked(params["flavor"], {"requirements": params["requirements"]}),
    }
    states, _versions = host_states(connection, clock.seconds(connection), params["limit_to"], EVER, with_claims=True)
    rooms = capacity_tools.room(states, request_of(server), options)
    others = {state.name: state.used_by_others for state in states}
    total, closed = sum(room.fits for room in rooms), capacity_tools.bottlenecks(rooms)
    bottleneck = next(iter(closed), None)
    message = f"{total} more of {params['flavor']} fit"
    if bottleneck is not None:
        message += f"; {bottleneck} is in the way of more on {closed[bottleneck]} of {len(rooms)} hosts"
    return {
        "changed": False,
        "fits": total,
        "bottleneck": bottleneck,
        "bottlenecks": closed,
        "hosts": [{**dataclasses.asdict(room), "used_by_others": others[room.host]} for room in rooms],
        "msg": message,
    }
