# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on what EC2's clients say and nobody else: tokens of requests, and attributes of servers."""

from __future__ import annotations

import typing as t

from ...._json import JsonMapping
from ...ec2 import ec2_records
from ..call import Call


class Attributes(t.TypedDict, total=False):
    """Attributes of a server that EC2 alone knows."""

    launch_index: int
    client_token: str
    disable_api_termination: bool
    disable_api_stop: bool
    shutdown_behavior: str
    http_tokens: str


def once(call: Call, action: str, token: str, parameters: JsonMapping, make: t.Callable[[], list[str]]) -> list[str]:
    """Return the UUIDs of what `make` records, or has recorded when the token was used before. Raises OtherRequestError
    for a token of a request with other parameters."""
    made = ec2_records.repeated(call.connection, call.project, action, token, parameters)
    if made is None:
        made = make()
        ec2_records.remember(call.connection, call.project, action, token, made)
    return made


def write_attributes(call: Call, server_uuid: str, values: Attributes) -> None:
    """Keep these attributes of a server."""
    ec2_records.write_attributes(call.connection, server_uuid, values)
