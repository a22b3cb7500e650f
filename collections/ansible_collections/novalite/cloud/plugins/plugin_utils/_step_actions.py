# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of those steps (module_utils/_steps), and of the module metadata_proxy, that a host cannot take
alone."""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import tempfile
import typing as t

from ansible.errors import AnsibleError

from ..module_utils._backup import saved_files, unpacked
from ..module_utils._backup import servers as backups
from ..module_utils._disk.controller_files import received
from ..module_utils._errors import NovaliteError
from ..module_utils._guest.signature import host_key
from ..module_utils._host import deadlines
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._secret_file import BACKUP, ensure_secret, read_secret, secret_path
from . import _home, _patience
from ._startup import Actions
from ._trip import TripAction

LETS_IN = ("accepted", "closed")


class DiskMove(TripAction):
    """Tells the step `disk_move` who logs in to the host, where that is not root: one question before it where Ansible
    becomes root."""

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if self._connection.become is not None and arguments.get("state") in LETS_IN and arguments.get("moves"):
            answer = self._low_level_execute_command("id -un", sudoable=False)["stdout"]
            arguments.setdefault("login", str(answer).strip() or "root")
        return self.run_on_host("disk_move", arguments, task_vars)


class DiskSnapshot(TripAction):
    """Fetches to the controller what the step `disk_snapshot` copied on the host, judges it there once more, and has
    the step remove the copies."""

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
        result = self.run_on_host("disk_snapshot", arguments, task_vars)
        taken = [snapshot for snapshot in result.get("snapshots") or [] if not snapshot["error"]]
        if arguments.get("state") == "absent" or self._task.check_mode or not taken:
            return result
        home = _home.home(None, task_vars or {}, self._templar)
        directory = os.path.expanduser(arguments.get("controller_dir") or os.path.join(home, "images"))
        place = _home.ledger(self._task.args, task_vars or {}, self._templar)
        try:
            with self.alive(place, [{"module": "disk_snapshot", "args": arguments}]):
                for copy in taken:
                    number = copy["image_id"]
                    self._fetch(copy, os.path.abspath(directory), sent[number], formats[number])
        finally:
            snapshots = [{"uuid": copy["uuid"], "image_id": copy["image_id"]} for copy in taken]
            self.run_on_host("disk_snapshot", {**arguments, "state": "absent", "snapshots": snapshots}, task_vars)
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
        with _patience.limited(self._connection, deadlines.of_file(copy["size"])):
            self._connection.fetch_file(copy["path"], path)


class Backup(TripAction):
    """Gives a step of backups the place of the store and its key, which is made for the first backup."""

    step: t.ClassVar[str]

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        arguments, task_vars = dict(self._task.args), task_vars or {}
        if arguments.get("state", backups.TAKEN) in backups.STORED or self.step == VolumeBackup.step:
            arguments = self.with_store(arguments, task_vars)
        return self.run_on_host(self.step, arguments, task_vars)

    def with_store(self, arguments: JsonObject, task_vars: JsonObject) -> JsonObject:
        """Return the arguments with `store` and `key`. Raises AnsibleError where there is none."""
        state = arguments.get("state", backups.TAKEN)
        arguments["store"] = _home.variable_text("novalite_backup_store", task_vars, self._templar)
        if not arguments["store"]:
            raise AnsibleError("there is no place for backups: set novalite_backup_store in the inventory")
        path = secret_path(_home.home(None, task_vars, self._templar), BACKUP)
        makes = state == backups.TAKEN and not self._task.check_mode
        try:
            secret = ensure_secret(path) if makes else read_secret(path)
        except NovaliteError as error:
            raise AnsibleError(str(error)) from None
        if secret is None and not self._task.check_mode:
            raise AnsibleError(f"the key of the backups is not at {path}: put the one that was exported there")
        arguments["key"] = (secret or bytes(32)).hex()
        return arguments


class ServerBackup(Backup):
    step = "server_backup"


class VolumeBackup(Backup):
    step = "volume_backup"


class BackupFiles(Backup):
    """Says in lines what the step `backup_files` listed; or fetches what it extracted, makes it the directory `into` of
    the controller, and has the step remove its archive."""

    step = "backup_files"

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super(Backup, self).run(tmp, task_vars)
        arguments, task_vars = dict(self._task.args), task_vars or {}
        into = arguments.pop("into", None)
        arguments["state"] = saved_files.LISTED if into is None else saved_files.EXTRACTED
        if into is not None:
            into = os.path.abspath(os.path.expanduser(into))
            if os.path.lexists(into):
                raise AnsibleError(f"{into} is there already: name a directory that is to be made")
            if self._connection.become is not None:  # the archive is fetched by whoever logs in, and not by root
                uid = self._low_level_execute_command("id -u", sudoable=False)["stdout"].strip()
                arguments["owner"] = int(uid or 0)
        result = self.run_on_host(self.step, self.with_store(arguments, task_vars), task_vars)
        if result.get("failed") or self._task.check_mode:
            return result
        if into is not None:
            try:
                self._bring(result, into, arguments["room"])
            except (NovaliteError, OSError, AnsibleError) as error:
                result.update(failed=True, msg=f"the files of the backup cannot be brought to {into}: {error}")
            finally:
                gone = {"state": saved_files.ABSENT, "archive": result.pop("archive")}
                self.run_on_host(self.step, gone, task_vars)
            result["changed"] = not result.get("failed")
        return {**result, "table": unpacked.lines_of(result, into)}

    def _bring(self, result: JsonObject, into: str, room: int) -> None:
        with tempfile.TemporaryDirectory(prefix="novalite-files-") as directory:
            path = os.path.join(directory, "archive.tar")
            with _patience.limited(self._connection, deadlines.of_file(room)):
                self._connection.fetch_file(result["archive"], path)
            unpacked.unpack(path, into, room)


_ACTIONS: t.Mapping[str, type[TripAction]] = {
    "backup_files": BackupFiles,
    "disk_move": DiskMove,
    "disk_snapshot": DiskSnapshot,
    "server_backup": ServerBackup,
    "volume_backup": VolumeBackup,
}
_SCANS = {"host_drift": "HostDrift", "host_record": "HostRecord", "orphans": "Orphans"}  # which import the ledger


def _action_of(step: str) -> type[TripAction]:
    if step in _ACTIONS:
        return _ACTIONS[step]
    scans = importlib.import_module(f"{__package__}._host_scan_action")
    return t.cast("type[TripAction]", getattr(scans, _SCANS[step]))


ACTIONS = Actions([*_ACTIONS, *_SCANS], _action_of)


def with_key(args: JsonMapping, task_vars: JsonMapping, templar: _home.Templar, check_mode: bool) -> JsonObject:
    """Return `args` of metadata_proxy with `host` and `key`, and without `home`: where the secret lies is no business
    of the hypervisor. Raises NovaliteError."""
    host = args.get("host") or task_vars["inventory_hostname"]
    complete = {name: value for name, value in args.items() if name not in ("home", "key")}
    if args.get("state", "present") == "present":
        path = secret_path(_home.home(args.get("home"), task_vars, templar))
        # a check makes no file; what it shows of the key then says only that there will be one
        secret = read_secret(path) or bytes(32) if check_mode else ensure_secret(path)
        complete["key"] = host_key(secret, host).hex()
    return {**complete, "host": host}
