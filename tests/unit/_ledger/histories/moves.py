# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves: playbooks migrate.yml, resize.yml, live_migrate.yml, evacuate.yml, confirm_resize.yml and revert_resize.yml.
Their plays in their order, with the steps of role `move`."""

from __future__ import annotations

import typing as t

from tests.unit._ledger.histories.machines import Machine
from tests.unit._ledger.histories.runs import Run, Unreachable
from tests.unit._ledger.histories.things import Plan, StepFailed

# which are taken also on a host where one went wrong
UNDOING = ("dest_rollback", "restore", "source_cleanup", "source_cleanup_live")
Step = t.Callable[[Machine, Plan, t.Collection[str]], t.Optional[Plan]]


class Moving:
    """The moves of a run: how each host did, and how they went so far."""

    def __init__(self, run: Run, action: str, **whom: t.Any) -> None:
        self._run, self._action = run, action
        facts = run.facts() if action in ("resize", "migrate", "live-migration", "evacuate") else []
        self._begun = run.task("server_migration", action=action, compute_hosts=facts, **whom)
        self._errors: dict[str, str] = {}
        self._outcomes: dict[str, Plan] = {}
        self._so_far: Plan = {
            "moves": self._begun["moves"],
            "done": [],
            "lost": [],
            "lost_uuids": [],
            "lost_here": [],
            "failures": self._begun["errors"],
            "targets": self._begun.get("targets", {}),
        }

    def step(self, name: str, work: Step) -> None:
        """Part move_step.yml, and role move."""
        failed = self._so_far["lost_here" if name == "dest_rollback" else "lost_uuids"]
        for host in self._so_far["targets"].get(name, ()):
            if name in UNDOING:
                self._errors.pop(host, None)
            if host in self._errors:
                continue
            plan = self._plan(host)
            self._outcomes[host] = {"host": host, "error": f"it did not finish: {name}"}
            try:
                result = self._run.trip(host, work, plan, failed)
                self._outcomes[host] = {"host": host, "error": None, **(result or {})}
            except (StepFailed, Unreachable) as error:
                self._errors[host] = str(error)
                here = [] if name == "migrate" else [move["uuid"] for move in plan.get("leaving", ())]
                self._outcomes[host] = {"host": host, "error": str(error), "here": here}

    def record(self, state: str, parts: t.Sequence[str]) -> None:
        """Part move_record.yml."""
        if self._so_far["targets"].get("controller"):
            self._so_far = self._run.task(
                "server_migration",
                state=state,
                action=self._action,
                before=self._so_far,
                parts=list(parts),
                outcomes=[self._outcomes[host] for host in self._begun["hosts"] if host in self._outcomes],
            )

    def finish(self) -> None:
        """Part move_notify.yml."""
        self._run.keep_records(self._so_far["targets"].get("hosts", ()))
        self._run.world.output += [failure["message"] for failure in self._so_far["failures"]]

    def other(self, move: Plan) -> Machine:
        """The destination, as its source reaches it."""
        host = move["to_host"]
        if host not in self._run.hosts or not self._run.machine(host).reachable:
            raise StepFailed(f"{host} cannot be reached")
        return self._run.machine(host)

    def _plan(self, host: str) -> Plan:
        plan = dict(self._begun["hosts"][host])
        for part, fields in self._so_far.get("unused", {}).get(host, {}).items():
            plan[part] = {**plan.get(part, {}), **fields}
        return plan


def cold(run: Run, action: str, **whom: t.Any) -> Moving:
    """Part move_cold.yml."""
    moving = Moving(run, action, **whom)

    def send(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
        machine.keep(plan.get("staying", ()))
        for move in plan.get("leaving", ()):
            machine.send([move], moving.other(move))

    moving.step("stop", _stop)
    moving.step("dest_open_channel", _nothing)
    moving.step("send", send)
    moving.step("receive", _receive)
    moving.record("commit", ("from_host", "to_host"))
    moving.step("build", _build)
    moving.record("end", ("to_host",))
    moving.step("dest_rollback", _roll_back)
    moving.step("restore", _restore)
    moving.step("source_cleanup", _leave_disks)
    moving.step("dest_close_channel", _nothing)
    moving.finish()
    return moving


def live(run: Run, **whom: t.Any) -> Moving:
    """Part move_live.yml."""
    moving = Moving(run, "live-migration", **whom)

    def migrate(machine: Machine, plan: Plan, failed: t.Collection[str]) -> Plan:
        specs = {domain["uuid"]: domain for domain in plan["domains_there"]}
        done = [uuid for move in plan["leaving"] for uuid in machine.migrate([move], specs, moving.other(move))]
        here = [move["uuid"] for move in plan["leaving"] if move["uuid"] in machine.domains]
        return {"done": done, "here": here}

    for step in ("source_open_channel", "dest_allow_source", "send_beside"):
        moving.step(step, _nothing)
    moving.step("prepare", _prepare)
    moving.step("migrate", migrate)
    moving.record("end", ("from_host",))
    moving.step("dest_rollback", _roll_back)
    moving.step("source_cleanup_live", _clean_up_live)
    moving.step("dest_close_channel", _nothing)
    moving.finish()
    return moving


def evacuate(run: Run, **whom: t.Any) -> Moving:
    """Playbook evacuate.yml."""
    moving = Moving(run, "evacuate", **whom)
    moving.record("commit", ())
    moving.step("rebuild", _build)
    moving.record("end", ("to_host",))
    moving.step("dest_rollback", _roll_back)
    moving.finish()
    return moving


def confirm(run: Run, name: str) -> Moving:
    """Part move_confirm.yml."""
    moving = Moving(run, "confirmResize", servers=[{"name": name}])
    moving.step("source_cleanup", _clean_up)
    moving.record("end", ("from_host",))
    moving.finish()
    return moving


def revert(run: Run, name: str) -> Moving:
    """Part move_back.yml."""
    moving = Moving(run, "revertResize", servers=[{"name": name}])

    def build(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
        machine.restore([move for move in plan.get("staying", ()) if move["uuid"] not in failed])
        _build(machine, plan, failed)

    moving.step("look_for_former", _look_for_former)
    moving.step("stop", _stop)
    moving.record("commit", ("from_host", "to_host"))
    moving.step("build", build)
    moving.record("end", ("to_host",))
    moving.step("source_cleanup", _clean_up)
    moving.finish()
    return moving


def _nothing(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    """Ways between hosts: a model has none."""


def _look_for_former(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    for kind in ("arriving", "staying"):
        for move in plan.get(kind, ()):
            disk = machine.disks.get(move["uuid"])
            if disk is None or (kind == "staying" and disk.kept is None):
                raise StepFailed(f"instance {move['uuid']}: its disk is not there")


def _stop(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    domains = [*plan.get("leave", {}).get("domains", ()), *plan.get("build", {}).get("domains", ())]
    machine.stop(_of(domains, plan["starts"]["leaving"] + plan["starts"]["staying"]))


def _receive(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    machine.receive(plan.get("arriving", ()))


def _build(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    build, starts = plan["build"], plan["starts"]
    machine.make_disks(disk for disk in build["disks"] if disk["uuid"] not in failed)
    machine.network_setup(build)
    machine.start(_of(build["domains"], set(starts["arriving"] + starts["staying"]).difference(failed)))
    machine.define(_of(build["domains"], set(plan["rests"]).difference(failed)))


def _prepare(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    machine.remove_disks(plan["build"]["disks"])
    machine.make_disks(plan["build"]["disks"])
    machine.network_setup(plan["build"])


def _roll_back(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    away = [move["uuid"] for move in plan.get("arriving", ()) if move["uuid"] in failed]
    build = plan["build"]
    if len(away) == len(build["uuids"]):
        machine.reclaim({**build, "domains": _of(build["domains"], away), "disks": _of(build["disks"], away)})


def _restore(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    machine.restore([move for move in plan.get("staying", ()) if move["uuid"] in failed])
    if "leave" in plan:
        machine.network_setup(plan["leave"])
        machine.start(_of(plan["leave"]["domains"], set(plan["starts"]["leaving"]).intersection(failed)))
    staying = _of(plan.get("build", {}).get("domains", ()), set(plan["starts"]["staying"]).intersection(failed))
    machine.power_on([{**domain, "xml": None} for domain in staying])


def _leave_disks(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    _take_away(machine, plan, failed, disks=[])


def _clean_up(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    _take_away(machine, plan, failed)
    machine.forget(plan.get("staying", ()))


def _clean_up_live(machine: Machine, plan: Plan, failed: t.Collection[str]) -> None:
    staying = [domain for domain in plan["leave"]["domains"] if domain["uuid"] not in failed]
    if any(domain["uuid"] in machine.domains for domain in staying):
        raise StepFailed("still here")
    _take_away(machine, plan, failed, domains=[])


def _take_away(machine: Machine, plan: Plan, failed: t.Collection[str], **instead: t.Any) -> None:
    if "leave" in plan and not set(plan["leave"]["uuids"]).intersection(failed):
        machine.reclaim({**plan["leave"], **instead})


def _of(specs: t.Iterable[Plan], uuids: t.Collection[str]) -> list[Plan]:
    return [spec for spec in specs if spec["uuid"] in uuids]
