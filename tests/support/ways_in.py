# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ssh_config and the guests' files beside it, written without a ledger."""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import directory_of, render, render_guests
from ansible_collections.novalite.cloud.plugins.module_utils._ssh.way_in import WayIn


def write_ways(
    path: pathlib.Path,
    instances: t.Sequence[Instance],
    ways: t.Mapping[str, WayIn],
    known_hosts: str = "/k",
    identity: str | None = None,
) -> str:
    """Write them as the operation does; returns the guests' blocks."""
    path.write_text(render(ways, identity, str(path)))
    guests = render_guests(instances, ways, known_hosts, identity, str(path))
    directory = pathlib.Path(directory_of(str(path)))
    directory.mkdir(exist_ok=True)
    for uuid, text in guests.items():
        (directory / uuid).write_text(text)
    return "\n".join(guests.values())
