# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The actions addFixedIp and removeFixedIp, until microversion 2.43: from then on a port's `fixed_ips` are changed."""

from __future__ import annotations

import functools
import typing as t

from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, PoolExhaustedError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import ports
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web.bodies import Record
from ....web.errors import BadRequestError, in_words
from ....web.schemas import Schema, an_object
from ..blueprint import Version
from ..servers.routes_actions import ACTIONS, Action

LAST: Version = (2, 43)
ADD = an_object({"networkId": {"type": ["string", "integer"], "minLength": 1, "maxLength": 255}}, ["networkId"])
REMOVE = an_object({"address": {"type": "string", "format": "ipv4", "maxLength": 45}}, ["address"])
Change = t.Callable[[Call, InstanceRow, str], None]


def _schema(schema: Schema, version: Version) -> Schema:
    if version > LAST:
        raise NotFound()
    return schema


def _change(call: Call, server: InstanceRow, value: Record, *, key: str, change: Change) -> None:
    with in_words({PoolExhaustedError: BadRequestError, NovaliteError: BadRequestError}):
        change(call, server, str(value[key]).lower())


for _name, _body, _key, _do in (
    ("addFixedIp", ADD, "networkId", ports.add_fixed_ip),
    ("removeFixedIp", REMOVE, "address", ports.remove_fixed_ip),
):
    ACTIONS[_name] = Action(
        "network:ports:write", functools.partial(_schema, _body), functools.partial(_change, key=_key, change=_do)
    )
