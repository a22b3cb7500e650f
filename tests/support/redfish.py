# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Redfish service of the tests' own, by TLS: the management controller of some machines, with faults.

`python -m tests.support.redfish DIRECTORY PORT LAB NAME ...` serves the hypervisors NAME of the lab whose state
directory is LAB. Off ends everything in a hypervisor, as `hypervisors unplug` does, and On plugs it in again. The file
DIRECTORY/NAME, if there is one, has the fault of that machine; DIRECTORY/log gets a line for each order.

It knows what fence_redfish asks for, and no more.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time
import typing as t

USER, PASSWORD = "fencing", 'p4ss"wörd =x'
GONE = "gone"  # no answer to anything
REFUSES = "refuses"  # connections end without an answer
STAYS = "stays"  # takes the order, and stays on
LIES = "lies"  # takes the order, says off, and stays on
SLOW = "slow"  # is off some seconds after the order
SLOWNESS = 3.0  # seconds
HYPERVISORS = pathlib.Path(__file__).parents[1] / "molecule/shared/hypervisors"


class Machine:
    """Machine with a power supply; `cut` ends all that runs on it, `boot` has it run again."""

    def __init__(self, cut: t.Callable[[], object] = lambda: None, boot: t.Callable[[], object] = lambda: None) -> None:
        self.cut, self.boot, self.runs, self.says_off = cut, boot, True, False

    @property
    def state(self) -> str:
        return "Off" if self.says_off or not self.runs else "On"

    def off(self, fault: str) -> None:
        """Obey the order to switch off, as far as the `fault` lets it."""
        if fault == SLOW:
            threading.Timer(SLOWNESS, self._off).start()
        elif fault == LIES:
            self.says_off = True
        elif fault != STAYS:
            self._off()

    def on(self) -> None:
        self.boot()
        self.runs, self.says_off = True, False

    def _off(self) -> None:
        self.cut()
        self.runs = False


class Service:
    """Service for `machines`, by their names. `fault_of` says a machine's fault; `orders` are those that were taken."""

    def __init__(
        self,
        directory: pathlib.Path,
        machines: t.Mapping[str, Machine],
        fault_of: t.Callable[[str], str] = lambda name: "",
        port: int = 0,
    ) -> None:
        self.machines, self.fault_of = machines, fault_of
        self.orders: list[tuple[str, str]] = []
        self._directory = directory
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(directory))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]

    def serve(self) -> None:
        self._server.serve_forever(0.05)

    def __enter__(self) -> Service:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def parameters(self, name: str) -> dict[str, t.Any]:
        """Return what fence_redfish is told of the machine `name`."""
        return {
            "ip": "127.0.0.1",
            "ipport": self.port,
            "username": USER,
            "password": PASSWORD,
            "systems_uri": uri(name),
            "ssl_insecure": True,
            "power_timeout": 5,
        }

    def answer(self, path: str) -> dict[str, t.Any] | None:
        """Return the document at `path`."""
        if path == "/redfish/v1":
            return {"Systems": {"@odata.id": "/redfish/v1/Systems"}}
        if path == "/redfish/v1/Systems":
            return {"Members": [{"@odata.id": uri(name)} for name in self.machines]}
        for name, machine in self.machines.items():
            if path == uri(name):
                reset = {"#ComputerSystem.Reset": {"target": f"{path}/Actions/ComputerSystem.Reset"}}
                return {"PowerState": machine.state, "Actions": reset}
        return None

    def order(self, path: str, kind: str) -> int:
        """Obey a ResetType; return the status."""
        name = path.removesuffix("/Actions/ComputerSystem.Reset").rpartition("/")[2]
        if name not in self.machines:
            return 404
        self.orders.append((name, kind))
        with (self._directory / "log").open("a") as log:
            log.write(f"{name} {kind}\n")
        if kind == "On":
            self.machines[name].on()
            return 204
        if kind != "ForceOff":
            return 400
        self.machines[name].off(self.fault_of(name))
        return 204

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        service = self
        secret = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode("latin-1")).decode()

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = 10

            def log_message(self, *_words: object) -> None:
                pass

            def do_GET(self) -> None:
                if self._lets_in():
                    document = service.answer(self.path.rstrip("/"))
                    self._reply(404 if document is None else 200, document or {})

            def do_POST(self) -> None:
                if self._lets_in():
                    length = min(int(self.headers.get("Content-Length", 0)), 4096)
                    self._reply(service.order(self.path, str(json.loads(self.rfile.read(length))["ResetType"])), {})

            def _lets_in(self) -> bool:
                parts = self.path.split("/")
                fault = service.fault_of(parts[4]) if len(parts) > 4 else ""
                if fault in (GONE, REFUSES):
                    if fault == GONE:
                        time.sleep(600)
                    self.close_connection = True
                    return False
                if self.headers.get("Authorization") == secret:
                    return True
                self._reply(401, {"error": "who are you?"})
                return False

            def _reply(self, status: int, document: dict[str, t.Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


def uri(name: str) -> str:
    return f"/redfish/v1/Systems/{name}"


def certificate(directory: pathlib.Path) -> pathlib.Path:
    """Make a key and a certificate in one file, once."""
    path = directory / "service.pem"
    if not path.exists():
        argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        argv += ["-subj", "/CN=bmc", "-days", "2", "-keyout", str(path), "-out", f"{path}.crt"]
        subprocess.run(argv, check=True, capture_output=True)
        path.write_text(path.read_text() + pathlib.Path(f"{path}.crt").read_text())
    return path


def main(directory: pathlib.Path, port: int, lab: str, names: t.Sequence[str]) -> None:
    def machine(name: str) -> Machine:
        def order(command: str) -> t.Callable[[], object]:
            argv = [str(HYPERVISORS), command, "--state", lab, name]
            return lambda: subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)

        return Machine(order("unplug"), order("plug"))

    def fault_of(name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (directory / name).read_text().strip()
        return ""

    directory.mkdir(parents=True, exist_ok=True)
    Service(directory, {name: machine(name) for name in names}, fault_of, port).serve()


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
