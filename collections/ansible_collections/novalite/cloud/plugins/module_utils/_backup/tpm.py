# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""State of an emulated TPM: the file that swtpm replaces as a whole with each change, in libvirt's directory."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import shutil
import stat
import zlib
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._host.files import closing, is_uuid, opened

DIRECTORY = "/var/lib/libvirt/swtpm"  # qemuTPMEmulatorInitPaths of libvirt
_FILES = {"2.0": ("tpm2", "tpm2-00.permall"), "1.2": ("tpm1.2", "tpm-00.permall")}  # by version, swtpm's names
VERSIONS = tuple(_FILES)
_LARGEST = 1 << 20  # bytes; swtpm 0.7 allows some 100 KiB
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def version_of(definition: str) -> str | None:
    """The version of the emulated TPM in a domain's XML, if it has one whose state is a file."""
    backend = ElementTree.fromstring(definition).find("devices/tpm/backend[@type='emulator']")
    version = None if backend is None else backend.get("version", "2.0")
    return version if version in _FILES else None


def read(uuid: str, version: str) -> str | None:
    """The state of the TPM of this domain, compressed by zlib, in base64; None where it never ran. Raises NovaliteError
    for what is no such file, and OSError."""
    folder, name = _FILES[version]
    try:
        with opened(_path(uuid, folder), _FOLDER) as directory, closing(os.open(name, _FILE, dir_fd=directory)) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode) or os.fstat(fd).st_size > _LARGEST:
                raise NovaliteError(f"{name} in {_path(uuid, folder)} is not the state of a TPM: look at who wrote it")
            return base64.b64encode(zlib.compress(os.read(fd, _LARGEST))).decode()
    except FileNotFoundError:
        return None


def write(uuid: str, version: str, state: str) -> None:
    """Have the TPM of this domain, whose guest is off, hold the state that read() gave. Its file belongs to whom the
    directory does; libvirt gives both to swtpm's user when the guest starts. Raises OSError."""
    folder, name = _FILES[version]
    os.makedirs(_path(uuid, folder), 0o700, exist_ok=True)
    with opened(_path(uuid, folder), _FOLDER) as directory:
        owner, part = os.fstat(directory), f".{name}.{secrets.token_hex(8)}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with closing(os.open(part, flags, 0o600, dir_fd=directory)) as fd:
                with open(fd, "wb", closefd=False) as handle:
                    handle.write(zlib.decompress(base64.b64decode(state)))
                os.fchown(fd, owner.st_uid, owner.st_gid)
                os.fsync(fd)
            os.rename(part, name, src_dir_fd=directory, dst_dir_fd=directory)
            os.fsync(directory)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part, dir_fd=directory)
            raise


def remove(uuid: str) -> None:
    """Remove the state of the TPM of this domain, which no guest has any more."""
    shutil.rmtree(os.path.dirname(_path(uuid, "any")), ignore_errors=True)


def _path(uuid: str, folder: str) -> str:
    if not is_uuid(uuid):
        raise NovaliteError(f"'{uuid}' is not the UUID of a domain: give the one that libvirt has")
    return os.path.join(DIRECTORY, uuid, folder)
