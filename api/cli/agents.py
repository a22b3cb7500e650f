# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that a running guest has by its own account: its agent is asked on the server's host, by the ssh_config
that every launch writes. Only a server whose image promises an agent costs that."""

from __future__ import annotations

import json

import click

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

from . import looking
from .tables import Record

LONGEST = 10.0  # seconds, with the way to the host


def addresses(record: Record) -> dict[str, list[str]] | None:
    """Return the addresses by MAC of a server as looking.server() returns it; none where the host or the agent does not
    answer, and None for a server that has no agent or does not run."""
    if record["vm_state"] != "active" or record["host"] is None:
        return None
    from ansible_collections.novalite.cloud.plugins.module_utils._guest import image_properties

    try:
        if not image_properties.guest_agent(record["image"]):
            return None
    except NovaliteError:  # registered before such a value was refused
        return None
    from ansible_collections.novalite.cloud.plugins.module_utils._domain import guest_addresses
    from ansible_collections.novalite.cloud.plugins.module_utils._host import command
    from ansible_collections.novalite.cloud.plugins.module_utils._ssh.config import addresses_command

    try:
        path, local = looking.way_to(record["host"])
        argv = addresses_command(record["host"], record["uuid"], path, local, guest_addresses.AGENT_TIMEOUT)
        interfaces = json.loads(command.run(argv, timeout=LONGEST).stdout)
    except (click.ClickException, command.CommandError, ValueError):
        return {}
    return guest_addresses.by_mac(interfaces) if isinstance(interfaces, dict) else {}
