# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shape of a move on its way between module `server_migration`, its playbooks and the hosts' plans."""

from __future__ import annotations

import typing as t

from .instance import Flavor


class _Move(t.TypedDict):
    uuid: str  # the instance's
    name: str
    domain_name: str
    id: str  # the move's own
    action: str
    from_host: str
    to_host: str
    from_flavor: Flavor
    to_flavor: Flavor
    same_host: bool
    starts: bool
    why: list[str]


class Move(_Move, total=False):
    """One move as playbooks pass it on: from where the guest is now to where it is to be afterwards."""

    known: bool  # whether its guest is where it was, should it not have moved


class Error(t.TypedDict):
    """What became of one of several instances, for whoever asked for it."""

    uuid: str
    name: str
    message: str
