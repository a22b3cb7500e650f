# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that read what tenants wrote: as nobody, without capabilities, within limits, on files lent to them.

What a hole in one of them gives away is these files, and not the host.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pwd
import secrets
import typing as t

from .command import DEFAULT_TIMEOUT, CommandError, Result, run
from .files import opened

# systemd's range for users that exist while a service runs (DynamicUser): nobody's login, and in every map of user ids
FIRST_USER, LAST_USER = 61184, 65519
MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of a program: `memory` in bytes of address space, `cpu` in seconds, `file_size` in bytes that it may write
    to one file (0: it writes none)."""

    memory: int = 1024 * MIB
    cpu: int = 30
    file_size: int = 0

    def options(self) -> list[str]:
        """Options for prlimit(1)."""
        return [f"--as={self.memory}", f"--cpu={self.cpu}", f"--fsize={self.file_size}", "--core=0", "--nproc=256"]


ANY_SIZE = 1 << 62  # bytes: of a file whose size something else bounds


@contextlib.contextmanager
def lent(path: str, user: int, write: bool = False) -> t.Iterator[int]:
    """Open a file, or device, whose owner is `user` meanwhile; yields the descriptor. No link is followed.

    A run that is killed leaves that owner: a user whom nobody is, so that nobody can do more with it than before.
    """
    with opened(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK) as handle:
        owner = os.fstat(handle).st_uid
        if os.geteuid() == 0:
            os.fchown(handle, user, -1)
        try:
            yield handle
        finally:
            if os.geteuid() == 0:
                os.fchown(handle, owner, -1)


def run_confined(
    argv: t.Sequence[str],
    *,
    reads: t.Sequence[str] = (),
    writes: t.Sequence[str] = (),
    open_files: t.Mapping[str, int] | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
    limits: Limits = Limits(),
    ok: t.Container[int] = (0,),
    timeout: float = DEFAULT_TIMEOUT,
) -> Result:
    """Run `argv` as command.run() does, as nobody. Raises CommandError, OSError.

    The words that name the existing files that it `reads` and `writes` become those of their descriptors; `open_files`
    are words with the descriptors of files that have no name.
    """
    user = new_user()
    with contextlib.ExitStack() as stack:
        handles = {path: stack.enter_context(lent(path, user)) for path in reads}
        handles |= {path: stack.enter_context(lent(path, user, write=True)) for path in writes}
        handles |= open_files or {}
        names = {path: f"/proc/self/fd/{handle}" for path, handle in handles.items()}
        words = [names.get(word, word) for word in argv]
        try:
            return run(
                [*confined(user, limits), *words],
                stdin=stdin,
                stdout=stdout,
                ok=ok,
                timeout=timeout,
                pass_fds=list(handles.values()),
            )
        except CommandError as error:
            stderr = error.stderr
            for path, name in names.items():
                stderr = stderr.replace(name, path)
            raise CommandError(argv, error.rc, stderr) from None


def confined(user: int, limits: Limits) -> list[str]:
    """The words before a program's own ones. Only root can be somebody else."""
    dropped = (
        f"setpriv --reuid={user} --regid={user} --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs --"
    )
    return ["prlimit", *limits.options(), "--", *(dropped.split() if os.geteuid() == 0 else [])]


def run_bounded(argv: t.Sequence[str], *, limits: Limits = Limits(), timeout: float = DEFAULT_TIMEOUT) -> Result:
    """Run `argv` as a root who can read and write files, and nothing else. Raises CommandError.

    For what cannot be lent: of these files novalite, or a guest's QEMU, wrote all that the program reads as more than
    data.
    """
    try:
        return run([*bounded(limits, "dac_override"), *argv], timeout=timeout)
    except CommandError as error:
        raise CommandError(argv, error.rc, error.stderr) from None


def bounded(limits: Limits, *capabilities: str, options: t.Sequence[str] = ()) -> list[str]:
    """The words before a program that must stay root, with these capabilities. `options` are setpriv(1)'s."""
    kept = "".join(f",+{capability}" for capability in capabilities)
    dropped = [f"--bounding-set=-all{kept}", "--inh-caps=-all", "--no-new-privs"] if os.geteuid() == 0 else []
    return ["prlimit", *limits.options(), "--", *(["setpriv", *dropped, *options, "--"] if dropped or options else [])]


def new_user() -> int:
    """The id of a user whom nothing on this host runs as, as far as its name service says."""
    while True:
        user = FIRST_USER + secrets.randbelow(LAST_USER - FIRST_USER + 1)
        try:
            pwd.getpwuid(user)
        except KeyError:
            return user
