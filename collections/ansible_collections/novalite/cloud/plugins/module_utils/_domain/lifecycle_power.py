# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring this host's domains into a power state: each for itself, so that one that fails keeps no other from it."""

from __future__ import annotations

import contextlib
import time
import typing as t

from .._errors import ConflictError, NovaliteError
from .._host import asker
from .._host.libvirt_connection import with_filters
from .._host.waiting import in_threads
from . import lifecycle
from .outcome import MISSING, Outcome, PowerSpec

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

SHUTDOWN_TIMEOUT = 60.0  # seconds, Nova's shutdown_timeout
SHUTDOWN_RETRY = 10.0  # seconds, Nova's too: a guest that is still booting does not hear the first one
POLL = 0.2  # seconds
RUNNING, PAUSED, STOPPED, SUSPENDED, REBOOTED = "running", "paused", "stopped", "suspended", "rebooted"
SAVED = "saved"  # shut off, with its memory on disk (libvirt's managed save)
# What a domain is in libvirt's words when it is in the wanted state.
AFTERWARDS = {RUNNING: "running", PAUSED: "paused", STOPPED: "shutoff", SUSPENDED: SAVED, REBOOTED: "running"}

_START = {MISSING: "define and start", "shutoff": "start", "crashed": "start"}
_HUNG = ("paused", "suspended", "shutting down")  # no guest's CPU runs that could hear a power button
# wanted state -> state that it is in -> what is to be done; what is not here cannot be done
_TODO = {
    RUNNING: {**_START, "running": "none", "paused": "resume", "suspended": "wake up", SAVED: "restore"},
    PAUSED: {"paused": "none", "running": "pause"},
    STOPPED: {
        "shutoff": "none",
        "crashed": "none",
        "running": "shut down",
        **dict.fromkeys(_HUNG, "power off"),
        SAVED: "discard saved memory",
    },
    SUSPENDED: {SAVED: "none", "running": "save", "paused": "save"},
    REBOOTED: {
        **_START,
        "running": "shut down and start",
        **dict.fromkeys(_HUNG, "power off and start"),
        SAVED: "discard saved memory and start",
    },
}
ACTIONS = sorted({action for actions in _TODO.values() for action in actions.values()})


def ensure(
    connection: libvirt.virConnect,
    domains: t.Sequence[PowerSpec],
    state: str,
    check_mode: bool = False,
    shutdown_timeout: float = SHUTDOWN_TIMEOUT,
    missing_ok: bool = False,
) -> list[Outcome]:
    """Bring every domain into `state`; where that fails, its outcome has an `error`.

    `running` starts what is off (from its saved memory, where there is one) and lets go on what is paused. `stopped`
    asks the guest to shut down, and cuts off its power after `shutdown_timeout` seconds (the spec's own comes first, 0
    does not ask); all guests of one call shut down at the same time. `suspended` saves the memory to the host's disk.
    `rebooted` is `stopped` and then a start from the given definition; with the spec's `hard` nobody is asked. A guest
    that does not shut down keeps its power when the caller is gone by then. With `missing_ok`, a domain that there is
    none of is `stopped`.
    """
    outcomes = [_look(connection, spec, state, missing_ok) for spec in domains]
    todo = [(spec, outcome) for spec, outcome in zip(domains, outcomes) if outcome.changed]
    if check_mode:
        for _spec, outcome in todo:
            outcome.state = AFTERWARDS[state]
        return outcomes
    _ask_to_shut_down(connection, todo, shutdown_timeout)

    def carry_out(item: tuple[PowerSpec, Outcome]) -> None:
        spec, outcome = item
        try:
            with lifecycle.clear(f"domain {spec['name']} cannot be {state}"):
                _carry_out(connection, spec, outcome, state)
            outcome.state = AFTERWARDS[state]
        except NovaliteError as error:
            outcome.error, outcome.state = str(error), state_now(connection, spec["uuid"])

    in_threads(carry_out, todo, lifecycle.WORKERS)
    return outcomes


def diff_of(outcomes: t.Sequence[Outcome]) -> dict[str, dict[str, str]]:
    """Ansible's diff: the state of each domain that changed."""
    changed = [outcome for outcome in outcomes if outcome.changed]
    return {
        "before": {outcome.name: outcome.before_state for outcome in changed},
        "after": {outcome.name: f"{outcome.state} ({outcome.action})" for outcome in changed},
    }


def _look(connection: libvirt.virConnect, spec: PowerSpec, state: str, missing_ok: bool) -> Outcome:
    """Look at a domain; the outcome's `action` is what is to be done to it."""
    try:
        (outcome,) = lifecycle.inspect(connection, [spec])
        lifecycle.refuse_conflict(connection, spec, outcome)
        if outcome.before_state == "shutoff":
            outcome.before_state = outcome.state = state_now(connection, spec["uuid"])
    except NovaliteError as error:
        return Outcome(spec["uuid"], spec["name"], "unknown", before_state="unknown", error=str(error))
    if missing_ok and state == STOPPED and outcome.before_state == MISSING:
        return outcome
    action = _TODO[state].get(outcome.before_state)
    if action is None:
        outcome.error = f"domain {spec['name']} is {outcome.before_state}, and cannot be {state} from there"
        return outcome
    if spec.get("hard") and action == "shut down and start":
        action = "power off and start"
    there = spec.get("as_defined") and outcome.before_state != MISSING
    if action.endswith("start") and not spec.get("xml") and not there:
        outcome.error = f"domain {spec['name']} is to be started, but has no xml"
        return outcome
    if action.endswith("start") and action != _START[MISSING] and lifecycle.differs_when_off(outcome):
        action = action[: -len("start")] + "redefine and start"
    outcome.action = action
    return outcome


def _ask_to_shut_down(
    connection: libvirt.virConnect, todo: t.Sequence[tuple[PowerSpec, Outcome]], default_timeout: float
) -> None:
    """Ask all guests that are to shut down, and return when each has, or its time is over. What goes wrong here is no
    matter: what still runs afterwards is powered off."""
    begun = time.monotonic()
    waiting: dict[str, tuple[libvirt.virDomain, float]] = {}  # UUID -> domain, end of its time
    for spec, outcome in todo:
        own = spec.get("shutdown_timeout")
        timeout = default_timeout if own is None else own
        if outcome.action.startswith("shut down") and timeout > 0:
            with contextlib.suppress(NovaliteError):
                waiting[spec["uuid"]] = (lifecycle.present(connection, spec["uuid"]), begun + timeout)
    ask = begun
    while waiting:
        now = time.monotonic()
        asking = now >= ask
        if asking:
            ask = now + SHUTDOWN_RETRY
        for uuid, (domain, end) in list(waiting.items()):
            try:
                off = not domain.isActive()
                if asking and not off and now < end:
                    domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
            except libvirt.libvirtError:
                off = True  # it went in between, or takes no such thing
            if off or now >= end:
                del waiting[uuid]
        if waiting:
            time.sleep(POLL)


def _carry_out(connection: libvirt.virConnect, spec: PowerSpec, outcome: Outcome, state: str) -> None:
    """Do `outcome.action`; guests that were to shut down have had their time."""
    uuid, name, action = spec["uuid"], spec["name"], outcome.action
    if action == "resume":
        lifecycle.present(connection, uuid).resume()
    elif action == "wake up":
        lifecycle.present(connection, uuid).pMWakeup(0)
    elif action == "restore":
        domain = lifecycle.present(connection, uuid)
        with_filters(domain.create)
        lifecycle.wait_until_running(domain, name, lifecycle.START_TIMEOUT)
    elif action == "pause":
        lifecycle.present(connection, uuid).suspend()
    elif action == "save":
        # RUNNING: restored, it goes on, also if it was paused
        lifecycle.present(connection, uuid).managedSave(libvirt.VIR_DOMAIN_SAVE_RUNNING)
    else:
        if state in (STOPPED, REBOOTED):
            # its time lasts longer than many a controller: an outage that nobody would end is worse than none
            if action.startswith("shut down") and asker.has_gone() and lifecycle.is_active(connection, uuid):
                raise NovaliteError("it did not shut down in time, and nobody waits for it any more: it runs on")
            _power_off(connection, uuid)
        if state in (RUNNING, REBOOTED):
            lifecycle.start(connection, spec, outcome)


def _power_off(connection: libvirt.virConnect, uuid: str) -> None:
    lifecycle.destroy(connection, uuid)
    domain = lifecycle.lookup(connection, uuid)
    # create() would go on with the saved memory
    if domain is not None and domain.hasManagedSaveImage(0):
        domain.managedSaveRemove(0)


def state_now(connection: libvirt.virConnect, uuid: str) -> str:
    """The state of a domain: `saved`, when it is off with its memory on disk; `unknown` where libvirt does not say."""
    with contextlib.suppress(NovaliteError), lifecycle.clear("its state cannot be read"):
        domain = lifecycle.lookup(connection, uuid)
        if domain is None:
            return MISSING
        state = lifecycle.state_of(domain)
        return SAVED if state == "shutoff" and domain.hasManagedSaveImage(0) else state
    return "unknown"


def refuse_running(connection: libvirt.virConnect, uuids: t.Iterable[str], why: str) -> None:
    """Raise ConflictError, which says `why`, when one of these instances runs on this host."""
    for uuid in uuids:
        if lifecycle.is_active(connection, uuid):
            raise ConflictError(f"instance {uuid} runs on this host: {why}")
