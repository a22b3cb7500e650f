# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consoles of servers: who may have one, and the token that opens it once."""

from __future__ import annotations

import typing as t

from ..._errors import ConflictError, NovaliteError
from ..._guest import image_properties
from ..._model.rows import InstanceRow
from ..identity import console_tokens
from ..queries.compute.server_listing import image_of
from ..queries.identity import token_holders
from .call import Call

NOVNC, SERIAL = "novnc", "serial"
TYPES: t.Final = (NOVNC, SERIAL)  # Nova's names of those that there are
POLICY = "compute:server-consoles"
_OFF = ("building", "stopped", "suspended", "shelved", "shelved_offloaded")


def open_console(call: Call, row: InstanceRow, console_type: str, holder: str) -> str:
    """Return a token for the server's console, which ends with the caller's own, of the hash `holder`. Raises
    ConflictError for a server that is off, NovaliteError for a type of console that it has not."""
    call.check(POLICY)
    if console_type not in available(call, row):
        raise NovaliteError(f"Unavailable console type {console_type}.")
    if not _is_on(row):
        raise ConflictError("Instance not yet ready")
    return console_tokens.issue(call.connection, token_holders.Way(holder, row.uuid, console_type))


def redeem(call: Call, text: str) -> token_holders.Way | None:
    """Use up a token; None for one that is void. Of two at once, one gets it."""
    return console_tokens.redeem(call.connection, text)


def offered(call: Call, row: InstanceRow) -> tuple[str, ...]:
    """The types of console that the caller could open now."""
    return available(call, row) if call.permits(POLICY) and _is_on(row) else ()


def _is_on(row: InstanceRow) -> bool:
    return row.host is not None and row.vm_state not in _OFF


def available(call: Call, row: InstanceRow) -> tuple[str, ...]:
    """The types of console that the server has: its image may want no display. What others made is as they made it."""
    shown = row.adopted is not None or image_properties.video_model(image_of(call.connection, row.uuid)) is not None
    return TYPES if shown else (SERIAL,)
