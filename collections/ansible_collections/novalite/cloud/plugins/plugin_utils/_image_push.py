# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pushes images from the controller, once and only to hosts that miss them, around module image_cache."""

from __future__ import annotations

import contextlib
import os
import time
import typing as t

from ansible.errors import AnsibleError
from ansible.utils.display import Display

from ..module_utils._disk.cache import Image, Rules
from ..module_utils._disk.controller_files import downloaded
from ..module_utils._errors import ImageRefusedError, NovaliteError
from ..module_utils._host import deadlines
from ..module_utils._json import Json, JsonMapping, JsonObject
from . import _events, _home, _patience
from ._trip import TripAction

MODULE = "image_cache"
PLAN_VARIABLES = ("spawn_plan", "move_plan", "novalite_volume_plan", "novalite_cdrom_plan")
WORKED = ("uuids", "disks", "volumes", "snapshots")  # parts of plans that name what is worked on
GIB = 1 << 30


class ImageAction(TripAction):
    """The base of action plug-ins that have module image_cache run."""

    def bring(
        self, args: JsonMapping, result: JsonObject, task_vars: JsonObject | None, steps: t.Sequence[JsonMapping] = ()
    ) -> JsonObject:
        """Give the host what is missing after image_cache with `args` had `result`; return the result of both. It is
        for these `steps` that follow."""
        place = _home.ledger(self._task.args, task_vars or {}, self._templar)
        with self.alive(place, steps):
            return self._brought(args, result, task_vars)

    def waiting(self, task_vars: JsonObject) -> list[JsonObject]:
        """List what the images of a task of their own are for, as steps: the parts of the host's plan."""
        if self._task.check_mode:
            return []
        plans: list[Json] = []
        for name in PLAN_VARIABLES:
            with contextlib.suppress(AnsibleError):  # one that is not this task's business cannot be templated, perhaps
                plans += [self._templar.template(task_vars[name])] if name in task_vars else []
        parts = [part for plan in plans if isinstance(plan, dict) for part in (plan, plan.get("build") or {})]
        worked = [part[key] for part in parts for key in WORKED if key in part]
        return [{"module": MODULE, "args": {"for": worked}}] if worked else []

    def _brought(self, args: JsonMapping, result: JsonObject, task_vars: JsonObject | None) -> JsonObject:
        self._args = args
        self._host = self.host_name(task_vars or {})
        missing = result.get("missing")
        if result.get("failed") or not missing:
            return result
        staged = {image["checksum"]: image["staged"] for image in missing if image["staged"]}
        try:
            paths = self._on_controller(missing)
        except NovaliteError as error:
            self._remove(staged.values())
            refused = isinstance(error, ImageRefusedError)
            return {**result, "failed": True, "changed": False, "refused": refused, "msg": str(error)}
        if staged:
            self._push(result, staged, paths, task_vars)
        return result

    def _on_controller(self, missing: t.Sequence[JsonObject]) -> dict[str, str]:
        """checksum -> path on the controller of what is to be pushed; what URLs name is downloaded, once for all hosts.

        Raises ImageRefusedError, which names every path that is not as it was registered; NovaliteError.
        """
        complaints = [complaint for complaint in map(_complaint, missing) if complaint]
        if complaints:
            raise ImageRefusedError("; ".join(complaints))
        images = {image["checksum"]: image for image in self._args["images"]}
        paths = {}
        for image in missing:
            paths[image["checksum"]] = image["source"]
            if _is_url(image["source"]) and image["staged"]:  # in check mode nothing is downloaded
                listed_image = images[image["checksum"]]
                plain = Image(
                    listed_image["checksum"], listed_image["source"], int(listed_image.get("size") or 0), "kernel"
                )
                with self._step("Download the image to the controller"):
                    paths[image["checksum"]] = downloaded(plain, self._directory(), self._rules())
        return paths

    @contextlib.contextmanager
    def _step(self, name: str) -> t.Iterator[None]:
        """Tell, around the block, what is done here between two trips."""
        began, failed = time.monotonic(), True
        _events.tell(_events.Event(self._host, name, MODULE, "begin", began), self._home)
        try:
            yield
            failed = False
        finally:
            now = time.monotonic()
            seconds = round(now - began, 3)
            end = _events.Event(
                self._host, name, MODULE, "end", now, changed=not failed, failed=failed, seconds=seconds
            )
            _events.tell(end, self._home)

    def _directory(self) -> str:
        return os.path.expanduser(self._args.get("controller_dir") or os.path.join(self._home, "images"))

    def _rules(self) -> Rules:
        args = self._args
        report: t.Callable[[str], None] = Display().v
        return Rules(int(args.get("max_image_gb", 64)) * GIB, float(args.get("timeout", 3600)), report=report)

    def _push(
        self, result: JsonObject, staged: dict[str, str], paths: dict[str, str], task_vars: JsonObject | None
    ) -> None:
        images = {image["checksum"]: image for image in self._args["images"] if image["checksum"] in staged}
        # Another user than root cannot write to the staging files: such a push goes through Ansible's own directory.
        directory = self._make_tmp_path() if self._connection.become is not None else None
        pushed = []
        taken = False
        try:
            for checksum, path in staged.items():
                if directory:
                    path = self._connection._shell.join_path(directory, os.path.basename(path))
                seconds = deadlines.of_file(os.path.getsize(paths[checksum]))
                with _patience.limited(self._connection, seconds), self._step("Send the image to the host"):
                    self._transfer_file(paths[checksum], path)
                pushed.append({**images[checksum], "staged": path})
            second = self.run_on_host(MODULE, {**self._args, "images": pushed}, task_vars)
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


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _complaint(image: JsonObject) -> str | None:
    source = image["source"]
    if _is_url(source):
        return None
    if not os.path.isfile(source):
        return f"image '{source}' does not exist on the controller; register it again with the path where it is"
    size = os.path.getsize(source)
    if image["size"] and size != image["size"]:
        return f"image '{source}' has {size} bytes but {image['size']} were declared; register it again"
    return None


def _merge(result: JsonObject, second: JsonObject) -> None:
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
