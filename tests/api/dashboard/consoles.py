# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A WebSocket without a browser, as attackers have one; and a guest of 61 bytes, on a libvirt of ours."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time
import typing as t

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, RejectConnection, Request

from tests.support.patience import GENEROUS

UID = 65534  # nobody: libvirt's session has no rights
UUID = "5f0c8f0e-5b44-4b4a-9b5a-1f0f7a0a0001"
# A boot sector: every key that is pressed, and every byte that comes by the serial line, goes to the screen and out by
# the serial line; the first of them is '>'
_LOOP = "b4 01 cd 16 74 07 b4 00 cd 16 e8 14 00 b4 03 31 d2 cd 14 f6 c4 01 74 e8 b4 02 cd 14 e8 02 00 eb df"
_PUT = "b4 0e 50 bb 07 00 cd 10 58 b4 01 31 d2 cd 14 c3"
SECTOR = bytes.fromhex(f"b8 e3 00 31 d2 cd 14 b0 3e e8 21 00 {_LOOP} {_PUT}").ljust(510, b"\0") + b"\x55\xaa"
DOMAIN = """<domain type="qemu"><name>echo</name><uuid>{uuid}</uuid><memory unit="MiB">32</memory><vcpu>1</vcpu>
<os><type arch="x86_64" machine="pc">hvm</type></os><features><acpi/></features><devices>
<emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type="file"><driver name="qemu" type="raw"/><source file="{disk}"/><target dev="vda" bus="virtio"/></disk>
<serial type="pty"><log file="{log}"/><target port="0"/></serial>
<graphics type="vnc"><listen type="socket"/></graphics><video><model type="virtio"/></video>
<input type="tablet" bus="usb"/></devices></domain>"""


class WebSocket:
    """A client that may send what it likes."""

    def __init__(self, url: str, token: str, origin: str | None = "", cookie: str = "") -> None:
        host, _colon, port = url.removeprefix("http://").partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=GENEROUS)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        headers = [] if origin is None else [(b"Origin", (origin or url).encode())]
        headers += [(b"Cookie", cookie.encode())] if cookie else []
        asked = Request(
            host=f"{host}:{port}", target="/console/connect", subprotocols=["binary", token], extra_headers=headers
        )
        self.socket.sendall(self.protocol.send(asked))
        self.events: list[Event] = []
        first = self.next()
        self.refused = first.status_code if isinstance(first, RejectConnection) else None
        assert self.refused is not None or isinstance(first, AcceptConnection)

    def next(self) -> Event | None:
        """The next event; None at the end."""
        while not self.events:
            piece = self.socket.recv(65536)
            if not piece:
                return None
            self.protocol.receive_data(piece)
            self.events += self.protocol.events()
        return self.events.pop(0)

    def close(self) -> None:
        self.socket.close()

    def send(self, event: Event) -> None:
        self.socket.sendall(self.protocol.send(event))

    def read(self, least: int) -> bytes:
        """At least so many bytes of what the console sends; fewer at its end."""
        data = b""
        while len(data) < least:
            event = self.next()
            if event is None or isinstance(event, CloseConnection):
                break
            if isinstance(event, BytesMessage):
                data += event.data
        return data

    def end(self) -> CloseConnection | None:
        """Read on until the server closes, and return what it says."""
        while (event := self.next()) is not None:
            if isinstance(event, CloseConnection):
                return event
        return None


@contextlib.contextmanager
def daemon(directory: pathlib.Path) -> t.Iterator[str]:
    """The URI of a libvirt in a session of nobody's; `directory` and what is in it is nobody's, too."""
    names = ("run", "config", "cache")
    places = {name: directory / name for name in names}
    for place in places.values():
        place.mkdir(mode=0o700)
    (places["config"] / "libvirt").mkdir()
    (places["config"] / "libvirt/qemu.conf").write_text('stdio_handler = "file"\n')  # without a virtlogd of its own
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    environment |= {f"XDG_{name.upper()}_HOME": str(places[name]) for name in names[1:]}
    environment["XDG_RUNTIME_DIR"] = str(places["run"])
    options: t.Any = {"env": environment}
    if os.geteuid() == 0:
        options |= {"user": UID, "group": UID, "extra_groups": []}
        for path in (directory, *directory.rglob("*")):
            shutil.chown(path, UID, UID)
    process = subprocess.Popen(["/usr/sbin/libvirtd"], stderr=subprocess.DEVNULL, **options)
    listening = places["run"] / "libvirt/libvirt-sock"
    uri = f"qemu+unix:///session?socket={listening}"
    try:
        wait(listening.exists)
        yield uri
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            for uuid in virsh(uri, "list", "--uuid").split():
                virsh(uri, "destroy", uuid)
        process.terminate()
        process.wait()


@contextlib.contextmanager
def libvirt(directory: pathlib.Path) -> t.Iterator[tuple[str, pathlib.Path]]:
    """libvirt's URI, and the log of the serial line of its guest."""
    disk, log, xml = directory / "disk", directory / "log", directory / "guest.xml"
    disk.write_bytes(SECTOR.ljust(1 << 20, b"\0"))
    xml.write_text(DOMAIN.format(uuid=UUID, disk=disk, log=log))
    with daemon(directory) as uri:
        virsh(uri, "create", str(xml))
        wait(lambda: b">" in read(log))
        yield uri, log


def virsh(uri: str, *words: str) -> str:
    command = ["virsh", "-q", "-c", uri, *words]
    return subprocess.run(command, check=True, timeout=GENEROUS, capture_output=True, text=True).stdout


def read(path: pathlib.Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def wait(true: t.Callable[[], bool]) -> None:
    deadline = time.monotonic() + GENEROUS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
