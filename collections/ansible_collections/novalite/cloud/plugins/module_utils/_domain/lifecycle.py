# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Define, start, look at and remove domains on this host's libvirtd. Each function takes all of a host's domains."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
import time
import typing as t
import uuid as uuids

from .._disk.records import forget_fresh, keep_definition
from .._errors import ConflictError, NotFoundError, NovaliteError
from .._host.libvirt_connection import with_filters
from .._host.waiting import in_threads
from .._json import JsonObject
from . import compare, host_devices, ledgers
from .declared_disks import promised_gb
from .outcome import MISSING, DomainSpec, Outcome

with contextlib.suppress(ImportError):  # connect() reports it, so that a module can still say what else it knows
    import libvirt

START_TIMEOUT = 60.0  # seconds between libvirt's "started" and the guest's CPUs running
# libvirtd's max_client_requests by default: it lets more of one client's calls wait, and warns about it in its log.
WORKERS = 5
APPARMOR_PROFILES = "/etc/apparmor.d/libvirt"
_ACTIVE, _INACTIVE = 1, 2  # VIR_CONNECT_LIST_DOMAINS_*
_AS_DEFINED = 2  # VIR_DOMAIN_XML_INACTIVE: a running guest is not asked for its balloon
_RESUME = "resume"  # the action of an Outcome, as in lifecycle_power
_STATES = {1: "running", 2: "running", 3: "paused", 4: "shutting down", 5: "shutoff", 6: "crashed", 7: "suspended"}
T = t.TypeVar("T")


@contextlib.contextmanager
def clear(what: str) -> t.Iterator[None]:
    """Translate libvirt's error into a NovaliteError: one line, after `what` it was that went wrong."""
    try:
        yield
    except libvirt.libvirtError as error:
        raise NovaliteError(f"{what}: {' '.join(error.get_error_message().split())}") from None


@contextlib.contextmanager
def ignoring(*codes: int) -> t.Iterator[None]:
    """Go on after libvirt's errors with these codes."""
    try:
        yield
    except libvirt.libvirtError as error:
        if error.get_error_code() not in codes:
            raise


def list_domains(connection: libvirt.virConnect, directory: str) -> list[JsonObject]:
    """List all domains of this host by name, whoever made them, with their state and what they take: MiB, vCPUs, and
    the GiB that their disks may come to take of the file system of `directory`."""
    domains = []
    for listed, state in ((_ACTIVE, "running"), (_INACTIVE, "shutoff")):
        for domain in connection.listAllDomains(listed):
            with contextlib.suppress(libvirt.libvirtError):  # it ended, or was undefined, just now
                _state, _most, memory_kib, vcpus, _cpu_time = domain.info()
                row: JsonObject = {"uuid": domain.UUIDString(), "name": domain.name(), "state": state}
                xml = domain.XMLDesc(_AS_DEFINED)
                row |= {"disk_gb": promised_gb(xml, directory), "ledger": ledgers.maker(xml)}
                domains.append({**row, "vcpus": vcpus, "memory_mb": memory_kib // 1024})
    return sorted(domains, key=lambda domain: str(domain["name"]))


def inspect(connection: libvirt.virConnect, domains: t.Sequence[DomainSpec]) -> list[Outcome]:
    """Read the state of each domain, and its differences from its `xml` (when there is one). Changes nothing."""
    outcomes = []
    for spec in domains:
        domain = lookup(connection, spec["uuid"])
        if domain is None:
            outcomes.append(Outcome(spec["uuid"], spec["name"], MISSING))
            continue
        with clear(f"domain {spec['name']} cannot be read"):
            persistent, live = _descriptions(domain)
            state = state_of(domain)
        outcome = Outcome(spec["uuid"], domain.name(), state, before=persistent or live, before_state=state)
        if spec.get("xml"):
            outcome.differences = compare.differences(
                _desired(spec),
                None if persistent is None else compare.parse(persistent),
                None if live is None else compare.parse(live),
            )
            outcome.displayed_anew = compare.displays(str(spec["xml"])) != compare.displays(str(persistent or live))
        outcomes.append(outcome)
    return outcomes


def ensure_running(
    connection: libvirt.virConnect,
    domains: t.Sequence[DomainSpec],
    check_mode: bool = False,
    timeout: float = START_TIMEOUT,
    together: bool = False,
) -> list[Outcome]:
    """Start every domain that does not run. A missing domain is defined and started, one that is shut off is started
    (redefined first when its persistent XML differs), an active one is left alone and its differences are reported.

    With `together`, several are started paused, as Nova does while it waits for a port, and resumed when all of them
    are there: guests that boot would take the processors from those that are to be started. One that is paused is
    resumed, for an earlier call was cut off in between.

    All or nothing: when one fails, what this call started is destroyed, what it defined undefined, and what it
    redefined gets its former XML back. Raises NovaliteError, ConflictError when another domain holds a name; `timeout`
    is in seconds for each start.
    """
    outcomes = inspect(connection, domains)
    todo = []
    for spec, outcome in zip(domains, outcomes):
        _desired(spec)
        refuse_conflict(connection, spec, outcome)
        outcome.action = _RESUME if together and outcome.before_state == "paused" else _action(outcome)
        if outcome.changed:
            todo.append((spec, outcome))
            outcome.state = "running"
    if check_mode or not todo:
        return outcomes

    undo: list[t.Callable[[], None]] = []  # appended to from threads, which a list allows
    stop = threading.Event()
    paused = together and len(todo) > 1

    def bring_up(item: tuple[DomainSpec, Outcome]) -> None:
        if stop.is_set():  # another one failed already: this one would be undone at once
            return
        try:
            _bring_up(connection, item[0], item[1], timeout, undo, paused)
        except NovaliteError:
            stop.set()
            raise

    failures = _failures(bring_up, todo)
    if paused and not failures:
        failures = _failures(lambda item: _resume(connection, item[0], timeout), todo)
    if failures:
        raise NovaliteError("; ".join([*failures, *_failures(_undo, undo)]))
    return outcomes


def ensure_defined(
    connection: libvirt.virConnect, domains: t.Sequence[DomainSpec], check_mode: bool = False
) -> list[Outcome]:
    """Define every domain that is missing, from its xml, without starting it. Others are left as they are. Raises
    NovaliteError, and ConflictError when another domain holds a name."""
    outcomes = inspect(connection, domains)
    for spec, outcome in zip(domains, outcomes):
        _desired(spec)
        refuse_conflict(connection, spec, outcome)
        if outcome.before_state == MISSING:
            outcome.action, outcome.state = "define", "shutoff"
    if not check_mode:
        for spec, outcome in zip(domains, outcomes):
            if outcome.changed:
                forget_fresh(str(spec["xml"]))
                with clear(f"domain {spec['name']} cannot be defined"):
                    define(connection, spec)
    return outcomes


def ensure_absent(
    connection: libvirt.virConnect, domains: t.Sequence[DomainSpec], check_mode: bool = False
) -> list[Outcome]:
    """Remove every domain with one of these UUIDs, running or defined. What libvirt leaves of a domain goes, too, even
    where the guest was migrated away and ended elsewhere."""
    outcomes = inspect(connection, [DomainSpec(uuid=spec["uuid"], name=spec["name"], xml=None) for spec in domains])
    todo = [outcome for outcome in outcomes if outcome.before_state != MISSING]
    for outcome in todo:
        outcome.action, outcome.state = "remove", MISSING
    if check_mode:
        return outcomes

    def remove(outcome: Outcome) -> None:
        with clear(f"domain {outcome.name} cannot be removed"):
            _remove(connection, outcome.uuid)

    # In threads: libvirt's destroy waits for the end of the QEMU process, about 2 s for an emulated guest.
    if failures := _failures(remove, todo):
        raise NovaliteError("; ".join(failures))
    for outcome in outcomes:
        _forget_profile(outcome.uuid)
    return outcomes


def start(connection: libvirt.virConnect, spec: DomainSpec, outcome: Outcome, timeout: float = START_TIMEOUT) -> None:
    """Start one domain that does not run, by `outcome.action` ("define ...", "redefine ..." or without either). When it
    does not start, what this call defined is as before. Raises NovaliteError."""
    undo: list[t.Callable[[], None]] = []
    try:
        _bring_up(connection, spec, outcome, timeout, undo)
    except NovaliteError as error:
        raise NovaliteError("; ".join([str(error), *_failures(_undo, undo)])) from None


def _action(outcome: Outcome) -> str:
    if outcome.before_state == MISSING:
        return "define and start"
    if outcome.before_state not in ("shutoff", "crashed"):
        return "none"
    return "redefine and start" if differs_when_off(outcome) else "start"


def differs_when_off(outcome: Outcome) -> bool:
    """Tell whether the definition that the next start would use differs from the desired one."""
    return outcome.displayed_anew or compare.PERSISTENT in {difference["where"] for difference in outcome.differences}


def _bring_up(
    connection: libvirt.virConnect,
    spec: DomainSpec,
    outcome: Outcome,
    timeout: float,
    undo: list[t.Callable[[], None]],
    paused: bool = False,
) -> None:
    """Start a domain; with `paused`, its CPUs stay off until _resume()."""
    uuid, before = spec["uuid"], outcome.before
    if spec.get("xml"):
        forget_fresh(str(spec["xml"]))
    with clear(f"domain {spec['name']} does not start"):
        if "define" in outcome.action:
            domain = define(connection, spec)
            if before is None:
                undo.append(lambda: _remove(connection, uuid))
            else:
                undo.append(lambda: _restore(connection, uuid, str(before)))
        else:
            domain = connection.lookupByUUIDString(uuid)
        try:
            if outcome.action != _RESUME:
                flags = libvirt.VIR_DOMAIN_START_PAUSED if paused else 0
                with_filters(lambda: domain.createWithFlags(flags))
                if "define" not in outcome.action:
                    undo.append(lambda: destroy(connection, uuid))
        except libvirt.libvirtError:
            if not domain.isActive():  # otherwise somebody else started it in between, which is as good
                raise
    if paused:
        return
    if outcome.action == _RESUME:
        _resume(connection, spec, timeout)
    else:
        wait_until_running(domain, spec["name"], timeout)


def _resume(connection: libvirt.virConnect, spec: DomainSpec, timeout: float) -> None:
    with clear(f"domain {spec['name']} does not go on"):
        domain = connection.lookupByUUIDString(spec["uuid"])
        if state_of(domain) == "paused":  # or somebody else resumed it in between
            domain.resume()
        wait_until_running(domain, spec["name"], timeout)


def define(connection: libvirt.virConnect, spec: DomainSpec) -> libvirt.virDomain:
    host_devices.refuse_taken(connection, spec["uuid"], spec["name"], str(spec["xml"]))
    domain = connection.defineXML(str(spec["xml"]))
    keep_definition(str(spec["xml"]), spec["uuid"])
    return domain


def wait_until_running(domain: libvirt.virDomain, name: str, timeout: float) -> None:
    """Return when the guest's CPUs run. Raises NovaliteError when it ended, or after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        state = state_of(domain)
        if state == "running":
            return
        if state in ("shutoff", "crashed"):
            raise NovaliteError(f"domain {name} ended right after its start; see /var/log/libvirt/qemu/{name}.log")
        if time.monotonic() >= deadline:
            raise NovaliteError(f"domain {name} is still {state} after {timeout:g} s")
        time.sleep(0.05)


def destroy(connection: libvirt.virConnect, uuid: str) -> None:
    """Cut off the power of a domain; one that is off, or gone, is fine. Raises libvirt's errors."""
    domain = lookup(connection, uuid)
    if domain is None:
        return
    # It was shut off, or it went away by itself: what was wanted.
    with ignoring(libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_DOMAIN):
        domain.destroy()


def _remove(connection: libvirt.virConnect, uuid: str) -> None:
    destroy(connection, uuid)
    domain = lookup(connection, uuid)  # a transient domain is gone by now
    if domain is None:
        return
    with ignoring(libvirt.VIR_ERR_NO_DOMAIN):
        domain.undefineFlags(
            libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
            | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
            | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
        )


def _restore(connection: libvirt.virConnect, uuid: str, xml: str) -> None:
    destroy(connection, uuid)
    connection.defineXML(xml)


def _undo(step: t.Callable[[], None]) -> None:
    with clear("and what was made for it cannot be removed"):
        step()


def _failures(work: t.Callable[[T], None], items: t.Sequence[T]) -> list[str]:
    """Do `work` for all `items`, in threads; returns the messages of the NovaliteErrors."""

    def message(item: T) -> str | None:
        try:
            work(item)
        except NovaliteError as error:
            return str(error)
        return None

    return [failure for failure in in_threads(message, items, WORKERS) if failure is not None]


def _forget_profile(uuid: str) -> None:
    """Remove the AppArmor profile that libvirt wrote for a domain which is gone: it unloads it, but leaves the file."""
    profile = os.path.join(APPARMOR_PROFILES, f"libvirt-{uuids.UUID(uuid)}")
    for path in (profile, f"{profile}.files"):
        with contextlib.suppress(OSError):  # no such file; or not root, and then it stays and harms nobody
            os.unlink(path)


def lookup(connection: libvirt.virConnect, uuid: str) -> libvirt.virDomain | None:
    """The domain, or None. By UUID: community.libvirt's find_vm reads every domain of the host, and its name only."""
    return looked_up(lambda: connection.lookupByUUIDString(uuid), uuid)


def present(connection: libvirt.virConnect, uuid: str) -> libvirt.virDomain:
    """The domain that was there a moment ago. Raises NotFoundError when it has gone since."""
    domain = lookup(connection, uuid)
    if domain is None:
        raise NotFoundError(f"domain {uuid} has gone just now")
    return domain


def is_active(connection: libvirt.virConnect, uuid: str) -> bool:
    """Tell whether a QEMU process has the domain's disks open, be it paused or not."""
    domain = lookup(connection, uuid)
    with clear(f"domain {uuid} cannot be read"):
        return domain is not None and bool(domain.isActive())


def looked_up(lookup: t.Callable[[], libvirt.virDomain], what: str) -> libvirt.virDomain | None:
    """The domain that `lookup` finds, None when libvirt knows none. Raises NovaliteError."""
    with clear(f"domain {what} cannot be looked up"), ignoring(libvirt.VIR_ERR_NO_DOMAIN):
        return lookup()
    return None


def refuse_conflict(connection: libvirt.virConnect, spec: DomainSpec, outcome: Outcome) -> None:
    """Raise ConflictError when the UUID, or the name, of a domain is another one's on this host."""
    if outcome.name != spec["name"]:
        raise ConflictError(
            f"domain {spec['uuid']} exists on this host as {outcome.name}, not as {spec['name']}: give it that name "
            f"({shlex.join(['virsh', 'domrename', '--', outcome.name, spec['name']])}) and run again"
        )
    other = looked_up(lambda: connection.lookupByName(spec["name"]), spec["name"])
    if other is not None and other.UUIDString() != spec["uuid"]:
        raise ConflictError(
            f"domain {spec['name']} on this host is another guest's, with uuid {other.UUIDString()} and not "
            f"{spec['uuid']}. It stays as it is: take another host, or, where this ledger is older than its hosts "
            "(it was restored), run playbooks/ledger_rebuild.yml"
        )


def _desired(spec: DomainSpec) -> compare.DomainModel:
    if not spec.get("xml"):
        raise NovaliteError(f"domain {spec['name']} is to run but has no xml")
    model = compare.parse(str(spec["xml"]))
    if (model.uuid, model.name) != (spec["uuid"], spec["name"]):
        raise NovaliteError(
            f"the xml of domain {spec['name']} ({spec['uuid']}) describes {model.name} ({model.uuid}) instead"
        )
    return model


def _descriptions(domain: libvirt.virDomain) -> tuple[str | None, str | None]:
    """The persistent and the live XML; None for the one that this domain has not."""
    # SECURE: without it libvirt leaves secrets out, and what is defined again from the answer would lose them.
    inactive = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE
    persistent = domain.XMLDesc(inactive) if domain.isPersistent() else None
    return persistent, domain.XMLDesc(0) if domain.isActive() else None


def state_of(domain: libvirt.virDomain) -> str:
    """The state of a domain, in the words of _STATES."""
    return _STATES.get(domain.state()[0], "unknown")
