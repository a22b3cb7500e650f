# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hypervisors in memory: what is on each, and the steps that its modules take there, as the roles order them.

A machine is what it is, whatever an inventory calls it. Its disks say what is in them: `content` is the image that was
copied for it, and `version` counts what its guest wrote since, so that of two copies the newer one is known.
"""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._disk.layout import DISK
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._host import mark
from ansible_collections.novalite.cloud.plugins.module_utils._host.mark import Seen
from ansible_collections.novalite.cloud.plugins.module_utils._model.look import Look
from ansible_collections.novalite.cloud.plugins.module_utils._network import dhcp_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark
from tests.unit._ledger.histories.things import Disk, Domain, Plan, Server, StepFailed, hosts_of, nics_of


@dataclasses.dataclass
class Machine:
    """A hypervisor. `root` has those files by which it is known, and the marks of ledgers; `contents` counts what was
    ever made of images, on all machines."""

    root: str
    contents: list[int]
    on: bool = True
    silent: bool = False
    breaks_at: str | None = None  # the step that fails there the next time
    domains: dict[str, Domain] = dataclasses.field(default_factory=dict)
    disks: dict[str, Disk] = dataclasses.field(default_factory=dict)
    bin: list[tuple[str, Disk]] = dataclasses.field(default_factory=list)
    incoming: dict[str, Disk] = dataclasses.field(default_factory=dict)
    chains: dict[int, tuple[str, list[str]]] = dataclasses.field(default_factory=dict)  # number -> owner, addresses
    filters: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> owner
    dhcp: dict[str, Server] = dataclasses.field(default_factory=dict)
    bridges: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> ledger
    host_record: str | None = None

    @property
    def reachable(self) -> bool:
        return self.on and not self.silent

    # --- What happens to it ---

    def power_off(self) -> None:
        self.on = False
        for domain in self.domains.values():
            if domain.state != "shutoff":
                domain.state, domain.reason = "shutoff", "crashed"

    def write(self) -> None:
        """Each guest that runs writes to its disk."""
        if self.on:
            for uuid, domain in self.domains.items():
                if domain.runs and uuid in self.disks:
                    self.disks[uuid].version += 1

    # --- What it answers ---

    def meet(self, expected: Plan) -> Seen:
        """Compare it with what a trip expects, as the host's end of a trip does."""
        return mark.meet(mark.Expected.of(expected), self._state_dir, root=self.root)

    def machine(self) -> Plan:
        """Module `host_mark`, state `read`."""
        return {"identity": mark.identity_of(self.root), "marks": mark.marks_here(self._state_dir), "ledgers": []}

    @property
    def _state_dir(self) -> str:
        return os.path.join(self.root, "state")

    def facts(self, name: str) -> Plan:
        domains = [
            {"uuid": each.uuid, "name": each.name, "vcpus": 1, "memory_mb": 96, "disk_gb": 0}
            | {"state": "running" if each.runs else "shutoff"}
            for each in self.domains.values()
        ]
        size = {"vcpus": 8, "memory_mb": 16384, "disk_gb": 100}
        identity = mark.identity_of(self.root)
        return {"name": name, "up": True, "domains": domains, "identity": identity, **size}

    def scan(self, now: float) -> Look:
        domains: t.Any = [
            {"uuid": each.uuid, "name": each.name, "state": each.state, "reason": each.reason}
            | {"macs": [nic.mac for nic in each.nics], "taps": []}
            for each in sorted(self.domains.values(), key=lambda each: each.name)
        ]
        return {
            "looked_at": now,
            "domains": domains,
            "disks": sorted(self.disks),
            "files": {
                uuid: ["disk", *(["disk.resize"] if disk.kept else [])] for uuid, disk in sorted(self.disks.items())
            },
            "removed": [],
            "volumes": [],
            "copies": [],
            "missing_bases": {},
            "stale_devices": [],
            "move_ways": [],
            "filters": sorted(self.filters),
            "filter_uuids": {},
            "chains": [
                {"id": number, "uuid": owner, "addresses": addresses}
                for number, (owner, addresses) in sorted(self.chains.items())
            ],
            "dhcp_networks": [
                {**server.options, "hosts": [{**vars(host), "options": []} for host in server.hosts]}
                for _bridge, server in sorted(self.dhcp.items())
            ],
            "dhcp_owners": {bridge: Mark(server.ledger).text for bridge, server in sorted(self.dhcp.items())},
            "bridges": sorted(self.bridges),
            "bridge_owners": {name: [Mark(ledger).text] for name, ledger in sorted(self.bridges.items())},
        }

    def states(self, domains: t.Iterable[Plan]) -> list[Plan]:
        return [
            {"uuid": each["uuid"], "name": each["name"]}
            | {"state": self.domains[each["uuid"]].state if each["uuid"] in self.domains else "missing"}
            for each in domains
        ]

    # --- Steps ---

    def _step(self, name: str) -> None:
        if self.breaks_at == name:
            self.breaks_at = None
            raise StepFailed(f"{name}: broken")

    def spawn(self, plan: Plan) -> None:
        """Role `spawn`: build and start. Raises StepFailed, with what was done until then."""
        self._refuse_names(plan["domains"])
        before = set(self.disks)
        steps: list[Plan] = []
        for modules, work in (
            (("disk",), lambda: self.make_disks(plan["disks"])),
            (("bridge", "dhcp", "nwfilter", "firewall"), lambda: self.network_setup(plan)),
            (("domain",), lambda: self.start(plan["domains"])),
        ):
            failed = None
            try:
                work()
            except StepFailed as error:
                failed = error
            made = [{"uuid": uuid, "created": [DISK]} for uuid in sorted(self.disks.keys() - before)]
            result = {
                "changed": True,
                "failed": failed is not None,
                **({"disks": made} if modules == ("disk",) else {}),
            }
            steps += [{"module": module, "result": result} for module in modules]
            if failed is not None:
                raise StepFailed(str(failed), steps)

    def make_disks(self, disks: t.Iterable[Plan], anew: bool = False) -> None:
        self._step("disk")
        for disk in disks:
            if disk["uuid"] not in self.disks or anew:
                self.contents.append(len(self.contents))
                self.disks[disk["uuid"]] = Disk(self.contents[-1])
            self.disks[disk["uuid"]].record = disk.get("record") or self.disks[disk["uuid"]].record

    def network_setup(self, plan: Plan) -> None:
        self._step("bridge")
        for bridge in plan["bridges"]:
            self.bridges.setdefault(bridge["name"], plan["ledger"])
        for network in plan["dhcp_networks"]:
            options = {key: value for key, value in network.items() if key not in ("hosts", "names")}
            server = self.dhcp.setdefault(network["bridge"], Server(plan["ledger"], options, []))
            try:
                server.hosts = dhcp_hosts.merged(server.hosts, hosts_of(network))
            except ConflictError as error:
                raise StepFailed(str(error)) from error
        self._step("firewall")
        for nwfilter in plan["filters"]:
            if self.filters.get(nwfilter["name"], nwfilter["uuid"]) != nwfilter["uuid"]:
                raise StepFailed(f"the network filter {nwfilter['name']} is another instance's")
            self.filters[nwfilter["name"]] = nwfilter["uuid"]
        for instance in plan["firewall_instances"]:
            if self.chains.get(instance["id"], (instance["uuid"],))[0] != instance["uuid"]:
                raise StepFailed(f"the chains nova-inst-{instance['id']} are another instance's")
            self.chains[instance["id"]] = (instance["uuid"], instance["addresses"])

    def _refuse_names(self, specs: t.Iterable[Plan]) -> None:
        named = {each.name: each.uuid for each in self.domains.values()}
        for spec in specs:
            if named.get(spec["name"], spec["uuid"]) != spec["uuid"]:
                raise StepFailed(f"domain {spec['name']} on this host is another guest's")

    def define(self, domains: t.Iterable[Plan]) -> list[Domain]:
        """Module `domain`, state `defined`."""
        specs = list(domains)
        self._refuse_names(specs)
        for spec in specs:
            if spec["uuid"] not in self.domains:
                self.domains[spec["uuid"]] = Domain(spec["uuid"], spec["name"], nics_of(spec["xml"]), "shutoff")
        return [self.domains[spec["uuid"]] for spec in specs]

    def start(self, domains: t.Iterable[Plan]) -> None:
        """Module `domain`, state `running`: all of them, or none."""
        self._step("domain")
        specs = list(domains)
        for domain in self.define(specs):
            if domain.uuid not in self.disks:
                raise StepFailed(f"domain {domain.name} does not start: it has no disk")
        for spec in specs:
            self.domains[spec["uuid"]].state, self.domains[spec["uuid"]].reason = "running", ""

    def stop(self, domains: t.Iterable[Plan]) -> None:
        """Module `domain_power`, state `stopped`."""
        self._step("domain_power")
        for spec in domains:
            if spec["uuid"] not in self.domains:
                raise StepFailed(f"domain {spec['name']} is missing")
            self.domains[spec["uuid"]].state, self.domains[spec["uuid"]].reason = "shutoff", "shutdown"

    def power_on(self, domains: t.Iterable[Plan]) -> None:
        """Module `domain_power`, state `running` or `rebooted`."""
        for spec in domains:
            if spec.get("xml"):
                self.start([spec])
            elif spec["uuid"] not in self.domains or spec["uuid"] not in self.disks:
                raise StepFailed(f"domain {spec['name']} is missing")
            else:
                self.domains[spec["uuid"]].state, self.domains[spec["uuid"]].reason = "running", ""

    def reclaim(self, plan: Plan) -> None:
        """Role `reclaim`: take away."""
        self._step("reclaim")
        for domain in plan["domains"]:
            self.domains.pop(domain["uuid"], None)
        for instance in plan["firewall_instances"]:
            if self.chains.get(instance["id"], (None,))[0] == instance["uuid"]:
                del self.chains[instance["id"]]
        for nwfilter in plan["filters"]:
            if self.filters.get(nwfilter["name"]) != nwfilter["uuid"]:
                continue
            if any(each.runs and nwfilter["name"].endswith(each.name) for each in self.domains.values()):
                raise StepFailed(f"the network filter {nwfilter['name']} is still in use")
            del self.filters[nwfilter["name"]]
        for network in plan["dhcp_networks"]:
            server = self.dhcp.get(network["bridge"])
            if server is None or server.ledger != plan["ledger"]:
                continue
            server.hosts = dhcp_hosts.without(server.hosts, hosts_of(network))
            if not server.hosts:
                del self.dhcp[network["bridge"]]
        plugged = {nic.bridge for each in self.domains.values() if each.runs for nic in each.nics}
        for bridge in plan["last_bridges"]:
            if bridge["name"] not in plugged and self.bridges.get(bridge["name"]) == plan["ledger"]:
                del self.bridges[bridge["name"]]
        self.remove_disks(plan["disks"])

    def remove_disks(self, disks: t.Iterable[Plan]) -> None:
        for disk in disks:
            removed = self.disks.pop(disk["uuid"], None)
            if removed is not None and disk.get("to_bin"):
                self.bin.append((disk["uuid"], removed))

    # --- Moves: step `disk_move` ---

    def refuse_running(self, moves: t.Iterable[Plan]) -> None:
        for move in moves:
            if move["uuid"] in self.domains and self.domains[move["uuid"]].runs:
                raise StepFailed(f"instance {move['uuid']} still runs on this host")

    def keep(self, moves: t.Iterable[Plan]) -> None:
        for move in moves:
            if move["uuid"] in self.disks:
                self.disks[move["uuid"]].kept = self.disks[move["uuid"]].copy

    def send(self, moves: t.Sequence[Plan], other: Machine) -> None:
        self.refuse_running(moves)
        for move in moves:
            if move["uuid"] not in self.disks:
                raise StepFailed(f"instance {move['uuid']} has no disks here")
            disk = self.disks[move["uuid"]]
            other.incoming[move["uuid"]] = Disk(*disk.copy, record=disk.record)

    def receive(self, moves: t.Sequence[Plan]) -> None:
        for move in moves:
            if move["uuid"] not in self.incoming:
                raise StepFailed(f"nothing of instance {move['uuid']} arrived")
        for move in moves:
            self.disks[move["uuid"]] = self.incoming.pop(move["uuid"])

    def restore(self, moves: t.Sequence[Plan]) -> None:
        self.refuse_running(moves)
        for move in moves:
            disk = self.disks.get(move["uuid"])
            if disk is not None and disk.kept is not None:
                (disk.content, disk.version), disk.kept = disk.kept, None

    def forget(self, moves: t.Iterable[Plan]) -> None:
        for move in moves:
            if move["uuid"] in self.disks:
                self.disks[move["uuid"]].kept = None

    def migrate(self, moves: t.Iterable[Plan], specs: t.Mapping[str, Plan], other: Machine) -> list[str]:
        """Module `live_migration`: returns those that run on the `other` machine now."""
        done = []
        for move in moves:
            domain, there = self.domains.get(move["uuid"]), other.disks.get(move["uuid"])
            if domain is None or not domain.runs or there is None or move["uuid"] in other.domains:
                continue
            other.define([specs[move["uuid"]]])
            other.domains[move["uuid"]].state = domain.state
            there.content, there.version = self.disks[move["uuid"]].copy
            del self.domains[move["uuid"]]
            done.append(move["uuid"])
        return done

    # --- What other playbooks do there ---

    def act(self, action: str, plan: Plan) -> list[Plan]:
        """Role `power`."""
        if plan["starts"]:
            self.network_setup(plan)
        if action == "stop":
            self.stop(plan["domains"])
        else:
            self.power_on(plan["domains"])
        return [{"uuid": domain["uuid"], "state": self.domains[domain["uuid"]].state} for domain in plan["domains"]]

    def repair(self, drift: Plan) -> None:
        """What reconcile.yml has the host do after the removals."""
        self.restore(drift["restore"])
        self.forget(drift["forget"])
        self.make_disks(drift["disks"])
        if drift["keep"] is not None:
            self.network_setup(drift["keep"])
        self.define(drift["define"])
        self.power_on(drift["restart"])

    def keep_records(self, kept: Plan) -> None:
        for uuid, text in kept["records"].items():
            if uuid in self.disks:
                self.disks[uuid].record = text
        self.host_record = kept["host_record"]

    def kept(self, name: str, now: float) -> Plan:
        """Module `host_record`, state `read`."""
        records = {uuid: disk.record for uuid, disk in sorted(self.disks.items())}
        kept = {"records": records, "host_record": self.host_record}
        return {"name": name, "found": self.scan(now), **kept, "marks": self.machine()["marks"]}
