# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves between compute hosts that keep their files in different directories."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..db.tables import compute_host


def state_dirs(connection: sa.Connection) -> dict[str, str]:
    """Where each compute host keeps images, instances and volumes, by its name."""
    rows = connection.execute(sa.select(compute_host.c.name, compute_host.c.state_dir))
    return {row.name: row.state_dir for row in rows}


def live_destinations(
    connection: sa.Connection, host: str, destination: str | None, limit_to: t.Collection[str] | None
) -> t.Collection[str] | None:
    """Those of the hosts `limit_to` (None: any) that a guest of `host` can go to while it runs.

    It takes the names of its files along: its QEMU has them open, and libvirt carries its definition over. Raises
    NovaliteError when the `destination` that was asked for, or every other host, keeps its files elsewhere.
    """
    known = state_dirs(connection)
    here = known.get(host)
    alike = {name for name, directory in known.items() if directory == here}
    if alike == known.keys():
        return limit_to
    advice = "a guest that runs takes the names of its disks along; migrate it while it is off (migrate.yml)"
    if destination is not None and destination not in alike:
        raise NovaliteError(
            f"host {destination} keeps instances in {known.get(destination)}, {host} in {here}: {advice}"
        )
    if alike <= {host}:
        raise NovaliteError(f"no other host keeps instances in {here} as {host} does: {advice}")
    return sorted(alike if limit_to is None else alike & set(limit_to))
