# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record which playbooks, roles and modules a run of ansible-playbook came to, for tools/coverage-table."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import typing as t

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: record_coverage
type: aggregate
short_description: Records what of novalite a run came to
description: [Appends a line of JSON to the file of the environment variable NOVALITE_COVERAGE.]
"""

OURS = "novalite.cloud."
PLAYBOOK = re.compile(r"/novalite/cloud/playbooks/(\w+)\.yml:|/playbooks/(\w+)\.yml:")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record_coverage"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.seen: set[tuple[str, str]] = set()

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        self.seen.add(("playbook", pathlib.Path(playbook._file_name).stem))

    def v2_runner_on_ok(self, result: t.Any, **_options: t.Any) -> None:
        task = result.task
        if match := PLAYBOOK.search(str(task.get_path())):
            self.seen.add(("playbook", match[1] or match[2]))
        if task._role is not None and task._role.get_name().startswith(OURS):
            self.seen.add(("role", task._role.get_name().removeprefix(OURS)))
        if task.action.startswith(OURS):
            self.seen.add(("module", task.action.removeprefix(OURS)))
            if task.action in (f"{OURS}host_step", f"{OURS}ledger_step"):
                self.seen.add(("module", task.args["step"]))
            steps = result.result.get("steps")
            self.seen |= {("module", step["module"]) for step in steps if "module" in step} if steps else set()

    v2_runner_on_failed = v2_runner_item_on_ok = v2_runner_item_on_failed = v2_runner_on_ok

    def v2_playbook_on_stats(self, _stats: t.Any) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
        by = os.environ.get("NOVALITE_SCENARIO") or test or "by hand"
        with contextlib.suppress(OSError), open(os.environ["NOVALITE_COVERAGE"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"by": by, "seen": sorted(self.seen)}) + "\n")
