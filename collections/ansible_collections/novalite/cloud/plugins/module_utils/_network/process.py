# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that outlive the run that started them, found again by their command line."""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import typing as t

from .._errors import NovaliteError
from .._host.command import run
from .._host.files import read_text

PATIENCE = 5.0  # seconds for a server to end


@dataclasses.dataclass(frozen=True)
class Server:
    """The server `program` that was told to read the file `conf`, in a word of its own."""

    program: str
    conf: str
    pid_file: str

    def pid(self) -> int | None:
        """Return the server's process id; None if it does not run. A number in a file proves nothing: the process must
        name our file; and where the number is wrong, a server that still runs would hold the address."""
        number = self.written_pid()
        if number is not None and self.is_it(number):
            return number
        return next((int(name) for name in os.listdir("/proc") if name.isdecimal() and self.is_it(int(name))), None)

    def written_pid(self) -> int | None:
        text = (read_text(self.pid_file) or "").strip()
        return int(text) if text.isdecimal() else None

    def is_it(self, pid: int) -> bool:
        """Tell whether the process is this server. A zombie has no command line."""
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as handle:
                words = handle.read().split(b"\0")
        except OSError:
            return False
        return os.path.basename(words[0]) == self.program.encode() and self.conf.encode() in words[1:]

    def start(self, argv: t.Sequence[str], what: str, hint: str) -> None:
        """Run the command that starts it. Raises CommandError, and NovaliteError where `what` did not stay."""
        run(argv)
        started = self.written_pid()
        if started is None or not self.is_it(started):
            raise NovaliteError(f"{what} ended right after its start; see {hint}")

    def stop(self) -> None:
        """End it and wait until it has. Raises NovaliteError when it does not."""
        pid = self.pid()
        if pid is None:
            return
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if not self.is_it(pid):  # asked again, now that the number cannot pass to another process any more
                return
            signal.pidfd_send_signal(process, signal.SIGTERM)
            # Its command line is gone before its sockets are, so that is nothing to wait for.
            ended = select.poll()
            ended.register(process, select.POLLIN)
            if not ended.poll(PATIENCE * 1000):
                raise NovaliteError(
                    f"{self.program} with {self.conf} (process {pid}) did not end within {PATIENCE:g} s; end it"
                )
        finally:
            os.close(process)
