# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pushes images that lie on the controller, once and only to hosts that miss them, around module image_cache."""

from __future__ import annotations

import os
import typing as t

from ansible.plugins.action import ActionBase

MODULE = "novalite.cloud.image_cache"


class ActionModule(ActionBase):
    """One module call when everything is cached; push and a second call for what is not."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        self._supports_check_mode = True
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        result.update(self._execute_module(module_name=MODULE, module_args=self._task.args, task_vars=task_vars))
        missing = result.get("missing")
        if result.get("failed") or not missing:
            return result
        complaints = [complaint for complaint in map(_complaint, missing) if complaint]
        staged = {image["checksum"]: image["staged"] for image in missing if image["staged"]}
        if complaints:
            self._remove(staged.values())
            return {**result, "failed": True, "changed": False, "refused": True, "msg": "; ".join(complaints)}
        if staged:
            self._push(result, staged, task_vars)
        return result

    def _push(self, result: dict[str, t.Any], staged: dict[str, str], task_vars: dict[str, t.Any] | None) -> None:
        images = {image["checksum"]: image for image in self._task.args["images"] if image["checksum"] in staged}
        # Another user than root cannot write to the staging files: such a push goes through Ansible's own directory.
        directory = self._make_tmp_path() if self._connection.become is not None else None
        pushed = []
        taken = False
        try:
            for checksum, path in staged.items():
                if directory:
                    path = self._connection._shell.join_path(directory, os.path.basename(path))
                self._transfer_file(images[checksum]["source"], path)
                pushed.append({**images[checksum], "staged": path})
            second = self._execute_module(
                module_name=MODULE, module_args={**self._task.args, "images": pushed}, task_vars=task_vars)
            taken = directory is None  # the module removes the staging files that it is given
        finally:
            if not taken:
                self._remove(staged.values())
            if directory:
                self._remove_tmp_path(directory)
        _merge(result, second)

    def _remove(self, paths: t.Iterable[str]) -> None:
        for path in paths:
            self._low_level_execute_command(self._connection._shell.remove(path))


def _complaint(image: dict[str, t.Any]) -> str | None:
    source = image["source"]
    if not os.path.isfile(source):
        return f"image '{source}' does not exist on the controller; register it again with the path where it is"
    size = os.path.getsize(source)
    if size != image["size"]:
        return f"image '{source}' has {size} bytes but {image['size']} were declared; register it again"
    return None


def _merge(result: dict[str, t.Any], second: dict[str, t.Any]) -> None:
    if second.get("failed"):
        for detail in ("images", "missing", "diff"):  # they hide the one line that says what is wrong
            result.pop(detail, None)
        result.update(second)
        return
    statuses = {image["checksum"]: image for image in second["images"]}
    result["images"] = [statuses.get(image["checksum"], image) for image in result["images"]]
    result["missing"] = second["missing"]
    result["changed"] = result["changed"] or second["changed"]
    for side in ("before", "after"):
        result["diff"][side].update(second["diff"][side])
