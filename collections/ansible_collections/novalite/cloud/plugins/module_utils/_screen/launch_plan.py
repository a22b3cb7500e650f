# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a launch in check mode, as a stack's plan is shown. Pure: results of tasks go in, lines of text come out.

No secret is in any line: of a host whose trip carries some, nothing but that is told.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from .._addressing.placeholders import is_placeholder
from .._json import JsonMapping, JsonObject
from .._model import text_table
from .._model.plain_text import without_controls
from .._stack.plan import ADD, CHANGE, Row, lined_up

KEPT, REFUSED = "=", "!"
NAMED = 6  # things of one kind that are named; more of them are counted
SECRET = "not shown: it has a password, user data or files"
PLACEHOLDERS = "UUIDs and MACs are chosen at launch: 0000000n-... and 02:00:00:... stand for them where they show."

# What each step makes, in the lines of a host: its disks, its networks, its guests
_DISKS = {
    "image_cache": "images",
    "disk": "disks",
    "volume_disk": "volumes",
    "nbd_inject": "injected",
    "config_drive": "config drives",
}
_NETWORKS = {
    "bridge": "bridge",
    "dhcp": "DHCP",
    "router": "ways out",
    "metadata_proxy": "metadata proxies",
    "nwfilter": "filters",
    "firewall": "chains",
}
_PARTS = (_DISKS, _NETWORKS, {"domain": "domains"})
_TABLES = ("IPv4", "IPv6", "filter", "nat")  # of what is named below them
_OWN = ("nova-inst-", "nova-sg-")  # chains of instances and of groups, which are named before others


class LaunchPlan:
    """Knowledge that a run in check mode has come to of a launch."""

    def __init__(self) -> None:
        self.instances: dict[str, JsonMapping] = {}  # to build, by UUID
        self.existing: list[JsonMapping] = []
        self.reasons: dict[str, JsonMapping] = {}  # explanations, by UUID
        self.refusals: dict[str, str] = {}  # by UUID
        self.trips: dict[str, JsonMapping] = {}  # results of host_steps, by host
        self.planned = False

    def heard(self, operation: str, host: str, result: JsonMapping) -> None:
        """Take in what a task of `operation` returned on `host`."""
        if operation == "server":
            self.instances.update((instance["uuid"], instance) for instance in result.get("to_build") or ())
            self.existing = list(result.get("existing") or ())
        elif operation == "launch_plan":
            self.planned = True
            self._placed(result)
        elif operation == "launch_record" and (placed := (result.get("launch") or {}).get("placed")):
            self._placed(placed)  # of a plan that has secrets
        elif operation == "host_steps":
            self.trips[host] = result

    def _placed(self, result: JsonMapping) -> None:
        self.instances.update((instance["uuid"], instance) for instance in result.get("instances") or ())
        self.reasons.update((reason["uuid"], reason) for reason in result.get("explanations") or ())
        self.refusals.update((unplaced["uuid"], str(unplaced["message"])) for unplaced in result.get("unplaced") or ())
        if refused := result.get("refused"):
            self.refusals.update(dict.fromkeys(self.instances, str(refused)))

    def lines(self, room: int | None = None) -> list[str]:
        """The plan in lines of at most `room` characters; none where nothing was planned."""
        if not self.planned:
            return []
        new = [instance for uuid, instance in self.instances.items() if uuid not in self.refusals]
        refused = [instance for uuid, instance in self.instances.items() if uuid in self.refusals]
        rows = [self._new(instance) for instance in new]
        rows += [Row(REFUSED, "server", instance["name"], [self.refusals[instance["uuid"]]]) for instance in refused]
        rows += [Row(KEPT, "server", instance["name"], [_kept(instance)]) for instance in self.existing]
        rows += filter(None, (self._host(host, self.trips[host]) for host in sorted(self.trips)))
        projects = ", ".join(dict.fromkeys(instance["project"]["name"] for instance in self.instances.values()))
        running = sum(instance["vm_state"] == "active" for instance in self.existing)
        counts = [f"{len(new)} to launch", f"{running} already run{'s' if running == 1 else ''}"]
        counts += [f"{len(refused)} without a host"] if refused else []
        note = PLACEHOLDERS if any(is_placeholder(instance["uuid"]) for instance in new) else ""
        return [
            f"Launch{', project ' + projects if projects else ''}:",
            *lined_up(rows, room),
            *(text_table.wrapped(note, room) if note else []),
            f"Plan: {', '.join(counts)}.",
        ]

    def _new(self, instance: JsonMapping) -> Row:
        flavor, image, key = instance["flavor"], instance.get("image") or {}, instance.get("key") or {}
        groups = ", ".join(group["name"] for group in instance["security_groups"])
        disk = f"{flavor['root_gb']} GiB" if flavor["root_gb"] else "a disk as large as its image"
        size = f"{flavor['vcpus']} vCPU, {flavor['memory_mb']} MiB, {disk}"
        words = [f"flavor {flavor['name']} ({size})", f"image {image.get('name') or 'none (a volume)'}"]
        words += [f"key {key['name']}"] if key else []
        words += [f"groups {groups}"] if groups else []
        where = self._where(instance) if instance["host"] else f"on a host that is {SECRET}"
        addresses = [text for nic in instance["nics"] for text in _addresses(nic)]
        return Row(ADD, "server", instance["name"], [where, ", ".join(addresses) or "no address", ", ".join(words)])

    def _where(self, instance: JsonMapping) -> str:
        host, reason = instance["host"], self.reasons.get(instance["uuid"])
        if reason is None:
            return f"on {host}, as before"
        seen = [weight for weight in reason.get("weights") or () if weight["host"] == host]
        details = "".join(
            f", weight {weight['score']:g} ("
            + ", ".join(f"{name} {part:g}" for name, part in weight["details"].items())
            + ")"
            for weight in seen
        )
        filters = reason.get("filters") or [{"start": reason["hosts"], "end": reason["hosts"]}]
        passed, total = filters[-1]["end"], filters[0]["start"]
        others = ", ".join(reason.get("alternates") or ())
        return f"on {host}: by {reason['choice']} from {passed} of {total} hosts{details}" + (
            f"; else {others}" if others else ""
        )

    def _host(self, host: str, result: JsonMapping) -> Row | None:
        if "censored" in result:
            return Row(ADD, "host", host, [f"what it is given is {SECRET}"])
        if result.get("failed"):
            return Row(REFUSED, "host", host, [_cause(result)])
        made = {step["module"]: step for step in result.get("steps") or () if step["result"].get("changed")}
        texts = [
            "; ".join(f"{word}{self._names(made[module])}" for module, word in part.items() if module in made)
            for part in _PARTS
        ]
        texts = [text for text in texts if text]
        return Row(ADD if "domain" in made else CHANGE, "host", host, texts) if texts else None

    def _names(self, step: JsonMapping) -> str:
        """Name what a step changes."""
        if step["module"] == "domain":
            domains = step["result"].get("domains") or ()
            names = [domain["name"] for domain in domains if domain.get("action", True)]
        else:
            names = sorted(_changed(step["result"].get("diff") or {}), key=lambda name: not name.startswith(_OWN))
        owners = {instance["uuid"]: instance["name"] for instance in self.instances.values()}
        owners |= {instance["domain_name"]: instance["name"] for instance in self.instances.values()}
        shown = [
            f"{name} ({owners[name]})" if step["module"] == "domain" and name in owners else name for name in names
        ]
        shown = [_short(owners.get(name, name)) for name in shown]
        more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
        return f" {', '.join(shown[:NAMED])}{more}" if shown else ""


def _cause(result: JsonMapping) -> str:
    return " ".join(without_controls(str(result.get("msg") or "no message"), " ").split())


def _changed(diff: JsonMapping | c.Sequence[JsonMapping]) -> dict[str, None]:
    """The names of what differs, of a chain in both families once."""
    names: dict[str, None] = {}
    parts: c.Sequence[JsonMapping] = diff if isinstance(diff, list) else [t.cast(JsonMapping, diff)]
    for part in parts:
        before, after = part.get("before") or {}, part.get("after") or {}
        if not isinstance(before, dict) or not isinstance(after, dict):
            continue
        for name in {**before, **after}:
            if before.get(name) == after.get(name) or name in ("net", "sysctl"):
                continue
            if name in _TABLES:
                chains: JsonObject = {"before": before.get(name) or {}, "after": after.get(name) or {}}
                names.update(_changed(chains))
            else:
                names[name] = None
    return names


def _addresses(nic: JsonMapping) -> list[str]:
    network = nic["network"]
    ipv6 = nic["ipv6"]
    if ipv6 and is_placeholder(nic["mac"]):
        ipv6 = f"an address of {network['cidr_v6']}"  # which follows from the MAC
    return [f"{address} on {network['name']}" for address in (nic["ip"], ipv6) if address]


def _kept(instance: JsonMapping) -> str:
    if instance["vm_state"] == "active":
        return f"runs on {instance['host']}, and is left alone"
    return f"is {instance['vm_state']}{' on ' + instance['host'] if instance['host'] else ''}, and is left so"


def _short(name: str) -> str:
    """A name, or the beginning of a checksum."""
    text = without_controls(name)
    return f"{text[:19]}..." if text.startswith("sha256:") else text
