# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `host_drift`: where a host is not as the ledger says, and what is to be done about each difference.

The ledger is read after the host was looked at, and only instances that nothing is being done to, and that nothing was
done to since the look began, are judged: what another run is at is that run's own business. What is to be started is
begun here as a hard reboot, by compare-and-swap, so that no two runs are at one guest.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._disk import removed
from ..._disk.layout import DISK, EPHEMERAL, KERNEL, RAMDISK, SWAP
from ..._drift import proofs
from ..._drift.report import Row, row
from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.look import Look
from ..compute import migrations, power_states, server_actions
from ..compute.plans import plan_hosts
from ..db import clock
from ..drift import leftover_rows
from ..drift.cut_off_moves import cut_off_moves
from ..drift.resize_disk_backups import resize_disk_backups
from ..drift.words import Elsewhere, words
from ..ec2 import ec2_shutdowns
from ..instances import actions
from ..instances.actions import swap
from ..queries.compute.views import instances_by
from ..volumes import volume_heal
from .orphans import orphans
from .whereabouts import rehearse

RESIZED = "resized"  # it waits for its owner's word, with its guest on or off as before
STATES = ("active", "stopped", "paused", "suspended", RESIZED)  # of instances whose guests are compared
ACTION = "reboot"  # Nova's way to make a guest again from what is recorded of it
REMOVED_DAYS = 14  # that the bin keeps what repairs removed
DETAILS = {"type": server_actions.HARD}


def host_drift(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Compare `params["found"]` (see host_scan.scan) on `params["host"]` with the ledger; `params["began"]` is when the
    look began, by this process's monotonic clock. Returns what `orphans` does, and what the module's documentation
    lists besides. Writes the states of guests that nobody can bring back, or that went another way by themselves."""
    look: Look = params["found"]
    host, since = params["host"], int(clock.at(connection, params["began"]))
    if (rehearsal := params.get("rehearsal")) is not None:
        rehearse(connection, {**rehearsal, "since": since})
    result = orphans(connection, {"host": host, "found": look, "elsewhere": params.get("elsewhere")})
    owners = leftover_rows.Owners(connection, look)
    rows = [
        *leftover_rows.left(host, result, owners),
        *leftover_rows.contested(host, result, look, owners),
        *leftover_rows.released(host, result),
    ]
    at_rest = [
        server
        for server in instances_by(connection, hosts=[host])
        if server["task_state"] is None
        and server["vm_state"] not in ("building", "deleted")
        and server["updated_at"] < since
    ]
    theirs = [server for server in at_rest if server["adopted"] is not None]
    obstacles = _obstacles(connection, params, [server for server in at_rest if server["adopted"] is None])
    at_rest = [server for server in at_rest if server["adopted"] is None and server["uuid"] not in obstacles]
    rows += obstacles.values()
    plans = plan_hosts(connection, params["state_dir"], existing=at_rest).rendered()
    keep = plans[host]["keep"] if at_rest else None
    guests = _Guests(connection, host, look, at_rest, keep or {})
    guests.judge()
    guests.follow_adopted(theirs)
    kept = resize_disk_backups(connection, host, look, [server for server in at_rest if server["vm_state"] in STATES])
    cut_off = cut_off_moves(connection, host, look)
    rows += [*kept["rows"], *cut_off["rows"]]
    stale_devices = [
        device for device in look["stale_devices"] if owners.is_ours(device["disk"]) or device["what"] == "mount"
    ]
    rows += guests.rows
    rows += _brought_here(connection, host, look)
    rows += [
        row(host, f"{device['what']} {device['name']}", "nobody is at it", f"leads to {device['disk']}", "detached")
        for device in stale_devices
    ]
    doubt = Elsewhere(connection, host, params).doubt_of_volume
    for name, status, why in volume_heal.fail_lost(connection, host, look["volumes"], since, doubt):
        how = f"none: {why}" if why is not None else "volume to error"
        rows.append(row(host, f"volume {name}", status, "missing", how))
        guests.changed |= why is None
    keep_days = params.get("removed_days", REMOVED_DAYS)
    bin_days = look.get("removed", [])
    # by the earlier of two clocks: one that is ahead empties nothing
    now = min(look["looked_at"], since) if bin_days else since
    expired = removed.expired([day["day"] for day in bin_days], now, keep_days)
    rows += [leftover_rows.emptied(host, day, keep_days) for day in bin_days if day["day"] in expired]
    if keep is not None:
        rows += [*_plug(host, look, keep), *_guard(host, look, keep)]
    result |= {
        "rows": rows,
        "changed": result["changed"] or guests.changed,
        "keep": keep,
        "images": guests.images(),
        "disks": guests.disks,
        "restore": kept["restore"],
        "forget": kept["forget"],
        "cut_off_moves": cut_off["moves"],
        "grow": guests.grow,
        "stale_devices": stale_devices,
        "empty": expired,
        "define": guests.define,
        "restart": guests.restart,
    }
    return result


def _obstacles(connection: sa.Connection, params: JsonMapping, at_rest: t.Sequence[Instance]) -> dict[str, Row]:
    """Instances (UUID -> row) that are left as they are: another host has them, or may have."""
    look: Look = params["found"]
    sights, elsewhere = proofs.sights_of(look), Elsewhere(connection, params["host"], params)
    known = words(connection, [server["uuid"] for server in at_rest])
    rows = {}
    for server in at_rest:
        uuid, here = server["uuid"], sights.get(server["uuid"], proofs.Sight())
        why = proofs.obstacle(known[uuid], params["host"], here, elsewhere.of(uuid))
        if why is not None:
            there = "off" if here.defined else "no domain" if here.disk else "missing"
            rows[uuid] = row(params["host"], f"server {server['name']}", server["vm_state"], there, f"none: {why}")
    return rows


def _brought_here(connection: sa.Connection, host: str, look: Look) -> list[Row]:
    """Guests that were adopted on another host, and that somebody moved."""
    uuids = [domain["uuid"] for domain in look["domains"]]
    how = "none: release it (release.yml), and adopt it here (adopt.yml)"
    return [
        row(host, f"domain {guest['domain_name']} ({guest['name']})", f"adopted on {guest['host']}", "here", how)
        for guest in instances_by(connection, uuids=uuids)
        if guest["adopted"] is not None and guest["host"] != host
    ]


class _Guests:
    """The guests of a host that are compared, and what is to become of them."""

    def __init__(
        self, connection: sa.Connection, host: str, look: Look, at_rest: t.Sequence[Instance], keep: JsonMapping
    ) -> None:
        self._connection, self._host, self._look = connection, host, look
        self._instances = [server for server in at_rest if server["vm_state"] in STATES]
        self._domains = {domain["uuid"]: domain for domain in look["domains"]}
        self._specs = {domain["uuid"]: domain for domain in keep.get("domains", ())}
        self._planned = {disk["uuid"]: disk for disk in keep.get("disks", ())}
        self._known_images = {image["checksum"]: image for image in keep.get("images", ())}
        self._bases: set[str] = set()
        self._moves = migrations.open_moves(
            connection, [server["uuid"] for server in at_rest if server["vm_state"] == RESIZED]
        )
        self.rows: list[Row] = []
        self.changed = False
        self.disks: list[Row] = []
        self.grow: list[Row] = []
        self.define: list[Row] = []
        self.restart: list[Row] = []

    def judge(self) -> None:
        for server in self._instances:
            if not self._lost(server):
                self._incomplete(server)
                self._domain(server)

    def follow_adopted(self, instances: t.Iterable[Instance]) -> None:
        """Guests that others made: what they do is recorded, and nothing is repaired, for nothing of them is ours."""
        for server in instances:
            what = f"domain {server['domain_name']} ({server['name']})"
            there = self._domains.get(server["uuid"])
            if there is None:
                how = "none: define it, mark it anew (adopt.yml), or release it (release.yml)"
                self.rows.append(row(self._host, what, f"{server['vm_state']}, adopted", "missing, or not marked", how))
            else:
                self._follow(server, there["state"], there["state"], what)

    def images(self) -> list[Row]:
        """Images that the cache has lost and whose source is known."""
        return [self._known_images[checksum] for checksum in sorted(self._bases) if checksum in self._known_images]

    def _lost(self, server: Instance) -> bool:
        """A disk that is gone does not come back: the instance is an error, and keeps all that it has."""
        plan = self._planned.get(server["uuid"])
        if plan is None:
            return False
        there = set(self._look["files"].get(server["uuid"], ()))
        # one that starts from a volume has no disk of its own
        planned_disks = [
            *([DISK] if plan.get("root", True) else []),
            *([EPHEMERAL] if plan.get("ephemeral_gb") else []),
        ]
        planned_disks = [name for name in planned_disks if name not in self._not_made_yet(server)]
        missing = [name for name in planned_disks if name not in there]
        if not missing:
            return False
        disks = " and ".join(missing)
        if server["vm_state"] == RESIZED:
            # not an error: that could not be reverted, and the disk is whole on its source
            what = f"{disks} of {server['name']}"
            self.rows.append(row(self._host, what, RESIZED, "missing", "none: revert the resize"))
            return True
        state = self._domains[server["uuid"]]["state"] if server["uuid"] in self._domains else "missing"
        runs = "; its guest still runs on what it has open: save its data before it ends" if state == "running" else ""
        message = f"its {disks} {'are' if len(missing) > 1 else 'is'} gone from {self._host}"
        if self._fail(server, message + runs):
            what = f"disk of {server['name']}"
            self.rows.append(
                row(self._host, what, server["vm_state"], "missing", "instance to ERROR, it keeps its claim")
            )
        return True

    def _fail(self, server: Instance, message: str) -> bool:
        now = clock.seconds(self._connection)
        fault = {"code": 500, "message": message, "created": now}
        values = {"vm_state": "error", "fault": fault, "updated_at": now}
        swapped = swap(self._connection, server["uuid"], values, *power_states.at_rest(server))
        if swapped:
            request, uuid = actions.new_request_id(), server["uuid"]
            actions.start(self._connection, "reconcile", {uuid: {}}, request, now, project_id=server["project"]["id"])
            actions.finish(self._connection, "reconcile", [(uuid, server["host"], message)], now=now)
            self.changed = True
        return swapped

    def _not_made_yet(self, server: Instance) -> set[str]:
        """Return disks that the new size has, the old one had not, and that a cut-off run has perhaps not made."""
        move = self._moves.get(server["uuid"])
        return {EPHEMERAL} if move is not None and not move.old_flavor.get("ephemeral_gb") else set()

    def _incomplete(self, server: Instance) -> None:
        """Files that can be made again: copies of images, and swap."""
        plan = self._planned.get(server["uuid"])
        if plan is None:
            return
        there = set(self._look["files"].get(server["uuid"], ()))
        planned_files = {KERNEL: plan["kernel"], RAMDISK: plan["ramdisk"], SWAP: plan.get("swap_mb")}
        planned_files |= {name: plan.get("ephemeral_gb") for name in self._not_made_yet(server)}
        missing = sorted(name for name, needed in planned_files.items() if needed and name not in there)
        lost = [
            checksum for checksum in self._look["missing_bases"].get(server["uuid"], ()) if checksum == plan["base"]
        ]
        new = set(lost) - self._bases
        self._bases |= new
        self._bases |= {plan[name] for name in missing if name not in (SWAP, EPHEMERAL)}
        for checksum in sorted(new):
            known = "fetched again" if checksum in self._known_images else "none: nobody knows where it came from"
            what = f"image {checksum[7:19]}"
            self.rows.append(row(self._host, what, f"{server['name']} stands on it", "not in the cache", known))
        if missing:
            self.disks.append(plan)
            what = f"{', '.join(missing)} of {server['name']}"
            self.rows.append(row(self._host, what, "there", "missing", "made again"))

    def _domain(self, server: Instance) -> None:
        there = self._domains.get(server["uuid"])
        state, reason = (there["state"], there["reason"]) if there else ("missing", "")
        what = f"domain {server['domain_name']} ({server['name']})"
        shown = f"{state} ({reason})" if reason else state
        # one that shut itself down, unless an action that was cut off may have told it to
        by_itself = reason == "shutdown" and server["power_state"] != server_actions.NO_STATE
        ended = state in ("missing", "crashed") or (state == "shutoff" and not by_itself)
        if self._should_run(server) and ended:
            if self._begin(server["uuid"]):
                how = "defined and started" if state == "missing" else "started"
                self.rows.append(row(self._host, what, server["vm_state"], shown, how))
                self.restart.append({**self._specs[server["uuid"]], "hard": True})
                self._complete_size(server)
            return
        unknown = server["vm_state"] == RESIZED and server["power_state"] == server_actions.NO_STATE
        if state == "missing" or (unknown and state == "shutoff"):
            self._complete_size(server)
            self.changed |= unknown and power_states.remember(self._connection, server, "shutoff")
            if server["vm_state"] in ("paused", "suspended"):  # what its memory held is lost
                self._follow(server, "shutoff", "missing", what)
            self.rows.append(row(self._host, what, server["vm_state"], shown, "defined"))
            self.define.append(self._specs[server["uuid"]])
        else:
            followed = self._follow(server, state, shown, what)
            self.changed |= power_states.remember(self._connection, server, state)
            # of one that was active and did not shut itself down, the end was above
            ended_itself = followed and state == "shutoff" and server["vm_state"] == "active"
            if ended_itself and ec2_shutdowns.terminate(self._connection, server):
                self.rows.append(row(self._host, what, "terminated when it shuts itself down", shown, "deletion begun"))

    def _should_run(self, server: Instance) -> bool:
        move = self._moves.get(server["uuid"])
        if move is not None:
            return power_states.runs_while_waiting(server["power_state"], move.old_vm_state)
        return bool(server["vm_state"] == "active")

    def _complete_size(self, server: Instance) -> None:
        """A guest that was moved gets all that its size has before it starts: the move may have been cut off before."""
        plan = self._planned.get(server["uuid"])
        if plan is not None and server["vm_state"] == RESIZED:
            self.grow.append(plan)
            if plan not in self.disks:
                self.disks.append(plan)

    def _begin(self, uuid: str) -> bool:
        request = actions.new_request_id()
        try:
            server_actions.begin(
                self._connection, ACTION, [uuid], request_id=request, details=DETAILS, by_admin=True, also_in=[RESIZED]
            )
        except ConflictError:
            return False  # somebody else was quicker
        self.changed = True
        return True

    def _follow(self, server: Instance, state: str, shown: str, what: str) -> bool:
        """Record the state of the guest; returns whether it is another one than before."""
        observed = {
            "domains": [{"uuid": server["uuid"], "state": state}],
            "updated_at": {server["uuid"]: server["updated_at"]},
        }
        changes = power_states.follow(self._connection, [observed])
        for change in changes:
            self.changed = True
            word = state if server["vm_state"] == RESIZED else change["after"]["vm_state"]
            self.rows.append(row(self._host, what, change["before"]["vm_state"], shown, f"recorded as {word}"))
        return bool(changes)


def _guard(host: str, look: Look, keep: JsonObject) -> list[Row]:
    """Name the devices whose rules against spoofing are not in force."""
    mine = {domain["uuid"] for domain in keep["domains"]}
    bare = [
        (domain["name"], tap["device"])
        for domain in look["domains"]
        if domain["uuid"] in mine
        for tap in domain["taps"]
        if tap["unfiltered"]
    ]
    keep["renew"] = sorted(device for _name, device in bare)
    return [
        row(host, f"filter rules of {device} of {name}", "in force", "flushed", "written anew") for name, device in bare
    ]


def _plug(host: str, look: Look, keep: JsonMapping) -> list[Row]:
    """Name for each bridge the guests' devices that belong to it; returns those that are not plugged in."""
    mine = {domain["uuid"]: domain for domain in keep["domains"]}
    rows: list[Row] = []
    for bridge in keep["bridges"]:
        here = [
            (domain["name"], tap)
            for domain in look["domains"]
            if domain["uuid"] in mine
            for tap in domain["taps"]
            if tap["bridge"] == bridge["name"]
        ]
        bridge["taps"] = sorted(tap["device"] for _name, tap in here)
        for name, tap in here:
            if tap["master"] != bridge["name"]:
                there = f"on {tap['master'] or 'no bridge'}"
                rows.append(row(host, f"{tap['device']} of {name}", f"on {bridge['name']}", there, "plugged in"))
    return rows
