# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matters as lines of the overview: one each, with the page that says more, and no more than can be read."""

from __future__ import annotations

import typing as t

from flask import url_for

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.backup_ages import Ages
from ansible_collections.novalite.cloud.plugins.module_utils._model.listed_hosts import Host

from ..notices import matters
from ..notices.matters import BALANCE, HEALING, HOST, UNCONFINED, Matter

NAMED = 8  # servers and hosts that have a line of their own


class Line(t.NamedTuple):
    """Matter as the overview shows it; `path` leads to the page."""

    about: str
    state: str
    problem: str
    path: str


def of_hosts(hosts: t.Sequence[Host]) -> list[Line]:
    """Return the lines of hosts. What holds for several is one line: it would hide all else."""
    every = url_for("pages.list_hosts")
    troubled = matters.of_hosts(hosts)
    lines = _named([matter for matter in troubled if matter.state != UNCONFINED], "hosts", every)
    unconfined = [matter for matter in troubled if matter.state == UNCONFINED]
    if unconfined:
        about = unconfined[0].about if len(unconfined) == 1 else f"{len(unconfined)} of {len(hosts)} hosts"
        lines.append(Line(about, UNCONFINED, unconfined[0].problem, every))
    return lines


def of_healing(status: JsonMapping) -> list[Line]:
    """Return the lines of healing, as operations.healing.status() has it."""
    return _named(matters.of_healing(status), "not healed", url_for("pages.list_hosts"))


def of_backups(late: t.Sequence[Ages]) -> list[Line]:
    """Return the lines of servers whose backups are late, as backup_ages.late() has them."""
    return _named(matters.of_backups(late), "backups", url_for("pages.list_backup_ages"))


def of_servers(troubled: t.Sequence[JsonMapping], errors: str) -> list[Line]:
    """Return the lines of servers, as status.troubled() has them; `errors` leads to the list of those in error."""
    some = matters.of_servers(troubled)
    silent = _named([matter for matter in some if matter.state != "error"], "silent", url_for("pages.list_instances"))
    return [*silent, *_named([matter for matter in some if matter.state == "error"], "error", errors)]


def _named(some: t.Sequence[Matter], more: str, path: str) -> list[Line]:
    """Return a line each for the first ones, and one with the number of the others, which leads to `path`."""
    lines = [Line(matter.about, matter.state, matter.problem, _page(matter)) for matter in some[:NAMED]]
    if len(some) > NAMED:
        lines.append(Line(f"{len(some) - NAMED} more", more, "", path))
    return lines


def _page(matter: Matter) -> str:
    if matter.kind in (HEALING, BALANCE):
        return url_for("pages.list_hosts")
    if matter.kind == HOST:
        return url_for("pages.show_host", name=matter.id)
    return url_for("pages.show_instance", uuid=matter.id)
