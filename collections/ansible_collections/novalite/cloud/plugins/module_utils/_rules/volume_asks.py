# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes in the request for a server. Plain data in, plain data out, no SQL."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._errors import NovaliteError
from .._json import Json
from .server_options import MAX_VOLUMES
from .server_options import VOLUME as VOLUME_OPTIONS

CONTAINER = "bare"

BLANK, IMAGE, SNAPSHOT, VOLUME = "blank", "image", "snapshot", "volume"
_KNOWN = {option.name for option in VOLUME_OPTIONS}
_OPTIONS = ", ".join(sorted(_KNOWN))


@dataclass(frozen=True)
class VolumeRequest:
    """Volume that a server is asked for with: one that exists, or one to be made. `of` is an id."""

    source: str
    of: str | None = None
    size_gb: int | None = None
    type: str | None = None
    boot: bool = False
    device: str | None = None
    tag: str | None = None
    delete_on_termination: bool = False


def parse(name: str, value: Json) -> tuple[VolumeRequest, ...]:
    """Volumes as a playbook names them: a list of {"volume"} or {"size", "type", "snapshot"}, with "boot" and so on."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_VOLUMES or not all(isinstance(item, dict) for item in value):
        raise NovaliteError(f"volumes of '{name}': give a list of at most {MAX_VOLUMES} dictionaries")
    requests = []
    for item in value:
        if unknown := sorted(map(str, item.keys() - _KNOWN)):
            raise NovaliteError(f"a volume of '{name}' has no option '{unknown[0][:60]}': use {_OPTIONS}")
        boot = item.get("boot") is True
        kind, of = BLANK, None
        if item.get("volume"):
            kind, of = VOLUME, str(item["volume"])
        elif item.get("snapshot"):
            kind, of = SNAPSHOT, str(item["snapshot"])
        elif boot:
            kind = IMAGE  # the server's own
        size = item.get("size")
        if kind == BLANK and size is None:
            raise NovaliteError(f"a volume of '{name}' has neither a size nor a name: give size, volume or snapshot")
        if size is not None and (isinstance(size, bool) or not str(size).isdigit() or not 0 < int(size) < 2**31):
            raise NovaliteError(f"a volume of '{name}' has the size {size!r}: give GiB")
        requests.append(
            VolumeRequest(
                source=kind,
                of=of,
                size_gb=None if size is None else int(size),
                type=item.get("type"),
                boot=boot,
                device=item.get("device"),
                delete_on_termination=item.get("delete_on_termination") is True,
            )
        )
    if sum(request.boot for request in requests) > 1:
        raise NovaliteError(f"'{name}' is to start from several volumes: say boot of one")
    return tuple(requests)


def root_of(requests: t.Iterable[VolumeRequest]) -> VolumeRequest | None:
    """The volume that a server starts from, instead of a disk of its own."""
    return next((request for request in requests if request.boot), None)
