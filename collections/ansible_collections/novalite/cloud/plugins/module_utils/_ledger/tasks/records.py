# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on records that there are to be, or not: one of each kind, named as its module."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..catalog.flavors import remove_flavors, write_flavors
from ..catalog.keypairs import remove_keypairs, write_keypairs
from ..network.floating_ips import release_floating_ips, write_floating_ips
from ..network.floating_pools import remove_floating_pools, write_floating_pools
from ..operations.call import Call, by_playbook
from ..operations.identity import projects
from ..placement.aggregates import remove_aggregates, write_aggregates
from ..placement.server_groups import remove_server_groups, write_server_groups

Operation = t.Callable[[sa.Connection, JsonMapping], JsonObject]
Work = t.Callable[..., JsonObject]  # of the connection, the name of a project if it has one, and the records


def _operation(name: str, write: Work, remove: Work, *owner: str) -> Operation:
    """Make the operation `name` make and change, or remove, the records of its params, of the project that they name
    where `owner` is the option for it; `state` holds for all of them."""

    def operate(connection: sa.Connection, params: JsonMapping) -> JsonObject:
        act = remove if params["state"] == "absent" else write
        return act(connection, *(params[option] for option in owner), params[f"{name}s"])

    operate.__name__ = name
    return operate


def _called(act: t.Callable[[Call, t.Sequence[JsonMapping]], JsonObject]) -> Work:
    return lambda connection, items: act(by_playbook(connection), items)


aggregate = _operation("aggregate", write_aggregates, remove_aggregates)
flavor = _operation("flavor", write_flavors, remove_flavors)
floating_ip = _operation("floating_ip", write_floating_ips, release_floating_ips, "project")
floating_pool = _operation("floating_pool", write_floating_pools, remove_floating_pools)
keypair = _operation("keypair", write_keypairs, remove_keypairs, "project")
project = _operation("project", _called(projects.write), _called(projects.remove))
server_group = _operation("server_group", write_server_groups, remove_server_groups, "project")
