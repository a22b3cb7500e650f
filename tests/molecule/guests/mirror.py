# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command beside a mirror of Debian's cloud images, on this machine, whose checksums are signed.

mirror.py [--wrong checksum|signature|end] HOME IMAGE COMMAND...: in the ledger's home HOME, images.yml and a keyring
say that debian-12 is there, which is IMAGE. The mirror ends with the command; its key is another one each time.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import http.server
import pathlib
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import typing as t

import yaml

BELOW = "bookworm/latest"
FILE = "debian-12-genericcloud-amd64.qcow2"  # as the catalogue has it
PROPERTIES = {
    "hw_firmware_type": "uefi",
    "hw_machine_type": "q35",
    "hw_qemu_guest_agent": "yes",
    "os_require_quiesce": "yes",
}


def end(server: socketserver.BaseServer) -> None:
    server.shutdown()
    server.server_close()


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: t.Any) -> None:
        pass


class Dying(Handler):
    """Ends in the middle of an image."""

    def copyfile(self, source: t.Any, outputfile: t.Any) -> None:
        if not self.path.endswith(".qcow2"):
            super().copyfile(source, outputfile)
            return
        outputfile.write(source.read(1 << 20))
        self.connection.shutdown(socket.SHUT_RDWR)
        threading.Thread(target=end, args=[self.server]).start()


def sign(directory: pathlib.Path, gnupg: pathlib.Path, keyring: pathlib.Path, wrong: str | None) -> None:
    """Sign the checksums, and write the key into `keyring`, or another one's."""

    def gpg(*arguments: str) -> None:
        command = ["gpg", "--homedir", str(gnupg), "--batch", "--yes", "--quiet", "--passphrase", "", *arguments]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    try:
        for name in ("right", "other"):
            gpg("--quick-generate-key", f"{name}@example.org", "default", "default", "never")
        gpg("--output", str(keyring), "--export", f"{'other' if wrong == 'signature' else 'right'}@example.org")
        sums = directory / "SHA512SUMS"
        gpg("--local-user", "right@example.org", "--output", f"{sums}.gpg", "--detach-sign", str(sums))
    finally:
        subprocess.run(["gpgconf", "--homedir", str(gnupg), "--kill", "all"], check=True)


def write(root: pathlib.Path, home: pathlib.Path, image: pathlib.Path, wrong: str | None) -> None:
    directory, gnupg, keyrings = root / BELOW, root / "gnupg", home / "keyrings"
    directory.mkdir(parents=True)
    gnupg.mkdir(mode=0o700)
    keyrings.mkdir(exist_ok=True)
    (directory / FILE).symlink_to(image.resolve())
    with image.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").hexdigest()
    (directory / "SHA512SUMS").write_text(f"{'0' * 128 if wrong == 'checksum' else digest}  {FILE}\n")
    sign(directory, gnupg, keyrings / "mirror.gpg", wrong)
    shutil.rmtree(gnupg)  # it is not for guests


def main() -> int:
    parser = argparse.ArgumentParser("mirror.py", description=__doc__)
    parser.add_argument("--wrong", choices=["checksum", "signature", "end"])
    parser.add_argument("home", type=pathlib.Path)
    parser.add_argument("image", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        write(root, options.home, options.image, options.wrong)
        handler = functools.partial(Dying if options.wrong == "end" else Handler, directory=directory)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            debian = {
                "base": f"http://127.0.0.1:{server.server_port}/",
                "signature": "SHA512SUMS.gpg",
                "keyring": "mirror.gpg",
                "properties": PROPERTIES,
            }
            (options.home / "images.yml").write_text(yaml.safe_dump({"debian": debian}))
            code = subprocess.run(options.command, stdin=subprocess.DEVNULL, check=False).returncode
            server.shutdown()
            return code


if __name__ == "__main__":
    sys.exit(main())
