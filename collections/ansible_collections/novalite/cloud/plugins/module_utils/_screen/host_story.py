# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The story of a launch on its hosts: the real values of each step. Pure: results of steps go in, lines come out.

What can be secret (passwords, user data, files' contents) is in no line: of what is injected, the paths are told, and
public keys.
"""

from __future__ import annotations

import collections.abc as c

from .._graph.launch_steps import LaunchStep
from .._json import Json, JsonMapping
from .._model.plain_text import without_controls

WIDEST = 400  # characters of a value
CHECKS = "periodic file system checks"  # as nbd_inject names them among what it wrote
_KEYS = "/root/.ssh/authorized_keys"
_MODES = {"owner": "chown", "mode": "chmod"}

Lines = list[str]


def cut(value: object) -> str:
    """A value as one line of a bounded length."""
    text = without_controls(str(value), " ")
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def values(step: LaunchStep, module: str, outcome: JsonMapping, plan: JsonMapping) -> Lines:
    """The values of one step of a host: what it changed, or that there was nothing to change."""
    tell = _TELL.get((module, step.number)) or _TELL.get((module, None)) or _differences
    lines, room = tell(outcome, plan), _ROOM.get(module, 12)
    if not lines and not outcome.get("changed"):
        return ["there already"]
    return lines if len(lines) <= room else [*lines[:room], f"and {len(lines) - room} more lines"]


def _after(outcome: JsonMapping) -> JsonMapping:
    """The state after the step, where its difference was asked for."""
    diff = outcome.get("diff") or {}
    first = diff[0] if isinstance(diff, list) and diff else diff
    after = first.get("after") if isinstance(first, dict) else None
    return after if isinstance(after, dict) else {}


def _differences(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [cut(f"{name}: {_plain(value)}") for name, value in _after(outcome).items()]


def _plain(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(_plain, value)) or "none"
    return str(value)


def _images(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{image['path']}: {image['status']}" for image in outcome.get("images") or ()]


def _disks(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    lines = _differences(outcome, plan)
    return lines or [f"{disk['path']}: {', '.join(disk['created']) or 'kept'}" for disk in outcome.get("disks") or ()]


def _injected(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    """The steps in which it was done: those of the article's, as they are here."""
    guests = outcome.get("instances") or ()
    if not guests or not outcome.get("backend"):
        return []
    lines = [
        "device: a free /dev/nbd*, locked; qemu-nbd serves the disk to it, and its pid says that it is there"
        if outcome["backend"] == "nbd"
        else "device: a file that qemu-storage-daemon serves by FUSE; no /dev/nbd*, no kernel module",
        "mount: nosuid, nodev, noexec, in a mount namespace of its own; the partition by its table",
    ]
    networks = {guest["uuid"]: guest.get("network") for guest in plan.get("injections") or ()}
    for guest in guests:
        done, uuid = _after(outcome).get(guest["uuid"]), guest["uuid"]
        lines.append(f"{uuid}: {', '.join(guest['written']) or 'nothing to write'}")
        if CHECKS in guest["written"]:
            lines.append("tune2fs -c 0 -i 0: no periodic check of the file system")
        lines += [f"{_act(path, now)}" for path, now in (done.items() if isinstance(done, dict) else ())]
        if uuid in networks:
            lines.append(f"network configuration: {'written' if networks[uuid] else 'none, DHCP serves it'}")
    return [*lines, "unmount; the daemon ends, and with the namespace nothing is left of the mount point"]


def _act(path: str, now: JsonMapping | None) -> str:
    """Name what was done to a path, without its contents."""
    if not isinstance(now, dict):
        return f"unlink {path}" if now is None else f"write {path}"
    if "content" in now:
        size = f" ({len(now['content'])} lines)" if isinstance(now["content"], list) else ""
        what = f"write {path}{size}"
    else:
        what = f"mkdir {path}"
    return cut(what + "".join(f", {word} {now[key]}" for key, word in _MODES.items() if key in now))


def _key(_outcome: JsonMapping, plan: JsonMapping) -> Lines:
    keys = dict.fromkeys(key for guest in plan.get("injections") or () for key in guest["keys"])
    return [cut(f"{_KEYS}: {key}") for key in keys] or ["no key was asked for"]


def _dhcp(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    """The lines that are new in each file: a neighbour gets none but names."""
    diff = outcome.get("diff") or {}
    before = diff.get("before") or {} if isinstance(diff, dict) else {}
    lines = [
        f"{bridge}/{file}: {line}"
        for bridge, state in _after(outcome).items()
        for file in ("hosts", "others")
        for line in state.get(file) or ()
        if line not in ((before.get(bridge) or {}).get(file) or ())
    ]
    entries = [
        f"{network['bridge']}/hosts: {','.join(filter(None, (host['mac'], host['hostname'], host['ip'])))}"
        for network in plan.get("dhcp_networks") or ()
        for host in network["hosts"]
    ]
    running = [f"{bridge}: dnsmasq runs" for bridge, state in _after(outcome).items() if state.get("running")]
    return (lines or entries) + running


def _filters(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [
        line.rstrip()
        for name, xml in _after(outcome).items()
        if name != "nova-base" or len(_after(outcome)) == 1
        for line in str(xml).splitlines()
    ]


def _chains(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    after = _after(outcome)
    lines = []
    for family in ("IPv4", "IPv6"):
        chains = after.get(family) or {}
        instances = [name for name in chains if name.startswith("nova-inst-")]
        shown = dict.fromkeys(name for name in ("nova-local", "nova-tap", *instances[:1]) if name in chains)
        shown.update(dict.fromkeys(name for name in chains if name.startswith(("nova-sg-", "nova-ipv"))))
        lines += [f"{family}: {rule}" for name in shown for rule in chains[name]]
        if len(instances) > 1:
            lines.append(f"{family}: and {len(instances) - 1} more chains like {instances[0]}")
    return lines


def _config_drives(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    return [f"{drive['uuid']}/disk.config" for drive in plan.get("config_drives") or () if outcome.get("changed")]


def _proxies(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    networks = plan.get("metadata_networks") or ()
    return [f"169.254.169.254 on {network['bridge']}" for network in networks if outcome.get("changed")]


def _domains(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{domain['name']}: {domain['action'] or 'runs already'}" for domain in outcome.get("domains") or ()]


def _running(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{domain['name']}: {domain['state']}" for domain in outcome.get("domains") or ()]


def _room(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    facts = outcome.get("compute_host")
    if not facts:
        return []
    hypervisor = f"{facts['hypervisor_type']} {facts['hypervisor_version']}, libvirt {facts['libvirt_version']}"
    return [f"{facts['vcpus']} vCPU, {facts['memory_mb']} MiB, {facts['disk_gb']} GiB; {hypervisor}"]


def _answered(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{name}: after {seconds} s" for name, seconds in (outcome.get("answered") or {}).items()]


_TELL: dict[tuple[str, int | None], c.Callable[[JsonMapping, JsonMapping], Lines]] = {
    ("compute_host", None): _room,
    ("image_cache", None): _images,
    ("disk", None): _disks,
    ("nbd_inject", 16): _injected,
    ("nbd_inject", 17): _key,
    ("dhcp", None): _dhcp,
    ("nwfilter", None): _filters,
    ("firewall", None): _chains,
    ("config_drive", None): _config_drives,
    ("metadata_proxy", None): _proxies,
    ("domain", 19): _domains,
    ("domain", 20): _running,
    ("server_wait", None): _answered,
}
_ROOM = {"nbd_inject": 24, "firewall": 40, "nwfilter": 24, "router": 8}
