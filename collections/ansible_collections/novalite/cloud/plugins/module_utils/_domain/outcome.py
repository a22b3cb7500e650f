# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outcomes for domains: the state before, what was done about it, and the modules' diff. Plain data; runs on hosts."""

from __future__ import annotations

import dataclasses
import typing as t

from .._json import JsonObject
from . import compare

MISSING = "missing"


class DomainSpec(t.TypedDict):
    """Entry of the modules' `domains`. Only a domain that is to run, or to be compared, needs `xml`."""

    uuid: str
    name: str
    xml: t.Optional[str]


# What the modules' argument_spec says of it
DOMAIN_OPTIONS = {
    "uuid": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "xml": {"type": "str"},
}


class PowerSpec(DomainSpec):
    """Entry of domain_power's `domains`."""

    hard: t.Optional[bool]
    shutdown_timeout: t.Optional[float]  # seconds; None: the task's
    as_defined: t.Optional[bool]  # it is started as it is, without `xml`: somebody else defined it


@dataclasses.dataclass
class Outcome:
    """A domain before (`before`: its persistent XML, None when it was missing) and after."""

    uuid: str
    name: str
    state: str  # running, paused, shutoff, ..., missing
    action: str = "none"  # none, start, redefine and start, define and start, remove
    differences: list[compare.Difference] = dataclasses.field(default_factory=list)
    before: str | None = None
    displayed_anew: bool = False  # its next start gives it another display than it had, or its first one
    before_state: str = MISSING
    error: str | None = None  # why nothing, or not all, was done; of domain_power alone

    @property
    def changed(self) -> bool:
        return self.action != "none"

    def as_dict(self) -> JsonObject:
        """The module's row of this domain."""
        return {name: getattr(self, name) for name in ("uuid", "name", "state", "action", "differences")}


def diff_of(outcomes: t.Sequence[Outcome], specs: t.Sequence[DomainSpec]) -> list[JsonObject]:
    """Ansible's diff of what changed: of each new domain the XML as text, of the others the modelled fields."""
    desired = {spec["uuid"]: spec.get("xml") for spec in specs}
    before: dict[str, JsonObject | None] = {}
    after: dict[str, JsonObject | None] = {}
    texts = []
    for outcome in outcomes:
        if not outcome.changed:
            continue
        if outcome.before is None:
            xml = desired[outcome.uuid]
            texts.append({"before_header": outcome.name, "after_header": outcome.name, "before": "", "after": xml})
            continue
        xml = outcome.before if outcome.action == "start" else desired[outcome.uuid]
        before[outcome.name] = _fields(outcome.before, outcome.before_state)
        after[outcome.name] = _fields(None if outcome.state == MISSING else xml, outcome.state)
    fields: JsonObject = {"before": {"domains": before}, "after": {"domains": after}}
    return [*([fields] if after else []), *texts]


def _fields(xml: str | None, state: str) -> JsonObject | None:
    return None if xml is None else {"state": state, **compare.as_dict(compare.parse(xml))}
