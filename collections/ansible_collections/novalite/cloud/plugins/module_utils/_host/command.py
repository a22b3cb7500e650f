# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one way in which novalite runs a command on a host: an argument list, never a shell string."""

from __future__ import annotations

import os
import subprocess
import typing as t

from .._errors import NovaliteError
from . import events

DEFAULT_TIMEOUT = 120.0  # seconds; nothing that novalite runs on a host is meant to take longer


class CommandError(NovaliteError):
    """A command that failed: `argv`, `rc` (124 after a timeout, 127 when it is not installed) and `stderr`."""

    def __init__(self, argv: t.Sequence[str], rc: int, stderr: str) -> None:
        self.argv = list(argv)
        self.rc = rc
        self.stderr = stderr
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        super().__init__(
            f"{' '.join(argv[:4])}{' ...' if len(argv) > 4 else ''} failed with {rc}: "
            f"{'; '.join(lines[-3:]) or 'no message'}"
        )


class Result(t.NamedTuple):
    rc: int
    stdout: str
    stderr: str


def _environment() -> dict[str, str]:
    # A host's sbin directories are missing from the PATH of a non-login ssh session on some systems.
    path = f"/usr/local/sbin:/usr/sbin:/sbin:{os.environ.get('PATH', '/usr/bin:/bin')}"
    return {**os.environ, "LC_ALL": "C", "LANG": "C", "PATH": path}


def run(
    argv: t.Sequence[str],
    *,
    stdin: str | int | None = None,
    stdout: int | None = None,
    ok: t.Container[int] = (0,),
    timeout: float = DEFAULT_TIMEOUT,
    pass_fds: t.Collection[int] = (),
) -> Result:
    """Run `argv` in the C locale and return its output as text.

    `stdin` is text for its standard input, or the descriptor of a file (otherwise /dev/null), `stdout` the descriptor
    of a file for its output, which is not returned then, `ok` the return codes that are no error, `timeout` in seconds.
    Raises CommandError.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=stdin if isinstance(stdin, str) else None,
            stdin=None if isinstance(stdin, str) else subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=timeout,
            env=_environment(),
            pass_fds=tuple(pass_fds),
            check=False,
        )
    except FileNotFoundError:
        raise CommandError(argv, 127, f"{argv[0]} is not installed on this host") from None
    except subprocess.TimeoutExpired:
        raise CommandError(argv, 124, f"no answer within {timeout:g} s") from None
    if done.returncode not in ok:
        raise CommandError(argv, done.returncode, done.stderr or done.stdout or "")
    return Result(done.returncode, done.stdout or "", done.stderr)


def pipe(
    first: t.Sequence[str],
    second: t.Sequence[str],
    *,
    first_ok: t.Container[int] = (0,),
    timeout: float = DEFAULT_TIMEOUT,
    size: int = 0,
) -> None:
    """Run `first`, which reads `size` bytes or so, with its output into `second`, both as run() does. Raises
    CommandError for the one to blame."""
    env = _environment()
    try:
        with subprocess.Popen(
            list(first), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        ) as writer:
            try:
                with events.reading(writer.pid, size):
                    done = subprocess.run(
                        list(second), stdin=writer.stdout, capture_output=True, timeout=timeout, env=env, check=False
                    )
            except BaseException:
                writer.kill()
                raise
            t.cast(t.IO[bytes], writer.stdout).close()  # one whose reader has ended gets to know
            writer_stderr = t.cast(t.IO[bytes], writer.stderr).read().decode(errors="replace")
    except FileNotFoundError as error:
        argv = second if error.filename == second[0] else first
        raise CommandError(argv, 127, f"{argv[0]} is not installed on this host") from None
    except subprocess.TimeoutExpired:
        raise CommandError(second, 124, f"no answer within {timeout:g} s") from None
    if done.returncode != 0:
        raise CommandError(second, done.returncode, done.stderr.decode(errors="replace"))
    if writer.returncode not in first_ok:
        raise CommandError(first, writer.returncode, writer_stderr)
