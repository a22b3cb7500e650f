# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags on networks, subnets, ports, routers, security groups and floating IPs. All of these have UUIDs."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..db.tables_networking import resource_tag

MAX_TAGS = 50  # Neutron's


def replace_tags(connection: sa.Connection, number: str, tags: t.Iterable[str]) -> None:
    """Let the resource have these tags and no others. Raises NovaliteError for too many."""
    distinct_tags = sorted(set(tags))
    if len(distinct_tags) > MAX_TAGS:
        raise NovaliteError(f"{len(distinct_tags)} tags: {MAX_TAGS} is the limit")
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id == number))
    if distinct_tags:
        connection.execute(sa.insert(resource_tag), [{"resource_id": number, "tag": tag} for tag in distinct_tags])
