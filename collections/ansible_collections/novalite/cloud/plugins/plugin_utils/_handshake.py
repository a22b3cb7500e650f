# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's side of what a trip compares before its first step.

Is this the machine that the ledger means, and the ledger that the machine knows? module_utils/_host/mark.py is the
host's side. And is an order about guests, which carries a token, as new as what the host was told? The token has the
epoch of the host's last fencing and the term of the watcher; of a task without one, they are those that the ledger has
just before the trip, where healing is armed. It is compared by the first step of the trip itself
(module_utils/_steps/epoch_token.py), so that no time lies in between.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._errors import ConflictError, NovaliteError
from ..module_utils._host.mark import UNKNOWN_MARK, Expected, Seen
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._ledger.placement.host_marks import MOST, HostMarks, Known, SameMachineError
from ..module_utils._rules.machines import Meeting, refusal
from . import _home

T = t.TypeVar("T")

TOKEN = "novalite_token"  # of a host, or of a play: `epoch` and `term`; none where there is no watcher
TOKEN_STEP = "epoch_token"

# What builds, starts, moves or removes a guest: modules and steps, and which of their states; None for any
ORDERS: t.Mapping[str, c.Collection[str] | None] = {
    "disk": ("present", "anew", "absent"),
    "disk_move": ("accepted", "sent", "received", "restored"),
    "domain": None,
    "domain_power": ("running", "rebooted"),
    "live_migration": None,
}
ATTEMPTS = 10  # of a trip that meets, each time, what another run has left meanwhile


class HostRefusedError(NovaliteError):
    """A machine that is not the host that the ledger means, or knows a newer ledger: nothing was done on it."""


@dataclasses.dataclass(frozen=True)
class Errand:
    """Errand of a trip to `host`: it `looks` only, or changes nothing (`check_mode`); the host may have `any_mark`, was
    renamed from `former`, or its machine was `replaced`."""

    host: str
    looks: bool = False
    any_mark: bool = False
    check_mode: bool = False
    former: str | None = None
    replaced: bool = False

    @property
    def leaves(self) -> bool:
        """Tell whether the trip leaves a mark: what changes nothing does not have to be known of afterwards."""
        return not (self.looks or self.check_mode or self.replaced)


class Handshake:
    """Handshake with a host in one trip: what is expected of it, and what follows from what is met there."""

    def __init__(self, marks: HostMarks, errand: Errand, known: Known) -> None:
        self._marks, self._errand, self._known, self._attempts = marks, errand, known, 0

    @classmethod
    def begin(cls, marks: HostMarks, errand: Errand) -> Handshake | None:
        """Ask the ledger what it has of the host; None where it cannot say. Raises NovaliteError."""
        known = marks.begin(errand.host, errand.leaves)
        if known is None:
            return None
        if known.behind is not None and errand.leaves and errand.former is None:
            raise NovaliteError(
                f"{errand.host}: nothing is changed, for the ledger is behind its hosts ({known.behind}): run "
                "ledger_rebuild.yml, which asks all hosts"
            )
        return cls(marks, errand, known)

    @property
    def expected(self) -> JsonObject:
        """The part of the trip's request that the host compares."""
        known, errand = self._known, self._errand
        expected = Expected(
            ledger=known.ledger,
            host=errand.host,
            known=known.recorded,
            identity=known.identity,
            marks=None if errand.any_mark or known.behind is not None else known.marks,
            leave=known.token,
            former=errand.former,
            replaced=errand.replaced,
        )
        return dataclasses.asdict(expected)

    def take(self, go: c.Callable[[JsonObject, bool], tuple[Seen, T]]) -> T:
        """Have `go` make the trip: it has the host compare itself with what is expected, with the steps or without, and
        returns what was met, and how the steps went, which is returned. Raises HostRefusedError, NovaliteError."""
        known = self._known
        if self._errand.leaves and known.recorded and (known.identity is None or len(known.sent) >= MOST):
            # without a step: nobody has asked the machine who it is, or nobody knows which of many marks it has
            while not self._settled(go(self.expected, False)[0]):
                pass
            self._known = self._marks.begin(self._errand.host, self._errand.leaves) or known
        while True:
            seen, done = go(self.expected, True)
            if self._settled(seen):
                return done

    def _settled(self, seen: Seen) -> bool:
        """Record what was met; return False for a trip that is to be sent again, since another run's has changed the
        mark meanwhile. Raises HostRefusedError, ConflictError, NovaliteError."""
        host, known = self._errand.host, self._known
        if seen.refused == UNKNOWN_MARK and self._has_changed():
            return False
        others = self._marks.same_machine(host, seen.identity) if seen.refused or not known.identity else []
        if seen.refused is None and not others:
            try:
                token = known.token if seen.left else None
                news = (
                    token is not None or self._errand.replaced or seen.identity.keys() - (known.identity or {}).keys()
                )
                if not self._errand.check_mode and (news or known.identity is None):
                    self._marks.arrived(host, token, seen.identity, self._errand.replaced)
                return True
            except SameMachineError as error:
                others = error.names
        reason = refusal(Meeting(host, seen, known.recorded, known.identity, others))
        if known.token is not None:
            self._marks.forget(host, known)
        if seen.refused == UNKNOWN_MARK and not (others or self._errand.check_mode):
            self._marks.fall_behind(reason)
        raise HostRefusedError(reason)

    def _has_changed(self) -> bool:
        """Ask the ledger once more after a mark that it did not know: a trip of another run may have left it since.
        One whose marks have not changed in between has never known it."""
        before = self._known
        self._attempts += 1
        if self._attempts > ATTEMPTS:
            raise ConflictError(f"{self._errand.host}: other runs change it again and again; run again")
        self._known = self._marks.begin(self._errand.host, self._errand.leaves, instead_of=before) or before
        return self._known.by_others != before.by_others


def is_order(step: JsonMapping) -> bool:
    """Tell whether a step, with its validated arguments, is an order about guests that must not be older."""
    if step["module"] not in ORDERS:
        return False
    states = ORDERS[step["module"]]
    return states is None or step["args"]["state"] in states


def guard_of(
    steps: c.Iterable[JsonMapping],
    task_vars: JsonMapping,
    templar: _home.Templar,
    age_now: c.Callable[[], JsonMapping | None] = lambda: None,
) -> JsonObject | None:
    """Return the step that compares the age of a trip with these `steps`: that of its token, or else what `age_now`
    returns; None where it has neither, or needs none. Raises AnsibleActionFail for a token that makes no sense."""
    if not any(map(is_order, steps)):
        return None
    token = templar.template(task_vars[TOKEN]) if TOKEN in task_vars else None
    if token and (not isinstance(token, dict) or set(token) != {"epoch", "term"}):
        raise AnsibleActionFail(f"{TOKEN} {token!r} is not a token: it has an epoch and a term")
    age = token or age_now()
    if not age:
        return None
    return {"name": "Compare the epoch of the order", "module": TOKEN_STEP, "args": {**age, "state": "checked"}}


def without_guard(results: list[JsonObject]) -> list[JsonObject]:
    """Return the `results` of the steps behind the guard. Raises AnsibleActionFail, with `refused_token`, where the
    host refused the token, and has done nothing."""
    if results and (result := results[0]["result"]).get("failed"):
        words = {name: result[name] for name in ("refused", "kept") if name in result}
        raise AnsibleActionFail(result["msg"], result={"refused_token": words})
    return results[1:]
