# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Relay between standard input and output and a guest's console: a program that ssh runs on a host, by its text.

Arguments: `novnc` or `serial`, the domain's UUID, libvirt's URI. libvirt leads to both: to the display by a socket that
it hands out, wherever the display listens; to the serial console by a stream, which has one user at a time, the last.
"""

from __future__ import annotations

import os
import sys
import threading
import typing as t

PIECE = 65536
Read = t.Callable[[int], bytes]
Write = t.Callable[[bytes], int]


def main(console_type: str, uuid: str, uri: str) -> None:
    import libvirt  # here: the controller, which sends this, may be without it

    try:
        connection = libvirt.open(uri)
        domain = connection.lookupByUUIDString(uuid)
        if console_type == "novnc":
            display = domain.openGraphicsFD(0, libvirt.VIR_DOMAIN_OPEN_GRAPHICS_SKIPAUTH)
            relay(lambda size: os.read(display, size), lambda data: os.write(display, data))
        else:
            stream = connection.newStream(0)
            domain.openConsole(None, stream, libvirt.VIR_DOMAIN_CONSOLE_FORCE)
            relay(stream.recv, stream.send)
    except libvirt.libvirtError as error:
        raise SystemExit(error.get_error_message()) from None
    except OSError as error:  # the guest has ended
        raise SystemExit(error.strerror) from None


def relay(read: Read, write: Write) -> None:
    """Carry bytes both ways until either side ends."""

    def inwards() -> None:
        try:
            while data := os.read(0, PIECE):
                while data:
                    data = data[write(data) :]
        finally:
            os._exit(0)  # whoever watched has gone; nothing here is to be tidied up

    threading.Thread(target=inwards, daemon=True).start()
    while data := read(PIECE):
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(*sys.argv[1:])
