# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of a playbook: the real operations on the controller's ledger, and trips to machines in memory.

Between any two of its steps a run can be cut off, and another one can come.
"""

from __future__ import annotations

import contextlib
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._drift.proofs import sights_of
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import STATE_DIR
from ansible_collections.novalite.cloud.plugins.module_utils._host.mark import Seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.host_marks import open_marks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of, run_operation
from ansible_collections.novalite.cloud.plugins.module_utils._plan.undo import made_by
from ansible_collections.novalite.cloud.plugins.plugin_utils._handshake import Errand, Handshake, HostRefusedError
from tests.support.cloud import checked
from tests.unit._ledger.histories.machines import Machine
from tests.unit._ledger.histories.things import Plan, StepFailed

if t.TYPE_CHECKING:
    from tests.unit._ledger.histories.world import Controller, World

T = t.TypeVar("T")
NOT_MET = Seen({})  # of a host that no ledger is compared with


class Cut(Exception):
    """The run was killed."""


class Unreachable(Exception):
    """The host does not answer, or refuses the trip."""


class Refused(StepFailed):
    """The machine is not the host that the ledger means, or knows a newer one: nothing was done on it."""


class Run:
    """One run of `controller`. It dies before its step number `cut`; `beside` comes before the step `at`, a number, or
    the first one of that name: an operation, or a host."""

    def __init__(
        self,
        world: World,
        controller: Controller,
        cut: int | None = None,
        beside: t.Callable[[], None] | None = None,
        at: int | str = 0,
    ) -> None:
        self.world, self.controller = world, controller
        self._cut, self._beside, self._at, self._steps = cut, beside, at, 0

    @property
    def undisturbed(self) -> bool:
        """Whether nothing is to come beside it any more."""
        return self._beside is None

    @property
    def hosts(self) -> list[str]:
        return list(self.controller.inventory)

    def operate(self, name: str, /, check_mode: bool = False, **params: t.Any) -> Plan:
        """Run an operation as its action plug-in does, which has put `params` together. Raises NovaliteError."""
        self._step(name)
        self.world.now += 1
        self.world.offset = self.controller.offset
        return run_operation(operation_of(name), {**params, "home": self.controller.home}, check_mode)

    def task(self, name: str, /, check_mode: bool = False, **args: t.Any) -> Plan:
        """Run a controller module as a task does. Raises NovaliteError."""
        return self.operate(name, check_mode, **{**checked(name, **args), "ledger_url": None})

    def machine(self, host: str) -> Machine:
        return self.world.machines[self.controller.inventory[host]]

    def trip(self, host: str, work: t.Callable[..., T], *args: t.Any, compared: bool = True, **errand: t.Any) -> T:
        """`work` with `args` on the machine that the inventory has under this name, once it is `compared` with the
        ledger; `errand` says what the trip is for.

        Raises Unreachable, and StepFailed also where the trip is refused, as its task fails then."""
        self._step(host)
        self.world.now += 1
        failures: list[StepFailed] = []

        def go(expected: Plan | None, with_steps: bool) -> tuple[Seen, T | None]:
            if host not in self.controller.inventory or not self.machine(host).reachable:
                raise Unreachable(f"{host} does not answer")
            seen = NOT_MET if expected is None else self.machine(host).meet(expected)
            if seen.refused is not None or not with_steps:
                return seen, None
            try:
                return seen, work(self.machine(host), *args)
            except StepFailed as error:
                failures.append(error)
                return seen, None
            finally:
                self._step("answer")  # it may be killed before that comes

        self.world.offset = self.controller.offset
        try:
            marks = open_marks(self.controller.home, None) if compared else None
            handshake = Handshake.begin(marks, Errand(host, **errand)) if marks is not None else None
            done = go(None, True)[1] if handshake is None else handshake.take(go)
        except HostRefusedError as error:
            raise Refused(str(error)) from error
        except NovaliteError as error:
            raise StepFailed(str(error)) from error
        if failures:
            raise failures[0]
        return t.cast(T, done)

    def _step(self, name: str) -> None:
        self._steps += 1
        if self._steps == self._cut:
            raise Cut
        if self._at in (self._steps, name) and self._beside is not None:
            beside, self._beside = self._beside, None
            beside()

    # --- Parts that several playbooks share ---

    def facts(self, hosts: t.Iterable[str] | None = None, replaced: t.Collection[str] = ()) -> list[Plan]:
        """Play "Look at the compute hosts"."""
        seen = []
        for host in self.hosts if hosts is None else hosts:
            errand = {"looks": True, "replaced": host in replaced}
            try:
                seen.append(self.trip(host, Machine.facts, host, **errand))
            except (Unreachable, StepFailed) as error:
                refused = isinstance(error, Refused)
                seen.append({"name": host, "up": False, "down_reason": str(error), "refused_host": refused})
        return seen

    def keep_records(self, hosts: t.Iterable[str]) -> None:
        """Play "Write the hosts' records"."""
        for host in hosts:
            try:
                kept = self.operate("host_record", host=host)
                self.trip(host, Machine.keep_records, kept)
            except (Unreachable, StepFailed, NovaliteError):
                continue

    def compute_nodes(self, replaced: t.Sequence[str] = ()) -> None:
        """Playbook compute_nodes.yml."""
        self.task("host_identity", machines=self._machines(self.hosts), replaced=list(replaced))
        for facts in self.facts(replaced=replaced):
            if facts["up"]:
                self.operate("compute_host", compute_hosts=[{**facts, "replaced": facts["name"] in replaced}])

    def rename(self, name: str, new_name: str) -> None:
        """Playbook compute_node_rename.yml."""
        machines = self._machines([new_name])
        renamed = self.task("host_identity", state="renamed", name=name, new_name=new_name, machines=machines)
        self.trip(new_name, Machine.machine, former=name)
        if not renamed["behind"]:
            self.keep_records([new_name])

    def _machines(self, hosts: t.Iterable[str]) -> dict[str, Plan]:
        machines = {}
        for host in hosts:
            with contextlib.suppress(Unreachable):
                machines[host] = self.trip(host, Machine.machine, compared=False)
        return machines

    # --- Launch ---

    def launch(self, names: t.Sequence[str], **request: t.Any) -> list[str]:
        """Playbook launch.yml: returns the UUIDs of those that run."""
        servers = [{"name": name, "flavor": "m1.nano", "image": "ami-tiny", **request} for name in names]
        asked = self.task("server", servers=servers)
        self.world.note_requests(asked["to_build"])
        # hosts of which another run heard within the last minute are not asked
        plan = self.operate(
            "launch_plan",
            **checked("launch_plan", instances=asked["to_build"], hosts=self.hosts, max_age=60),
            expected={host: {} for host in self.hosts},
        )
        if "ask" in plan:
            facts = self.facts(plan["ask"])
            up = [*plan["fresh"], *(each["name"] for each in facts if each["up"])]
            plan = self.task("launch_plan", instances=asked["to_build"], compute_hosts=facts, seen_hosts=up)
        for _attempt in range(3):
            if not any("build" in plans for plans in plan["hosts"].values()):
                break
            outcomes = [self._build(host, plans["build"]) for host, plans in plan["hosts"].items() if "build" in plans]
            plan = self.task(
                "launch_record",
                launch=plan["launch"],
                plans=plan["hosts"],
                outcomes=[outcome for outcome in outcomes if outcome],
                seen_hosts=plan["launch"]["seen_hosts"],
            )
        self.world.output += plan["launch"]["failures"]
        return [server["uuid"] for server in plan["launch"]["built"]]

    def _build(self, host: str, plan: Plan) -> Plan | None:
        """Role spawn."""
        try:
            self.trip(host, Machine.spawn, plan)
        except Unreachable:
            return None
        except StepFailed as error:
            outcome = {"uuids": plan["uuids"], "host": host, "state": "retry", "reason": str(error)}
            if error.steps:  # before the checks were through, nothing was made
                made = made_by(plan, error.steps)
                with contextlib.suppress(StepFailed, Unreachable):
                    self.trip(host, Machine.reclaim, made)
            return outcome
        self.world.note_built(plan["uuids"])
        return {"uuids": plan["uuids"], "host": host, "state": "active"}

    # --- Terminate ---

    def terminate(self, **whom: t.Any) -> None:
        """Playbook terminate.yml, of `servers` or `uuids`."""
        request = self.task("server", state="absent", **whom)
        plan = self.task("server_plan", leaving=request["to_delete"])
        gone: list[Plan] = []
        for host, plans in plan["hosts"].items():
            for part in ("remove", "vacate"):
                try:
                    if part in plans:
                        self.trip(host, Machine.reclaim, plans[part])
                        if part == "remove":
                            gone.append({"uuids": plans[part]["uuids"], "host": host, "state": "deleted"})
                except (StepFailed, Unreachable) as error:
                    self.world.output.append(str(error))
        homeless = [server["uuid"] for server in request["to_delete"] if not server["host"]]
        if request["to_delete"]:
            outcomes = [*gone, {"uuids": homeless, "state": "deleted"}]
            self.task("server_state", outcomes=outcomes)

    # --- Stop and start ---

    def power(self, action: str, name: str) -> None:
        """Playbooks stop.yml, start.yml and reboot.yml."""
        begun = self.task("server_action", action=action, servers=[{"name": name}], hard=action == "reboot")
        outcomes = []
        for host, plan in begun["hosts"].items():
            outcome: Plan = {"host": host, "results": [], "error": None}
            try:
                outcome["results"] = self.trip(host, Machine.act, action, plan)
            except (StepFailed, Unreachable) as error:
                outcome["error"] = str(error)
            outcomes.append(outcome)
        if begun["hosts"]:
            ended = self.task("server_action", action=action, plans=begun["hosts"], outcomes=outcomes)
            self.world.output += [error["message"] for error in ended["errors"]]

    # --- Reconcile ---

    def reconcile(self, limit: t.Sequence[str] | None = None, accept: t.Sequence[str] = ()) -> list[Plan]:
        """Playbook reconcile.yml: returns the rows of its table, and those of hosts where it `failed`."""
        hosts = [host for host in self.hosts if limit is None or host in limit]
        repaired = self.task("ledger_heal")
        self._resolve(hosts)
        deletions = [each["uuid"] for each in repaired["deletions"] if limit is None or each["host"] in [*hosts, None]]
        if deletions:
            self.terminate(uuids=deletions)
        rows: list[Plan] = []
        looks: dict[str, Plan] = {}
        for host in hosts:
            began = time.monotonic()
            try:
                look = self.trip(host, Machine.scan, self.world.now, looks=True)
                looks[host] = {"found": look, "began": began}
            except (StepFailed, Unreachable) as error:
                rows.append({"host": host, "failed": str(error)})
        seen = {
            host: {"sights": {uuid: vars(sight) for uuid, sight in sights_of(look["found"]).items()}, "volumes": []}
            for host, look in looks.items()
        }
        compared = self.task("whereabouts", seen=seen, accept=list(accept))
        rows += [{"host": None, "failed": refusal} for refusal in compared["refusals"]]
        for host, elsewhere in compared["hosts"].items():
            try:
                rows += self._reconcile(host, {**looks[host], "elsewhere": elsewhere})
            except (StepFailed, Unreachable, NovaliteError) as error:
                rows.append({"host": host, "failed": str(error)})
        return rows

    def _resolve(self, hosts: t.Sequence[str]) -> None:
        """Ask where guests are whose live migration was cut off, and record it."""
        cut_off = self.task("server_migration", state="interrupted", action="live-migration")
        outcomes = []
        for host in cut_off["targets"]["hosts"]:
            domains = cut_off["hosts"][host]["domains"]
            try:
                if host in hosts:
                    states = self.trip(host, Machine.states, domains, looks=True)
                    outcomes.append({"host": host, "domains": states})
            except Unreachable:
                continue
        if cut_off["targets"]["controller"]:
            self.task("server_migration", state="resolve", action="live-migration", outcomes=outcomes)

    def _reconcile(self, host: str, look: Plan) -> list[Plan]:
        """Tasks reconcile.yml."""
        drift = self.operate("host_drift", host=host, state_dir=STATE_DIR, **look)
        if drift["left"]:
            self.trip(host, self.world.repair, drift["plan"])
        restarted: Plan = {"host": host, "results": [], "error": None}
        try:
            self.trip(host, Machine.repair, drift)
            restarted["results"] = [{"uuid": each["uuid"], "state": "running"} for each in drift["restart"]]
        except (StepFailed, Unreachable) as error:
            restarted["error"] = str(error)
        if drift["restart"]:
            plans = {host: {"uuids": [each["uuid"] for each in drift["restart"]]}}
            self.task("server_action", action="reboot", plans=plans, outcomes=[restarted])
        if restarted["error"]:
            raise StepFailed(restarted["error"])
        if drift["rows"] or drift["changed"]:  # reconcile.yml always does, and mostly writes what is there
            self.keep_records([host])
        return t.cast("list[Plan]", drift["rows"])

    # --- The ledger ---

    def rebuild_ledger(self, partial: bool = False) -> Plan:
        """Playbook ledger_rebuild.yml."""
        kept: list[Plan] = []
        silent: list[str] = []
        refused: dict[str, str] = {}
        errand = {"looks": True, "any_mark": True}
        for host in self.hosts:
            try:
                kept.append(self.trip(host, Machine.kept, host, self.world.now, **errand))
            except (Unreachable, StepFailed) as error:
                self.world.output.append(str(error))
                silent.append(host)
                if isinstance(error, Refused):
                    refused[host] = str(error)
        rebuilt = self.task("ledger_rebuild", hosts=kept, silent=silent, refused=refused, partial=partial)
        for facts in self.facts(each["name"] for each in kept) if rebuilt["changed"] else ():
            if facts["up"]:
                self.operate("compute_host", compute_hosts=[facts])
        return rebuilt

    def copy_ledger(self, file: str) -> None:
        self.operate("ledger", operation="backup", file=file)

    def restore_ledger(self, file: str) -> None:
        self.operate("ledger", operation="restore", file=file, force=True)
