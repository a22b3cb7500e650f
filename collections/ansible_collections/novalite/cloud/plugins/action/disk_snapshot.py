# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fetches to the controller what module disk_snapshot copied on the host, and judges it there once more."""

from __future__ import annotations

import functools
import os
import shutil

from ansible.errors import AnsibleError

from ..module_utils import _deadlines
from ..module_utils._disk.controller_files import received
from ..module_utils._errors import NovaliteError
from ..module_utils._json import JsonObject
from ..plugin_utils import _home, _patience
from ..plugin_utils._trip import TripAction

MODULE = "disk_snapshot"


class ActionModule(TripAction):
    """Action of one module call to copy, one fetched file for each copy, and one call to remove what was copied."""

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if self._connection.become is not None:  # the files are fetched by whoever logs in, and not by root
            uid = self._low_level_execute_command("id -u", sudoable=False)["stdout"].strip()
            arguments["owner"] = int(uid or 0)
        formats = {entry["image_id"]: entry.get("disk_format") or "qcow2" for entry in arguments["snapshots"]}
        if shutil.which("qemu-img"):  # then no zeros come over the wire: a raw image is made of a qcow2 here
            arguments["snapshots"] = [{**entry, "disk_format": "qcow2"} for entry in arguments["snapshots"]]
        sent = {entry["image_id"]: entry.get("disk_format") or "qcow2" for entry in arguments["snapshots"]}
        result = self.run_on_host(MODULE, arguments, task_vars)
        taken = [snapshot for snapshot in result.get("snapshots") or [] if not snapshot["error"]]
        if arguments.get("state") == "absent" or self._task.check_mode or not taken:
            return result
        home = _home.home(None, task_vars or {}, self._templar)
        directory = os.path.expanduser(arguments.get("controller_dir") or os.path.join(home, "images"))
        try:
            for copy in taken:
                number = copy["image_id"]
                self._fetch(copy, os.path.abspath(directory), sent[number], formats[number])
        finally:
            snapshots = [{"uuid": copy["uuid"], "image_id": copy["image_id"]} for copy in taken]
            self.run_on_host(MODULE, {**arguments, "state": "absent", "snapshots": snapshots}, task_vars)
        errors = [snapshot["error"] for snapshot in result["snapshots"] if snapshot["error"]]
        if errors:
            result.update(failed=True, msg="; ".join(errors))
        return result

    def _fetch(self, copy: JsonObject, directory: str, disk_format: str, wanted_format: str) -> None:
        """Bring one copy into `directory`; `copy` gets its source and checksum, or an error."""
        try:
            fetch = functools.partial(self._fetched, copy)
            copy.update(received(copy["image_id"], directory, fetch, copy["size"], disk_format, wanted_format))
        except (NovaliteError, AnsibleError) as error:
            copy["error"] = f"{copy['uuid']}: the copy of its disk cannot be fetched: {error}"

    def _fetched(self, copy: JsonObject, path: str) -> None:
        with _patience.limited(self._connection, _deadlines.of_file(copy["size"])):
            self._connection.fetch_file(copy["path"], path)
