# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that a restore replaces: kept beside the new ones until it is known that the guest runs, or put back.

A note in the instance's directory says which restore replaced them last. Another one that fails puts nothing back: the
guest may have written to what it has for months since.
"""

from __future__ import annotations

import dataclasses
import json
import os
import typing as t

from .._host.files import read_text, remove_file, write_atomically
from . import tpm

_KEPT = ".replaced"  # after the name of a file that was there before
_KEPT_ONCE = ".before-restore"  # the same by earlier releases, which did not note whose it was
_NOTE = "restore.json"
TPM = "tpm."  # before its version, of a file beside the disks


@dataclasses.dataclass(frozen=True)
class _Run:
    """A restore that began to replace disks, and whether it replaced all of them. One that did not leaves the only
    copies of what the server had in the files that it kept."""

    id: str | None
    is_whole: bool = False


@dataclasses.dataclass(frozen=True)
class FormerDisks:
    """Files of the server `uuid` that the restore `run` replaces, and the state of its TPM; `directory` is the
    instance's."""

    run: str | None
    uuid: str
    directory: str
    files: t.Sequence[str]

    def keep(self) -> None:
        """Keep each file, if no restore that was cut off has kept it before."""
        last = self._last_run()
        if last is not None and last.is_whole and last.id != self.run:
            self.forget()
        self._note(is_whole=False)
        for path in self.files:
            if os.path.lexists(path) and not os.path.lexists(path + _KEPT):
                os.link(path, path + _KEPT)

    def replace_tpm(self, version: str, state: str) -> None:
        """Give the server's TPM another state, and keep the one that it had."""
        before, kept = tpm.read(self.uuid, version), self._tpm(version) + _KEPT
        if before is not None and not os.path.lexists(kept):
            write_atomically(kept, before, 0o600)
        tpm.write(self.uuid, version, state)

    def end(self) -> None:
        """Note that all of them were replaced."""
        self._note(is_whole=True)

    @property
    def can_be_put_back(self) -> bool:
        """Tell whether it was this restore that replaced them last."""
        last = self._last_run()
        return last is not None and last.id == self.run

    def put_back(self) -> None:
        """Give the server, whose guest is off, what it had."""
        self._note(is_whole=False)  # what it had is here alone until the end, if this is cut off
        for path in self.files:
            if os.path.lexists(path + _KEPT):
                os.rename(path + _KEPT, path)
        for version in tpm.VERSIONS:
            state = read_text(self._tpm(version) + _KEPT)
            if state is not None:
                tpm.write(self.uuid, version, state)
        self.forget()

    def forget(self) -> None:
        """Remove what was kept."""
        for path in [*self.files, *map(self._tpm, tpm.VERSIONS)]:
            remove_file(path + _KEPT)
            remove_file(path + _KEPT_ONCE)
        remove_file(os.path.join(self.directory, _NOTE))

    def _tpm(self, version: str) -> str:
        return os.path.join(self.directory, f"{TPM}{version}")

    def _last_run(self) -> _Run | None:
        noted = read_text(os.path.join(self.directory, _NOTE))
        return None if noted is None else _Run(**json.loads(noted))

    def _note(self, is_whole: bool) -> None:
        run = dataclasses.asdict(_Run(self.run, is_whole))
        write_atomically(os.path.join(self.directory, _NOTE), json.dumps(run), 0o600)
