# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shape of what a host was found to have (_drift/host_scan.py), on its way to the ledger."""

from __future__ import annotations

import typing as t

from .._json import Json, JsonObject


class Tap(t.TypedDict):
    """The device by which a running guest is on its bridge; `master` is where it is plugged in really."""

    device: str
    bridge: str
    master: str | None
    filter: str | None
    unfiltered: bool


class FoundDomain(t.TypedDict):
    uuid: str
    name: str
    state: str
    reason: str  # why it is off, if libvirt knows
    macs: list[str]
    taps: list[Tap]


class Chain(t.TypedDict):
    """The firewall's chains of an instance, by its number, its UUID, and the addresses that lead to them."""

    id: int
    uuid: str | None  # None in chains of a novalite that did not mark them
    addresses: list[str]


class Remnant(t.TypedDict):
    """A device or mount that nobody is at."""

    what: str
    name: str
    disk: str


class RemovedDay(t.TypedDict):
    """Removals of repairs on one day that are still in the bin."""

    day: str  # 2026-11-01
    disks: int
    bytes: int


class MoveWay(t.TypedDict):
    """Openings that a move left on a host, and its end closes; `id` and `uuid` are empty where nobody knows them."""

    id: str
    uuid: str
    what: list[str]  # key, authorized_keys, gate, incoming
    expired: bool  # it is too old to open anything


class Look(t.TypedDict):
    """Result of a look at a host: everything of novalite's that is there."""

    looked_at: float  # seconds since the epoch, by the host's clock
    domains: list[FoundDomain]
    disks: list[str]  # UUIDs
    files: dict[str, list[str]]  # UUID -> names
    removed: list[RemovedDay]
    volumes: list[str]
    copies: list[str]  # UUIDs of servers whose disks were copied here
    missing_bases: dict[str, list[str]]  # UUID -> checksums
    stale_devices: list[Remnant]
    move_ways: list[MoveWay]
    filters: list[str]
    filter_uuids: dict[str, str]  # name -> UUID
    chains: list[Chain]
    dhcp_networks: list[dict[str, Json]]  # as the module `dhcp` takes them
    dhcp_owners: dict[str, str]  # bridge -> mark
    bridges: list[str]
    bridge_owners: dict[str, list[str]]  # bridge -> marks


class Kept(t.TypedDict):
    """Host `name` as its scan `found` it, with its copies of the ledger: records by UUID, and its own; and the `marks`
    that ledgers, by their identities, have left there."""

    name: str
    found: Look
    records: dict[str, str | None]
    host_record: str | None
    marks: dict[str, JsonObject]
