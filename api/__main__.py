# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python -m api serve-metadata`: the application under gunicorn, configured by NOVALITE_* (see api/README.md)."""

from __future__ import annotations

import argparse
import sys
import typing as t

from gunicorn.app.base import BaseApplication

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.engine import open_ledger

from . import create_app
from .settings import Settings

# What a guest's boot takes is short. A worker that hangs is replaced; one that leaks, too.
TIMEOUT = 30  # seconds
REQUESTS = 10000


class Server(BaseApplication):
    """gunicorn with its options given here, and each worker with an application of its own."""

    def __init__(self, settings: Settings, bind: str, services: t.Collection[str]) -> None:
        self._settings = settings
        self._bind = bind
        self._services = services
        super().__init__()

    def load_config(self) -> None:
        options = {
            "bind": self._bind,
            "workers": self._settings.workers,
            "threads": self._settings.threads,
            "worker_class": "gthread",
            "timeout": TIMEOUT,
            "max_requests": REQUESTS,
            "max_requests_jitter": REQUESTS // 10,
            "accesslog": None,
            "errorlog": "-",
            "loglevel": "warning",
            # "X_Novalite_Host" would become the same WSGI variable as the header that was signed
            "header_map": "drop",
            "limit_request_line": 4094,
            "proc_name": "novalite",
            # a socket in the user's home, which a second server would take from the first
            "control_socket_disable": True,
        }
        for name, value in options.items():
            if name in self.cfg.settings:  # older ones have no such socket
                self.cfg.set(name, value)

    def load(self) -> t.Any:
        return create_app(self._settings, self._services)


def main(argv: t.Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m api", description="Serve novalite's application.")
    parser.add_argument("command", choices=["serve-metadata"], help="serve-metadata: what guests are told about them")
    parser.add_argument("--bind", help="address:port to listen on (default: $NOVALITE_METADATA_BIND, 127.0.0.1:8775)")
    asked = parser.parse_args(argv)
    try:
        settings = Settings.from_environment()
        # here, where a person reads it, and not in every worker
        create_app(settings, ["metadata"])
        open_ledger(settings.home, settings.ledger_url).dispose()
    except NovaliteError as error:
        print(f"novalite: {error}", file=sys.stderr)
        return 1
    Server(settings, asked.bind or settings.metadata_bind, ["metadata"]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
