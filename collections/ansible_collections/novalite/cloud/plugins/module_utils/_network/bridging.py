# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a host's bridges, and the namespaces of isolated networks, to what was asked."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import typing as t

from .._errors import NovaliteError
from .._host.command import CommandError, run
from .._host.libvirt_connection import DEFAULT_URI
from .._host.locks import locked
from .._host.module import compared
from .._json import JsonObject
from . import additions, bridge_ports, bridge_shared, bridged, links, move, namespaces, sysctl, users
from . import bridge as planning
from .additions import Additions
from .bridge import Bridge
from .links import Host, Step
from .ownership import Owner


@dataclasses.dataclass
class _Run:
    """State of one call: what it has seen and done."""

    check_mode: bool
    move_address: bool
    before: JsonObject = dataclasses.field(default_factory=dict)
    after: JsonObject = dataclasses.field(default_factory=dict)
    kept: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)
    done: list[Step] = dataclasses.field(default_factory=list)
    remembered: list[tuple[Bridge, Additions]] = dataclasses.field(default_factory=list)
    claimed: list[str] = dataclasses.field(default_factory=list)  # users of settings that this call made so

    def look(self, bridge: Bridge) -> Host:
        host = links.look([bridge.namespace], [bridge.port] if bridge.vxlan else [])
        if self.move_address:
            for name in (bridge.port, bridge.name):
                if name in host.links and bridge.vxlan is None:
                    host.living[name] = move.living(name)
        host.added = additions.read(bridge.name, bridge.mark)
        return host

    def carry_out(self, bridge: Bridge, steps: t.Iterable[Step]) -> None:
        for step in steps:
            if step.adds is not None:
                self.remember(bridge, additions.read(bridge.name, bridge.mark) | step.adds)
            if step.stdin is not None:
                self.done.append(step)  # known before the attempt: it may fail half-way
            run(step.argv, stdin=step.stdin)
            if step.stdin is None:
                self.done.append(step)

    def remember(self, bridge: Bridge, added: Additions) -> None:
        self.remembered.append((bridge, additions.read(bridge.name, bridge.mark)))
        additions.write(bridge.name, bridge.mark, added)

    def take_back(self) -> None:
        for step in reversed(self.done):
            if step.undo is not None:
                with contextlib.suppress(CommandError):
                    run(step.undo, stdin=step.undo_stdin)
        for bridge, added in reversed(self.remembered):
            with contextlib.suppress(OSError):
                additions.write(bridge.name, bridge.mark, added)
        for user in self.claimed:
            with contextlib.suppress(NovaliteError, OSError):
                additions.release(user)

    def claim(self, name: str, bridges: t.Iterable[Bridge], settings: t.Mapping[str, str]) -> None:
        """Settings of the whole host, for as long as one of the bridges is there."""
        self._show(name, settings, sysctl.wrong(settings))
        for bridge in bridges if not self.check_mode else ():
            user = additions.user_of(bridge.name, bridge.mark)
            if additions.claim(user, settings):
                self.claimed.append(user)

    def release(self, bridge: Bridge) -> None:
        if self.check_mode:
            return
        released = additions.release(additions.user_of(bridge.name, bridge.mark))
        if released:
            self.before.setdefault("net", {}).update({name: was for name, (was, _now) in released.items()})
            self.after.setdefault("net", {}).update({name: now for name, (_was, now) in released.items()})

    def set(self, name: str, settings: t.Mapping[str, str], namespace: str | None = None) -> None:
        """Kernel settings, shown under `name`."""
        if self.check_mode and namespace is not None and not namespaces.exists(namespace):
            return  # it comes with its settings, and that it comes is shown
        wrong = sysctl.wrong(settings, namespace)
        self._show(name, settings, wrong)
        if not self.check_mode:
            sysctl.put({key: settings[key] for key in wrong}, namespace)

    def _show(self, name: str, settings: t.Mapping[str, str], wrong: t.Mapping[str, str]) -> None:
        if wrong:
            self.before[name], self.after[name] = dict(wrong), {key: settings[key] for key in wrong}


def ensure(
    bridges: t.Sequence[Bridge],
    state: str,
    check_mode: bool = False,
    move_address: bool = False,
    uri: str = DEFAULT_URI,
) -> JsonObject:
    """Bring the host's bridges to `state`. Returns `changed`, `kept` (bridges that are still in use, with what uses
    them), `warnings` and `diff`. Raises NovaliteError; what this call did is taken back then.

    From `present` on this process is a user of the bridges, until it ends.
    """
    work = _Run(check_mode, move_address)
    names = [bridge.name for bridge in bridges]
    with contextlib.ExitStack() as locks:
        if state == "absent":
            work.kept.update(locks.enter_context(users.alone(names, uri, check_mode)))
        if not check_mode:
            if state == "present":
                users.join(names)
            locks.enter_context(locked("bridge"))
        try:
            if state == "present" and bridges:
                host = work.look(bridges[0])
                for bridge in bridges:  # before anything is changed for one of them
                    bridge_ports.refuse_lived_in(bridge, host)
                bridged.load(work.check_mode)  # the module `firewall` has it see a bridge, once there are rules
                _forwarding(work, bridges)
                for number, bridge in enumerate(bridges):
                    _present(work, bridge, work.look(bridge) if number else host)
            for bridge in bridges if state == "absent" else ():
                if bridge.name not in work.kept:
                    _absent(work, bridge)
        except BaseException:
            work.take_back()
            raise
        if state == "present":
            work.warnings += bridged.warnings(names)
    return compared(work.before, work.after, kept=work.kept, warnings=work.warnings)


def _present(work: _Run, bridge: Bridge, host: Host) -> None:
    steps = planning.plan_present(bridge, host, work.move_address)
    shared = bridge.name in host.links and bridge_shared.owner(bridge, host) is Owner.NOT_MARKED
    if shared:
        work.warnings += bridge_shared.warnings(bridge, host)
    if steps:
        work.before[bridge.name] = planning.summary(bridge, host)
        work.after[bridge.name] = [line for step in steps for line in step.shown()]
    if not work.check_mode:
        work.carry_out(bridge, steps)
        if any(step.stdin is not None for step in steps):
            _still_reached(bridge, host, work.look(bridge))
            work.carry_out(bridge, planning.plan_present(bridge, work.look(bridge), work.move_address))
    # A bridge that this call makes comes with its settings; they are no change of their own.
    shown = work if bridge.name in host.links else _Run(work.check_mode, False)
    if not shared:
        shown.set(f"net of {bridge.name}", _own_settings(bridge))
    elif not host.links[bridge.name].advertised and any(":" in address for address in bridge.addresses):
        # The advertisements for the guests come to a host that heeds those of its LAN, too
        work.claim(f"net of {bridge.name}", [bridge], {f"ipv6/conf/{bridge.name}/autoconf": "0"})
    if not shared and bridge.port is not None and bridge.vxlan is None:
        # A port hears the routers of the network that it carries, other hosts among them, and would route by them
        work.claim(f"net of {bridge.port}", [bridge], {f"ipv6/conf/{bridge.port}/disable_ipv6": "1"})
    if bridge.namespace is not None:
        shown.set(f"net in {bridge.namespace}", _inner_settings(bridge), bridge.namespace)
    if not work.check_mode:
        if steps:
            work.after[bridge.name] = planning.summary(bridge, work.look(bridge))
        _remember_addresses(work, bridge, host, shared)


def _remember_addresses(work: _Run, bridge: Bridge, host: Host, shared: bool) -> None:
    """Remember the addresses in a network of several ranges: one may go with its range while the bridge stays. On a
    bridge that is `shared` with others, what was added is remembered already."""
    added = additions.read(bridge.name, bridge.mark)
    gone = bridge_ports.outlived(bridge, host)
    of_ranges = [text for text in bridge.addresses if bridge.ranges and not shared and ":" not in text]
    addresses = tuple(dict.fromkeys((*(text for text in added.addresses if text not in gone), *of_ranges)))
    if addresses != added.addresses:
        work.remember(bridge, dataclasses.replace(added, addresses=addresses))


def _absent(work: _Run, bridge: Bridge) -> None:
    host = work.look(bridge)
    steps, others = planning.plan_absent(bridge, host)
    if others:
        work.kept[bridge.name] = others
        return
    if bridge.name in host.links and bridge_shared.owner(bridge, host) is Owner.NOT_MARKED:
        work.warnings += bridge_shared.warnings(bridge, host)
    if steps:
        work.before[bridge.name] = planning.summary(bridge, host) or {"namespace": {bridge.namespace: None}}
        work.after[bridge.name] = [line for step in steps for line in step.shown()]
        if not work.check_mode:
            work.release(bridge)  # a port that has IPv6 again can take its addresses back
            work.carry_out(bridge, steps)
            work.after[bridge.name] = planning.summary(bridge, work.look(bridge))
    if not work.check_mode and host.added != Additions():
        work.remember(bridge, Additions())
    work.release(bridge)


def _still_reached(bridge: Bridge, before: Host, after: Host) -> None:
    if before.ssh and not after.ssh & {bridge.name, *(before.ssh - {bridge.port})}:
        raise NovaliteError(
            f"bridge {bridge.name}: after the addresses of {bridge.port} had moved, the ssh session that Ansible came "
            "by had no route any more; they were moved back"
        )


def _own_settings(bridge: Bridge) -> dict[str, str]:
    """A guest's router advertisement must not give the host an address or a default route; and on an isolated network
    the host itself is not there at all: it answers to no address of its own, and forwards nothing."""
    name = bridge.name
    settings = {f"ipv6/conf/{name}/accept_ra": "0", f"ipv6/conf/{name}/autoconf": "0"}
    if bridge.vxlan is not None:
        settings[f"ipv6/conf/{bridge.port}/disable_ipv6"] = "1"  # else the host's own solicitations go into the tunnels
    if bridge.namespace is not None:
        settings |= {
            f"ipv6/conf/{namespaces.port_name(name)}/disable_ipv6": "1",
            f"ipv6/conf/{name}/disable_ipv6": "1",
            f"ipv4/conf/{name}/arp_ignore": "8",
            f"ipv4/conf/{name}/forwarding": "0",
        }
    return settings


def _inner_settings(bridge: Bridge) -> dict[str, str]:
    return {"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", f"ipv6/conf/{bridge.name}/accept_ra": "0"}


def _forwarding(work: _Run, bridges: t.Sequence[Bridge]) -> None:
    """Forwarding, on a host that is a router for its guests. It comes first: it sets every device's own forwarding."""
    addresses = [
        ipaddress.ip_interface(text) for bridge in bridges if bridge.namespace is None for text in bridge.addresses
    ]
    if any(address.version == 4 for address in addresses):
        work.claim("net", bridges, {"ipv4/ip_forward": "1"})
    if any(address.version == 6 and not address.is_link_local for address in addresses):
        settings = {"ipv6/conf/all/forwarding": "1"}
        if sysctl.wrong(settings):
            settings = {**sysctl.keep_router_advertisements(), **settings}
        work.claim("net IPv6", bridges, settings)
