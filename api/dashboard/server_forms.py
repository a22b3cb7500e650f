# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Forms of a server: what is to become of it when its host dies, and the copy of its disks on a second host."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import server_replicas, servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import (
    instance_row,
    labels_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.state_rules import RULES
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural
from ansible_collections.novalite.cloud.plugins.module_utils._rules import backup_policies, ha_wishes

from ..web.context import current
from .forms import Choice, Field, Form, Thing, Values, forms_of


def _server(call: Call, number: str) -> Thing:
    row = instance_row(call.connection, number, current().reach)
    name = labels_of(call.connection, row.uuid).display_name or row.name
    return Thing(name, {"uuid": row.uuid, **servers.ha_of(call.connection, row.uuid)})


def _change_ha(call: Call, thing: Thing, values: Values) -> None:
    servers.change_ha(call, thing.record["uuid"], ha_wishes.of_entry(thing.name, values))


def _held(name: str) -> t.Callable[[Call, Thing], object]:
    return lambda _call, thing: thing.record[name]


def _wish(name: str, label: str, kind: str, note: str = "") -> Field:
    return Field(name, label, kind, note, initial=_held(name), least=ha_wishes.LEAST, greatest=ha_wishes.MOST)


def _copied(call: Call, number: str) -> Thing:
    thing = _server(call, number)
    copy = server_replicas.of_server(call, thing.record["uuid"])
    every, host = ("hourly", None) if copy is None else (backup_policies.time_of(copy.every), copy.requested_host)
    return Thing(thing.name, {**thing.record, "copied": copy is not None, "every": every, "host": host})


def _change_copy(call: Call, thing: Thing, values: Values) -> None:
    (server,) = instances_by(call.connection, uuids=[thing.record["uuid"]])
    if values["copied"]:
        server_replicas.ensure(call, server, values["every"], values["host"] or None)
    else:
        server_replicas.remove(call, server)


def _hosts(call: Call, _thing: Thing) -> list[Choice]:
    return [(name, name) for name in sorted(lookups.compute_host_names(call.connection), key=natural)]


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
    Form(
        "/instances/<number>/replica",
        "Change…",
        "Copy on a second host",
        _change_copy,
        (
            Field("copied", "Its disks are copied", "check", initial=_held("copied")),
            Field("every", "Every", note="(5m, hourly, daily)", required=True, initial=_held("every"), most=16),
            Field("host", "To", "choice", options=_hosts, none="As it is, or any host", initial=_held("host")),
        ),
        find=_copied,
        entry=server_replicas.WRITE,
        page="pages.show_instance",
    ),
)
