# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Events of a run: what ansible-runner says, made short and rid of secrets, and the progress that users see by it."""

from __future__ import annotations

import datetime
import logging
import re
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import Json, JsonMapping, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject as Row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.server_states import spawning
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Engine, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.instances import actions
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import without_controls

from .kinds import KINDS
from .runs import Plan
from .supervisor import STEP

log = logging.getLogger("novalite.jobs")

MAX_EVENTS = 5000  # of one run; what comes after is not kept
MAX_TEXT = 1000  # characters
MAX_NAME = 128
CENSORED = "not shown, for it may hold secrets (no_log)"
STATUS = {"runner_on_ok": "ok", "runner_on_failed": "failed", "runner_on_unreachable": "unreachable"}
# play -> the step that it is
STEPS = {
    "create": {
        "Look at the compute hosts": "schedule_look_at_hosts",
        "Place the instances": "schedule_choose",
        "Build on the compute hosts, and tell the networks' other hosts": "spawn",
        "Record on the controller": None,
    },
    "delete": {"Remove the guests": "reclaim", "Record the removal": None},
}
SPAWN = "spawn"
BYTES_EVERY = 5.0  # seconds between two rows that say how many bytes a step has moved
MIB = 1 << 20
_SECRET_NAME = re.compile(r"PASSW|SECRET|TOKEN|_URL$|KEY$")


class Reducer:
    """Makes rows of runner's events, and keeps what the end of the run is told by."""

    def __init__(self, run_id: str, secrets: t.Collection[str] = ()) -> None:
        self._run_id = run_id
        # the longest first: one may be part of another
        self._secrets = sorted((secret for secret in secrets if len(secret) >= 6), key=len, reverse=True)
        self._play: str | None = None
        self._task: str | None = None
        self._count = 0
        self._moved: dict[tuple[str | None, str | None], float] = {}  # host and step -> when its bytes were told last
        self.failure: str | None = None  # what the last task that failed for good said
        self.data: JsonObject = {}  # of set_stats

    def reduce(self, event: JsonMapping) -> Row | None:
        """The row of an event, or None when there is nothing to keep."""
        name, data = event.get("event"), event.get("event_data") or {}
        if name == "playbook_on_play_start":
            self._play = _name(data.get("name") or data.get("play"))
            self._task = None
            return self._row(event, "play")
        if name in ("playbook_on_task_start", "playbook_on_handler_task_start"):
            self._task = _name(data.get("name") or data.get("task"))
            return self._row(event, "task")
        if name == "playbook_on_stats":
            artifact = data.get("artifact_data")
            self.data = artifact if isinstance(artifact, dict) else {}
            return None
        if name in STATUS:
            return self._result(event, STATUS[name], data)
        if name == STEP:
            return self._step(event, data)
        return None

    def last_line(self, output: str | None) -> str | None:
        """Return the last line of a playbook that did not even begin."""
        lines = [line.strip() for line in (output or "").splitlines() if line.strip()]
        last = [line for line in lines if "ERROR" in line] or lines
        return self.clean(last[-1]) if last else None

    def clean(self, text: Json) -> str:
        """`text` as one short line without what must not be shown."""
        line = str(text)[: 10 * MAX_TEXT]
        for secret in self._secrets:
            line = line.replace(secret, "***")
        line = without_controls(line, " ")
        line = actions.without_secrets(" ".join(line.split()))
        return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 3] + "..."

    def _result(self, event: JsonMapping, status: str, data: JsonMapping) -> Row | None:
        result = data.get("res")
        result = result if isinstance(result, dict) else {}
        # runner itself censors what a task with no_log returned; its name for that is one of these
        hidden = bool(result.get("censored") or result.get("_ansible_no_log"))
        message = CENSORED if hidden else self.clean(result.get("msg") or "")
        if status == "failed" and data.get("ignore_errors"):
            status = "ignored"
        elif status in ("failed", "unreachable"):
            self.failure = f"{_name(data.get('task'))}: {message}" if message else _name(data.get("task"))
        elif status == "ok" and result.get("changed"):
            status = "changed"
        if status in ("ok", "changed") and not hidden:
            message = message if data.get("task_action") in ("debug", "ansible.builtin.debug") else ""
        return self._row(
            event,
            "result",
            task=_name(data.get("task")) or self._task,
            host=_name(data.get("host")),
            status=status,
            duration=data.get("duration") if isinstance(data.get("duration"), (int, float)) else None,
            text=message or None,
        )

    def _step(self, event: JsonMapping, data: JsonMapping) -> Row | None:
        """Return the row of an event of a step (plugin_utils/_events.py): it began, has moved bytes, or ended."""
        host, task, text, duration = _name(data["host"]), _name(data["step"]), None, None
        if data["kind"] == "moving":
            if data["at"] < self._moved.get((host, task), float("-inf")) + BYTES_EVERY:
                return None
            self._moved[host, task] = data["at"]
            of = f" of {data['total'] // MIB}" if data["total"] else ""
            text = f"{data['done'] // MIB}{of} MiB"
        status = "running"
        if data["kind"] == "end":
            duration = data["seconds"]
            failed = "ignored" if data["may_fail"] else "failed"
            status = failed if data["failed"] else "changed" if data["changed"] else "ok"
        return self._row(event, "step", task=task, host=host, status=status, duration=duration, text=text)

    def _row(self, event: JsonMapping, kind: str, **values: Json) -> Row | None:
        self._count += 1
        if self._count > MAX_EVENTS:
            return None
        return {
            "run_id": self._run_id,
            "created_at": _time(event.get("created")),
            "event": kind,
            "play": self._play,
            "task": self._task,
            "host": None,
            "status": None,
            "duration": None,
            "text": None,
            **values,
        }


class Progress:
    """Follows the events of one run. That something cannot be written now is no reason to end the run."""

    def __init__(self, engine: Engine, plan: Plan) -> None:
        self._engine = engine
        kind = next((known for known in KINDS.values() if known.playbook == plan.playbook), None)
        self._action = (kind.action if kind is not None else None) or ""
        self._uuids = plan.variables.get("uuids") or []

    def see(self, row: Row) -> None:
        """Look at an event, in the order in which they come."""
        steps = STEPS.get(self._action, {})
        play = row["play"]
        if row["event"] != "play" or play not in steps or not self._uuids:
            return
        try:
            with transaction(self._engine) as connection:
                if steps[play] == SPAWN:  # first, for it takes the hosts' locks, as who records the end does
                    spawning(connection, self._uuids)
                actions.step(connection, self._action, self._uuids, steps[play], clock.seconds(connection))
        except NovaliteError as error:
            log.warning("progress could not be written: %s", error)


def secrets_of(environment: t.Mapping[str, str]) -> list[str]:
    """Return the secrets in a run's environment: values of variables whose names say so, passwords in URLs."""
    values = []
    for name, value in environment.items():
        if _SECRET_NAME.search(name):
            values.append(value)
        if match := re.search(r"://[^/\s:@]*:([^/\s@]+)@", value):
            values.append(match[1])
    return values


def _name(value: Json) -> str | None:
    return str(value)[:MAX_NAME] if value else None


def _time(created: Json) -> float:
    try:
        return datetime.datetime.fromisoformat(created).timestamp()
    except (TypeError, ValueError):
        return time.time()
