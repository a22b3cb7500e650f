# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Relay between ssh's standard input and output and a socket on a host: Python, which Ansible needs there anyway.

One line without a quotation mark of its own, since up to three programs unquote it.
"""

from __future__ import annotations

# Standard input to the socket `s`, and the socket to standard output, until the other side hangs up.
_PUMP = (
    "o=sys.stdout.buffer;"
    "u=lambda:any(s.sendall(b) for b in iter(lambda:os.read(0,131072),bytes())) or s.shutdown(1);"
    "t.Thread(target=u,daemon=True).start();"
    "all(o.write(b) and not o.flush() for b in iter(lambda:s.recv(131072),bytes()))"
)
_IMPORTS = "import os,socket,sys,threading as t;"
TO_ADDRESS = f"{_IMPORTS}s=socket.create_connection(sys.argv[1:3]);{_PUMP}"  # arguments: address, port
TO_PATH = f"{_IMPORTS}s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);{_PUMP}"  # argument: a unix socket
