# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A worker beside the API server, so that one command is enough: started with it, started again when it dies, and
ended with it, however it ended."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time

from .options import Options

log = logging.getLogger("novalite.jobs")

LOOK = 0.2  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0  # seconds between a worker's end and the next one's start
HEALTHY = 10.0  # seconds of life, after which an end counts as the first one again
STOP_PATIENCE = 10.0  # seconds

# Held while a worker is started, and while this process forks: a process of the server that is forked in between would
# keep the pipe by which subprocess.Popen learns that its command runs, and Popen would wait as long as that one lives
_starting = threading.Lock()
os.register_at_fork(before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_starting.release)


class Keeper:
    """Keeps one worker process alive, from now until stop(). The server's first process has it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True, name="worker's keeper")
        self._thread.start()

    def stop(self) -> None:
        """End the worker; its runs go on with the next one. Returns once it is gone."""
        self._stopping.set()
        self._thread.join()

    def _keep(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            self._process = self._start()
            while self._process.poll() is None and not self._stopping.wait(LOOK):
                pass
            if self._stopping.is_set():
                break
            log.warning("the worker %s ended with %s: another one starts", self._process.pid, self._process.returncode)
            pause = FIRST_PAUSE if time.monotonic() - began > HEALTHY else min(2 * pause, LONGEST_PAUSE)
            self._stopping.wait(pause)
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        options = self._options
        environment = {
            **os.environ,
            "NOVALITE_HOME": options.home,
            **({"NOVALITE_LEDGER_URL": options.ledger_url} if options.ledger_url else {}),
        }
        with _starting:
            # pdeathsig would count from this thread; the worker looks who its parent is instead
            return subprocess.Popen(
                [sys.executable, "-m", f"{__package__}", "--parent", str(os.getpid())],
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C in the terminal is the server's to act on
            )

    def _end(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
