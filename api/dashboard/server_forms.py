# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Form of a server: what is to become of it when its host dies."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.server_listing import (
    instance_row,
    labels_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.state_rules import RULES
from ansible_collections.novalite.cloud.plugins.module_utils._rules import ha_wishes

from ..web.context import current
from .forms import Field, Form, Thing, Values, forms_of


def _server(call: Call, number: str) -> Thing:
    row = instance_row(call.connection, number, current().reach)
    name = labels_of(call.connection, row.uuid).display_name or row.name
    return Thing(name, {"uuid": row.uuid, **servers.ha_of(call.connection, row.uuid)})


def _change_ha(call: Call, thing: Thing, values: Values) -> None:
    servers.change_ha(call, thing.record["uuid"], ha_wishes.of_entry(thing.name, values))


def _wish(name: str, label: str, kind: str, note: str = "") -> Field:
    def held(_call: Call, thing: Thing) -> object:
        return thing.record[name]

    return Field(name, label, kind, note, initial=held, least=ha_wishes.LEAST, greatest=ha_wishes.MOST)


SERVER_FORMS = forms_of(
    RULES["change_ha"].policy,
    Form(
        "/instances/<number>/ha",
        "Change…",
        "If its host dies",
        _change_ha,
        (
            _wish("ha", "It runs again on another host", "check"),
            _wish("ha_priority", "Priority", "number", "(the highest come first)"),
            _wish("ha_rebuild", "A new disk of its image will do", "check", "(what it wrote is lost with the host)"),
        ),
        find=_server,
        page="pages.show_instance",
    ),
)
