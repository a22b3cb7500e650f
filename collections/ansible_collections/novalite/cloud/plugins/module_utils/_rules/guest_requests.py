# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests that only the guest may see: user data, files, its administrator's password, by config drive or not.

All of it may be secret. It is in no view of an instance, and no error here shows any of it.
"""

from __future__ import annotations

import base64
import binascii
import ctypes
import functools
import secrets
import string
import typing as t
from dataclasses import dataclass

from .._errors import NovaliteError, QuotaError
from .._guest.image_properties import config_drive_is_mandatory, host_mount
from .._host.command import run
from .._json import Json, JsonMapping, JsonObject
from .._model.instance import File
from .._model.plain_text import is_plain
from .._model.rows import InstanceRow

MAX_USER_DATA = 65535  # bytes of base64: nova/api/openstack/compute/schemas, maxLength of user_data
TEXT, BASE64 = ENCODINGS = ("text", "base64")  # how a request has the bytes for a guest
MAX_FILES = 100  # in one request, whatever the quotas say
MAX_PASSWORD = 512  # bytes; crypt(5) implementations refuse more
CRYPT_DATA = 256 * 1024  # bytes of crypt_r's working memory: libxcrypt takes 32 KiB of it, glibc took 128
_SALT = string.ascii_letters + string.digits + "./"
# Nova's quotas: injected_files, injected_file_path_length, injected_file_content_bytes
FILES_QUOTA, PATH_QUOTA, CONTENT_QUOTA = ("injected_files", "injected_file_path_length", "injected_file_content_bytes")


@dataclass(frozen=True, repr=False)
class GuestRequest:
    """`user_data` is base64; `files` are `{"path", "content"}` with base64 content; None: nothing was said."""

    user_data: str | None = None
    config_drive: bool | None = None
    files: tuple[tuple[str, str], ...] | None = None
    password_hash: str | None = None
    password_optional: bool = False  # a guest that has no place for it is launched all the same

    @property
    def file_records(self) -> list[File] | None:
        return None if self.files is None else [{"path": path, "content": content} for path, content in self.files]


def checked(name: str, entry: JsonMapping) -> GuestRequest:
    """The part of a server's request that concerns its guest. Raises NovaliteError."""
    if entry.get("admin_password") is not None:
        raise NovaliteError(f"admin_password of '{name}' was not hashed")  # with_hashes() was left out: ours to mend
    config_drive = entry.get("config_drive")
    if config_drive is not None and not isinstance(config_drive, bool):
        raise NovaliteError(f"config_drive of '{name}': say true or false")
    return GuestRequest(
        user_data=_user_data(name, entry.get("user_data"), entry.get("user_data_encoding")),
        config_drive=config_drive,
        files=_files(name, entry.get("files")),
        password_hash=entry.get("password_hash"),
        password_optional=bool(entry.get("password_optional")),
    )


def with_hashes(servers: t.Sequence[JsonMapping]) -> list[JsonObject]:
    """The entries with `password_hash` in the place of `admin_password`; nothing further on knows the password.

    Called outside of the ledger's transaction: a hash is slow on purpose. Servers of one entry share it.
    """
    entries = []
    for entry in servers:
        entry = dict(entry)
        password = entry.pop("admin_password", None)
        entry["password_hash"] = None if password is None else hashed(str(entry.get("name"))[:70], password)
        entries.append(entry)
    return entries


def check_quota(name: str, guest: GuestRequest, limits: t.Mapping[str, int]) -> None:
    """Refuse more, or larger, files than the project's quotas allow. -1 is unlimited."""
    files = guest.files or ()
    amounts = [(FILES_QUOTA, len(files))]
    amounts += [(PATH_QUOTA, len(path.encode())) for path, _content in files]
    amounts += [(CONTENT_QUOTA, len(base64.b64decode(content))) for _path, content in files]
    for resource, amount in amounts:
        limit = limits.get(resource, -1)
        if 0 <= limit < amount:
            raise QuotaError(f"files of '{name}': {resource} is {amount}, at most {limit} are allowed")


def wants_config_drive(guest: GuestRequest, image: JsonMapping, from_volume: bool = False) -> bool:
    """Tell whether a server gets a config drive: it asks, its image insists, or no host may write into its disk.
    One that starts from a volume has its key from there unless it declines: a volume is its owner's, and nothing is
    written into it (nor does Nova)."""
    is_requested = from_volume if guest.config_drive is None else guest.config_drive
    return is_requested or (config_drive_is_mandatory(image) if from_volume else needs_config_drive(image))


def needs_config_drive(image: JsonMapping) -> bool:
    """Tell whether servers with a disk of their own learn from a config drive, or not at all, what they are told."""
    return config_drive_is_mandatory(image) or not host_mount(image)


def requested_config_drive(guest: GuestRequest, row: InstanceRow) -> bool | None:
    """Tell whether the request asks for a config drive, or `row` has one in any case; None: it says nothing."""
    if guest.config_drive is None:
        return None
    return guest.config_drive or (bool(row.config_drive) and needs_config_drive(row.image))


def differs_from(guest: GuestRequest, row: InstanceRow) -> bool:
    """Tell whether a request, where it says anything, tells the guest something else than the instance `row` does."""
    requested_values = (guest.user_data, requested_config_drive(guest, row), guest.file_records)
    stored = (row.user_data, row.config_drive, row.files)
    return any(value is not None and value != old for value, old in zip(requested_values, stored))


def _user_data(name: str, value: Json, encoding: Json) -> str | None:
    if value is None or value == "":
        return None
    packed = _packed(f"user_data of '{name}'", value, encoding, "user_data_encoding")
    if len(packed) > MAX_USER_DATA:
        raise NovaliteError(f"user_data of '{name}' has {len(packed)} bytes in base64: at most {MAX_USER_DATA} fit")
    return packed


def _packed(what: str, value: Json, encoding: Json, word: str) -> str:
    """`value`, a text in this `encoding` (text or base64, as the option `word` says), in base64. Nothing is guessed: a
    text of base64's characters may be meant as it is. Raises NovaliteError."""
    if not isinstance(value, str):
        raise NovaliteError(f"{what}: give a text")
    if encoding not in (None, *ENCODINGS):
        raise NovaliteError(f"{what}: {word} is not {' or '.join(ENCODINGS)}")
    if encoding == BASE64:
        try:
            raw = base64.b64decode("".join(value.split()).encode(), validate=True)
        except (binascii.Error, ValueError):
            raise NovaliteError(f"{what} is not base64") from None
    else:
        try:
            # Ansible reads a file that is not UTF-8 (gzip, Latin-1) with its bytes as surrogates: here they are again
            raw = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise NovaliteError(
                f"{what} has characters that no text has: give it in base64 (filter b64encode), with {word} {BASE64}"
            ) from None
    return base64.b64encode(raw).decode()


def _files(name: str, value: Json) -> tuple[tuple[str, str], ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > MAX_FILES:
        raise NovaliteError(f"files of '{name}': give a list of at most {MAX_FILES}")
    files = tuple(_file(name, item) for item in value)
    if len({path for path, _content in files}) != len(files):
        raise NovaliteError(f"files of '{name}': one path is named twice")
    return files


def _file(name: str, item: Json) -> tuple[str, str]:
    path, content = (item.get(key) if isinstance(item, dict) else None for key in ("path", "content"))
    if not isinstance(path, str) or not isinstance(content, str):
        raise NovaliteError(f"files of '{name}': give each a path and a content")
    # CVE-2012-3360; the host resolves the path inside of the guest once more
    if not path.startswith("/") or not is_plain(path) or ".." in path.split("/") or not path.strip("/"):
        raise NovaliteError(f"files of '{name}': a path must be absolute, without '..' and control characters")
    return path, _packed(f"files of '{name}': the content of {path[:70]}", content, item.get("encoding"), "encoding")


def hashed(name: str, password: Json, generated: bool = False) -> str:
    """The crypt(5) hash of the administrator's password of the server `name`; one that was `generated` is random enough
    to need no more rounds than the least. Raises NovaliteError."""
    if not isinstance(password, str) or not password or not is_plain(password):
        raise NovaliteError(f"admin_password of '{name}': give a text without control characters")
    if len(password.encode()) > MAX_PASSWORD:
        raise NovaliteError(f"admin_password of '{name}': at most {MAX_PASSWORD} bytes")
    if generated and (library := _libcrypt()) is not None:
        salt = "".join(secrets.choice(_SALT) for _char in range(16))
        memory = ctypes.create_string_buffer(CRYPT_DATA)
        digest = library.crypt_r(password.encode(), f"$6$rounds=1000${salt}".encode(), memory)
        if digest is not None and digest.startswith(b"$6$"):
            return str(digest.decode())
    return run(["openssl", "passwd", "-6", "-stdin"], stdin=f"{password}\n").stdout.strip()


@functools.lru_cache(maxsize=1)
def _libcrypt() -> ctypes.CDLL | None:
    """The C library's crypt, or None. A process for each password would take longer than all of a request."""
    try:
        library = ctypes.CDLL("libcrypt.so.1")
    except OSError:
        return None
    library.crypt_r.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
    library.crypt_r.restype = ctypes.c_char_p
    return library
