# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""gunicorn, told by settings what to serve. Never Flask's own server."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import tempfile
import typing as t

from gunicorn.app.base import BaseApplication

from . import create_app
from .settings import Settings
from .web import logs, metrics, proxy

# Who hangs is replaced; who leaks, too.
TIMEOUT = 30  # seconds without a sign of life from a process
REQUESTS = 10000
# Who waits for a server asks every 2 to 5 s. A connection that is closed at that very moment is an error for clients.
KEEPALIVE = 75  # seconds that a connection may be idle
GRACE = 10  # seconds for what is under way at the end
METRICS = "novalite-metrics-"
PR_SET_PDEATHSIG = 1

Hooks = t.Mapping[str, t.Callable[..., None]]


class Server(BaseApplication):
    """gunicorn with its options given here, and each worker with an application of its own."""

    def __init__(
        self,
        settings: Settings,
        bind: str,
        services: t.Collection[str],
        *,
        workers: int,
        threads: int,
        hooks: Hooks | None = None,
    ) -> None:
        self.settings = settings
        self._services = services
        self._options = {
            "bind": bind,
            "workers": workers,
            "threads": threads,
            "worker_class": f"{__package__}.arrivals.Worker",
            "timeout": TIMEOUT,
            "graceful_timeout": GRACE,
            "keepalive": KEEPALIVE,
            "max_requests": REQUESTS,
            "max_requests_jitter": REQUESTS // 10,
            "accesslog": None,
            "errorlog": "-",
            "loglevel": "warning",
            # "X_Novalite_Host" would become the same WSGI variable as the header that was signed
            "header_map": "drop",
            # nobody's word on the scheme counts here: proxy.py looks after that
            "forwarded_allow_ips": "",
            "limit_request_line": 8190,
            "limit_request_fields": 64,
            "limit_request_field_size": 8190,
            "proc_name": "novalite",
            # a socket in the user's home, which a second server would take from the first
            "control_socket_disable": True,
            "post_fork": _end_with_first,
            **(hooks or {}),
        }
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            if name in self.cfg.settings:  # older ones have no such socket
                self.cfg.set(name, value)

    def load(self) -> t.Any:
        app = create_app(self.settings, self._services)
        if "metadata" in self._services:
            return app  # the hosts' proxies sign the header that says for whom they ask
        trusted = proxy.networks(self.settings.api_trusted_proxies, "NOVALITE_API_TRUSTED_PROXIES")
        return proxy.TrustedProxies(app.wsgi_app, trusted)


def serve_api(settings: Settings, bind: str, services: t.Collection[str], jobs: bool) -> None:
    """Serve until a signal ends it, with a worker for jobs beside it if `jobs`."""
    keepers: list[t.Any] = []

    def when_ready(server: t.Any) -> None:
        logs.log.info("serving on %s", bind)
        if jobs:
            keepers.append(_start_worker(settings))

    def child_exit(server: t.Any, worker: t.Any) -> None:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)

    def on_exit(server: t.Any) -> None:
        for keeper in keepers:
            keeper.stop()

    logs.configure()
    with _metrics_directory() as directory:
        os.environ[metrics.DIRECTORY] = directory
        hooks: Hooks = {"when_ready": when_ready, "child_exit": child_exit, "on_exit": on_exit}
        Server(settings, bind, services, workers=settings.api_workers, threads=settings.api_threads, hooks=hooks).run()


def _end_with_first(server: t.Any, worker: t.Any) -> None:
    """Have the kernel end this process with the first one, however that ends. Left alone, it would keep the port for as
    long as a client keeps its connection, accept nothing, and let no other server begin."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker.ppid:  # it was too late for that
        os._exit(1)


def _start_worker(settings: Settings) -> t.Any:
    from .jobs import embedded, options

    return embedded.start(options.Options.from_environment(home=settings.home, ledger_url=settings.ledger_url))


@contextlib.contextmanager
def _metrics_directory() -> t.Iterator[str]:
    """A directory that the processes count in, removed at the end; those of servers that were killed go as well."""
    parent = pathlib.Path(tempfile.gettempdir())
    for other in parent.glob(f"{METRICS}*"):
        owner = other.name[len(METRICS) :].partition("-")[0]
        with contextlib.suppress(OSError):
            if owner.isdigit() and not os.path.exists(f"/proc/{owner}") and other.stat().st_uid == os.geteuid():
                shutil.rmtree(other, ignore_errors=True)
    pid = os.getpid()
    directory = tempfile.mkdtemp(prefix=f"{METRICS}{pid}-", dir=parent)
    try:
        yield directory
    finally:
        if os.getpid() == pid:  # a worker comes by here, too, when it ends
            shutil.rmtree(directory, ignore_errors=True)
