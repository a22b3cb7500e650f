# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place of backups: a restic repository, in a directory or on another host by sftp, behind four verbs.

Each object is a snapshot of one file, with words that say whose it is. The key comes by a descriptor and stands in no
argument. restic encrypts, compresses and compares what it stores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import io
import json
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
import typing as t
import urllib.parse

from .. import _keepalive
from .._errors import NovaliteError
from .._host.command import CommandError, run
from .._host.files import read_text, write_atomically
from .._host.own_directory import make_own

TIMEOUT = 600.0  # seconds that a call may take which moves no data of a disk
_FILE = "object"  # name of the one file in each snapshot
_HOST = "novalite"
_TIME = "stored"  # the word that says when an object was stored, in nanoseconds since 1970
_SHORT = 8  # characters of a name, as restic prints it
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which fcntl has since Python 3.10
_INTERRUPTED = 130  # return code of restic after SIGINT
_PATIENCE = 10.0  # seconds for an interrupted restic to take its lock back
_PIPE = 1 << 20  # bytes that wait between restic and the one at its other end


@dataclasses.dataclass(frozen=True)
class Stored:
    """An object in the store: its name, and its words."""

    name: str
    words: tuple[str, ...]

    @property
    def time(self) -> str:
        """The time when it was stored, in a form that sorts."""
        return self.word(_TIME) or ""

    def word(self, key: str) -> str | None:
        """The value of the word `key=value`."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{key}=")), None)


class Store(t.Protocol):
    """A store, as far as the engine needs it."""

    @property
    def local(self) -> str:
        """A directory of this host, its user's own, for copies of what is in the store."""

    def put(self, words: t.Mapping[str, str], write: t.Callable[[t.BinaryIO], object]) -> str:
        """Store what `write` writes under these words; returns the object's name. Nothing is there after an error."""

    def get(self, name: str) -> t.ContextManager[t.BinaryIO]:
        """Open an object for reading. Raises NovaliteError at the end when the store could not give all of it."""

    def list(self, **words: str) -> t.Sequence[Stored]:
        """List the objects with all of these words, the oldest first."""

    def forget(self, names: t.Collection[str]) -> None:
        """Remove objects. Names that are not there are passed over."""


@dataclasses.dataclass(frozen=True)
class Restic:
    """A restic repository at `place`, opened by `key`; `cache` is a directory of root's own on this host."""

    place: str
    key: str = dataclasses.field(repr=False)
    cache: str
    stall: float = 120.0  # seconds without a byte; restic asks for a file that is gone for a quarter of an hour

    @property
    def local(self) -> str:
        """The directory that restic has for its own copies."""
        return self.cache

    @property
    def _is_directory(self) -> bool:
        return not self.place.startswith("sftp:")

    @property
    def is_missing(self) -> bool:
        """Absence of a repository that is to be a directory; of one on another host nobody knows."""
        return self._is_directory and not os.path.isdir(self.place)

    def prepare(self) -> None:
        """Make the repository unless it is there, and take away locks of runs that were killed. Raises NovaliteError
        when that cannot be done."""
        if self._is_directory and os.path.lexists(os.path.join(self.place, "config")):
            self.unlock()  # each call opens it, and says when it cannot
            return
        with self._ready() as (argv, fds):
            if self._is_directory or run([*argv, "cat", "config"], timeout=TIMEOUT, pass_fds=fds, ok=range(128)).rc:
                run([*argv, "init", "--quiet"], timeout=TIMEOUT, pass_fds=fds)  # restic refuses where one is there
                return
        self.unlock()

    def unlock(self) -> None:
        """Take away the locks of runs that were killed: that of a prune keeps everybody from backups and restores.
        Those of runs that live stay, and so does, for half an hour, one of another host."""
        locks = os.path.join(self.place, "locks")
        with contextlib.suppress(OSError):
            if self._is_directory and not os.listdir(locks):
                return
        with self._ready() as (argv, fds):
            run([*argv, "unlock", "--quiet"], timeout=TIMEOUT, pass_fds=fds, ok=range(128))

    def _opens(self) -> bool:
        """Tell whether it opens with this key, or where it lies is not known to this host."""
        if not self._is_directory or not os.path.lexists(os.path.join(self.place, "config")):
            return True
        with self._ready() as (argv, fds):
            return run([*argv, "cat", "config", "--no-lock"], timeout=TIMEOUT, pass_fds=fds, ok=range(128)).rc == 0

    @contextlib.contextmanager
    def _explained(self) -> t.Iterator[None]:
        """Name the key where that is why restic failed."""
        try:
            yield
        except CommandError as error:
            if self._opens():
                raise
            complaint = f"the store {self.place} does not open with this key: give the one it has"
            raise NovaliteError(complaint) from error

    def put(self, words: t.Mapping[str, str], write: t.Callable[[t.BinaryIO], object]) -> str:
        """Store what `write` writes. restic is ended before it can take a stream that broke off for a whole one."""
        stored = f"{_TIME}={time.time_ns():020d}"
        texts = [*(f"{key}={value}" for key, value in words.items()), stored]
        tags = [option for text in texts for option in ("--tag", text)]
        with self._explained(), self._ready() as (argv, fds), tempfile.TemporaryFile() as errors:
            argv = [*argv, "--json", "backup", "--quiet", "--stdin", "--stdin-filename", _FILE, "--host", _HOST, *tags]
            with subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, pass_fds=fds, bufsize=_PIPE
            ) as process:
                stdin = t.cast(t.BinaryIO, process.stdin)
                _widen(stdin)
                try:
                    with contextlib.suppress(BrokenPipeError):  # restic ended, and says why
                        write(stdin)
                        stdin.flush()
                except BaseException:
                    process.kill()
                    with contextlib.suppress(OSError):
                        stdin.close()
                    raise
                with contextlib.suppress(BrokenPipeError):
                    stdin.close()
                answer = t.cast(t.BinaryIO, process.stdout).read()
            if process.returncode:
                raise CommandError(argv, process.returncode, _text(errors))
        for line in answer.splitlines():
            fields = json.loads(line)
            if fields.get("message_type") == "summary":
                name = str(fields["snapshot_id"])[:_SHORT]
                self._remember({**self._remembered(), name: texts})
                return name
        raise NovaliteError(f"restic stored an object in {self.place} and did not name it; use restic 0.14 or newer")

    @contextlib.contextmanager
    def get(self, name: str) -> t.Iterator[t.BinaryIO]:
        """Open an object; one that is not read to its end is closed without a complaint."""
        with self._explained(), self._ready() as (argv, fds), tempfile.TemporaryFile() as errors:
            argv = [*argv, "dump", name, f"/{_FILE}"]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, pass_fds=fds) as process:
                _widen(t.cast(t.BinaryIO, process.stdout))
                stdout = io.BufferedReader(_Pipe(t.cast(t.BinaryIO, process.stdout).fileno(), self.stall), _PIPE)
                try:
                    yield t.cast(t.BinaryIO, stdout)
                except BaseException:
                    if _interrupt(process) not in (
                        -signal.SIGKILL,
                        _INTERRUPTED,
                    ):  # it had ended by itself: that is why
                        raise CommandError(argv, process.returncode, _text(errors)) from None
                    raise
                if stdout.read(1):
                    _interrupt(process)
                elif process.wait():
                    raise CommandError(argv, process.returncode, _text(errors))

    def list(self, **words: str) -> t.Sequence[Stored]:
        """List the objects with all of these words. restic is asked when there is one that this host does not know."""
        there = self._there()
        known = self._remembered()
        if there is None or not there <= set(known):
            with self._explained(), self._ready() as (argv, fds):
                argv = [*argv, "--json", "snapshots", "--no-lock"]
                rows = json.loads(run(argv, timeout=TIMEOUT, pass_fds=fds).stdout) or ()
            known = {row["id"][:_SHORT]: row.get("tags") or () for row in rows}
            self._remember(known)
            there = set(known)
        asked = {f"{key}={value}" for key, value in words.items()}
        objects = [Stored(name, tuple(known[name])) for name in there if asked <= set(known[name])]
        return sorted(objects, key=lambda stored: stored.time)

    def _there(self) -> set[str] | None:
        """The names of all objects, of a repository in a directory: restic has a file for each."""
        with contextlib.suppress(OSError):
            return {name[:_SHORT] for name in os.listdir(os.path.join(self.place, "snapshots"))}
        return None

    def _remembered(self) -> t.Mapping[str, t.Sequence[str]]:
        """The words of objects that this host knows; an object never changes."""
        known = json.loads(read_text(self._memory) or "{}")
        return known if isinstance(known, dict) else {}

    def _remember(self, known: t.Mapping[str, t.Sequence[str]]) -> None:
        there = self._there()
        with contextlib.suppress(OSError):  # restic is asked then
            make_own(self.cache, links=True)
            kept = {name: known[name] for name in known if there is None or name in there}
            write_atomically(self._memory, json.dumps(kept), 0o600)

    @property
    def _memory(self) -> str:
        return os.path.join(self.cache, f"objects-{hashlib.sha256(self.place.encode()).hexdigest()[:16]}.json")

    def forget(self, names: t.Collection[str]) -> None:
        """Remove objects; their bytes go with the next prune()."""
        if names:
            with self._ready() as (argv, fds):
                run([*argv, "unlock", "--quiet"], timeout=TIMEOUT, pass_fds=fds)  # of runs that were killed
                run([*argv, "forget", "--quiet", *sorted(names)], timeout=TIMEOUT, pass_fds=fds)

    def prune(self, timeout: float) -> None:
        """Give back the room of what was forgotten."""
        with self._ready() as (argv, fds):
            run([*argv, "unlock", "--quiet"], timeout=TIMEOUT, pass_fds=fds)  # of what was read and ended early
            run([*argv, "prune", "--quiet"], timeout=timeout, pass_fds=fds)

    @contextlib.contextmanager
    def _ready(self) -> t.Iterator[tuple[t.Sequence[str], tuple[int, ...]]]:
        """The words before each command, and the descriptor that gives the key."""
        fd = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            os.write(fd, self.key.encode())
            key = f"/proc/self/fd/{fd}"
            far = () if self._is_directory else ("--option", f"sftp.command={shlex.join(ssh_to(self.place))}")
            yield ["restic", "--repo", self.place, "--password-file", key, "--cache-dir", self.cache, *far], (fd,)
        finally:
            os.close(fd)


def ssh_to(place: str) -> list[str]:
    """Return the command by which restic reaches a `place` on another host (sftp:user@host:path, or
    sftp://user@host:port/path): its own, but for ssh's keep-alive, without which a backup waits for a host that fell
    silent until the kernel gives up."""
    far = place.removeprefix("sftp:")
    is_url = far.startswith("//")
    login = urllib.parse.urlsplit(far).netloc if is_url else far.partition(":")[0]
    user, _at, host = login.rpartition("@")
    port = ""
    if is_url and not host.endswith("]"):  # that is an IPv6 address without a port
        bare, _colon, number = host.rpartition(":")
        host, port = (bare, number) if bare else (host, "")
    words = [*(("-p", port) if port else ()), *(("-l", urllib.parse.unquote(user)) if user else ())]
    return ["ssh", *_keepalive.ARGUMENTS.split(), *words, "-s", "--", host.strip("[]"), "sftp"]


class _Pipe(io.RawIOBase):
    """The output of a program, which is given up when nothing comes."""

    def __init__(self, fd: int, stall: float) -> None:
        self._fd, self._stall = fd, stall

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: t.Any, /) -> int:
        if not select.select([self._fd], [], [], self._stall)[0]:
            raise NovaliteError(f"the store gave nothing for {self._stall:g} s: see restic check")
        data = os.read(self._fd, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _widen(pipe: t.BinaryIO) -> None:
    """Have a pipe hold more than one block, so that its two ends need not take turns for each."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE)


def _interrupt(process: subprocess.Popen[bytes]) -> int:
    """End a reading restic, and return how it ended. One that is killed leaves its lock in the store, which keeps every
    host from pruning for half an hour; an interrupted one takes it back."""
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _text(errors: t.IO[bytes]) -> str:
    errors.seek(0)
    return errors.read(4096).decode(errors="replace")
