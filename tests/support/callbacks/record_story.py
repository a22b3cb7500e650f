# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record what the callback `explain` is told of a launch, for the pictures of docs/ and their tests.

::

    ANSIBLE_CALLBACK_PLUGINS=tests/support/callbacks \
      ANSIBLE_CALLBACKS_ENABLED=novalite.cloud.explain,record_story RECORD_STORY=docs/recorded/launch.json \
      ansible-playbook -i inventories/lab playbooks/launch.yml -e explain=true ...
"""

from __future__ import annotations

import json
import os
import re
import time
import typing as t

from ansible.plugins.callback import CallbackBase

from ansible_collections.novalite.cloud.plugins.module_utils._screen.task_words import operation_name

DOCUMENTATION = r"""
name: record_story
type: aggregate
short_description: Records the results that the callback explain tells of
description: [Writes them as JSON into the file of the environment variable RECORD_STORY.]
"""

TOLD = ("server", "launch_plan", "host_steps", "launch_record")
# what is of this machine, or of no use in a picture
LEFT_OUT = ("record", "traits")
PATHS = re.compile(r"/[\w./-]+/images/")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record_story"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.since: dict[tuple[str, str], float] = {}
        self.events: list[dict[str, t.Any]] = []

    def v2_runner_on_start(self, host: t.Any, task: t.Any) -> None:
        self.since[host.get_name(), str(task._uuid)] = time.monotonic()

    def v2_runner_on_ok(self, result: t.Any) -> None:
        operation, host = operation_name(result.task), result.host.get_name()
        if operation in TOLD:
            seconds = time.monotonic() - self.since[host, str(result.task._uuid)]
            shown = plain(json.loads(json.dumps(result.result)))
            self.events.append(
                {
                    "operation": operation,
                    "host": host,
                    "seconds": round(seconds, 3),
                    "result": trimmed(operation, shown),
                }
            )

    def v2_playbook_on_stats(self, _stats: t.Any) -> None:
        with open(os.environ["RECORD_STORY"], "w", encoding="utf-8") as file:
            json.dump({"events": self.events}, file, indent=1, sort_keys=True)
            file.write("\n")


def plain(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name not in LEFT_OUT}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return PATHS.sub("/var/lib/novalite/images/", value) if isinstance(value, str) else value


def trimmed(operation: str, result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Only what the story reads: each value once, and no difference of a whole task."""
    if operation == "host_steps":
        return {"steps": result["steps"], "trip": result["trip"]}
    kept: dict[str, t.Any] = {
        name: result[name]
        for name in ("to_build", "request_id", "instances", "explanations", "unplaced", "hosts", "launch")
        if name in result
    }
    if "launch" in kept:
        kept["launch"] = {"calls": kept["launch"]["calls"]}
    for plans in kept.get("hosts", {}).values():
        build = plans.get("build", {})
        names = ("domains", "injections", "dhcp_networks", "metadata_networks", "config_drives")
        plans["build"] = {name: build[name] for name in names if name in build}
    return kept
