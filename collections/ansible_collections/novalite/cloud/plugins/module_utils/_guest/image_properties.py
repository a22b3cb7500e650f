# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of an image about injection, config drives, the guest agent and shutdown. Pure.

| property | values |
|---|---|
| `os_partition` | where to inject: a number, 0 (the whole disk), `inspect` (the default), `none` |
| `os_admin_user` | who gets the key and the password; root by default |
| `os_config_drive`, or Nova's `img_config_drive` | `mandatory`, or `optional` (the default): as the server asks |
| `os_config_drive_format` | `config-2` (the default) or `nocloud` |
| `os_shutdown_timeout` | seconds that a guest gets to shut down before it is powered off; 60 by default |
| `hw_qemu_guest_agent` | `yes`: the guest gets a channel for QEMU's guest agent; `no` (the default) |
| `os_host_mount` | `yes`: hosts may mount its file system, to inject; only the operator sets it; `no` by default |
| `hw_video_model` | its display: `virtio` (the default), `vga`, `bochs`, `cirrus`, `qxl`, `vmvga`; `none` for none |
| `hw_cdrom_bus` | bus of CDs: `ide`, `sata` or `virtio`; by default what the machine type has |
| `os_cdrom_images` | names or ids of the ISO images in further drives, with commas between; no name: an empty drive |
"""

from __future__ import annotations

import re

from .._errors import ForbiddenError, NovaliteError
from .._json import JsonMapping, JsonObject
from .._model import hardware

CONFIG_2 = "config-2"
NOCLOUD = "nocloud"
HOST_MOUNT = "os_host_mount"
_YES, _NO = ("yes", "true", "1", "on"), ("no", "false", "0", "off")
NO_VIDEO = "none"
_VIDEO_MODELS = ["bochs", "cirrus", NO_VIDEO, "qxl", "vga", "virtio", "vmvga"]  # Nova's that QEMU has for libvirt
CDROM_IMAGES = "os_cdrom_images"
MOST_DRIVES = 3  # of a guest; IDE has one place more, which is the config drive's
LAST_DEVICES = {"ide": "hdd", "sata": "sdf", "virtio": "vdz"}  # by bus

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")  # useradd(8)'s, with the capitals of Windows

PRIVATE = "novalite:"  # properties that begin so are bookkeeping, and shown to nobody

Image = JsonMapping


def shown_name(row: JsonMapping) -> str:
    """Return an image's name in the APIs; empty when it has none."""
    return str(row["name"] if row["display_name"] is None else row["display_name"])


def public_properties(properties: JsonMapping) -> JsonObject:
    """Return those of an image's properties that are shown, and that go with it."""
    return {key: value for key, value in properties.items() if not key.startswith(PRIVATE)}


def check(image: Image) -> None:
    """Raise NovaliteError for the first property of `image` that has a value there is none of."""
    partition(image)
    login_user(image)
    config_drive_is_mandatory(image)
    config_drive_format(image)
    cdrom_bus(image, "")
    cdrom_images(image)
    guest_agent(image)
    video_model(image)
    shutdown_timeout(image)
    host_mount(image)
    for name, value in _properties(image).items():
        hardware.check_property(f"image '{image.get('name')}'", name, value)


def check_new(name: str, properties: JsonMapping, known: JsonMapping) -> None:
    """check() for each property by itself, so that none is passed because another one is read in its place. What is
    `known` with the same value is not judged: it can still be described and copied."""
    for key, value in properties.items():
        if known.get(key) != value:
            check({"name": name, "properties": {key: value}})


def partition(image: Image) -> int | str | None:
    """Partition to inject into: a number, 0 for the whole disk, "inspect", or None for nowhere. -1 and -2 are Nova's
    names for the last two (inject_partition). Raises NovaliteError."""
    os_partition = str(_properties(image).get("os_partition", "inspect")).lower()
    if os_partition in ("inspect", "-1"):
        return "inspect"
    if os_partition in ("none", "-2"):
        return None
    if not (os_partition.isascii() and os_partition.isdigit() and len(os_partition) <= 3):
        raise _refused(image, "os_partition", os_partition, ["a number", "0 for the whole disk", "inspect", "none"])
    return int(os_partition)


def host_mount(image: Image) -> bool:
    """Tell whether a host's kernel may read the image's file system, so that keys can be injected into its disks.
    Kernel developers do not defend against crafted file systems: the operator allows it for images of their own choice
    (checked_host_mount()), and nobody can for an image that was made of a guest's disk."""
    return _one_of(image, HOST_MOUNT, "no", [*_YES, *_NO]) in _YES


def checked_host_mount(what: str, before: JsonMapping, after: JsonMapping, by_operator: bool) -> None:
    """Raise ForbiddenError if the properties `after` say otherwise than `before` that hosts may mount the image, unless
    the operator says so. Anybody may take that away."""
    if not by_operator and after.get(HOST_MOUNT) not in (None, before.get(HOST_MOUNT)):
        raise ForbiddenError(
            f"{what}: property {HOST_MOUNT} is the operator's to set: leave it out, and the guest is told what it must "
            "know by config drive and metadata"
        )


def without_host_mount(properties: JsonMapping) -> JsonObject:
    """The properties of a copy, or of other data: what the operator said was said of the image as it was."""
    return {key: value for key, value in properties.items() if key != HOST_MOUNT}


def admin_user(image: Image) -> str:
    """Account that gets the key and the password, unchecked: a guest may have no such account, and fails alone then."""
    return str(_properties(image).get("os_admin_user", "root"))


def login_user(image: Image) -> str:
    """The same for files that hold everybody's ways in (ssh_config). Raises NovaliteError for what is no user name."""
    user_name = admin_user(image)
    if _USER.fullmatch(user_name) is None:
        raise _refused(image, "os_admin_user", user_name, ["up to 32 letters, digits, and _ . - (not first)"])
    return user_name


def config_drive_is_mandatory(image: Image) -> bool:
    """Tell whether the image finds its metadata on a config drive only."""
    name = "os_config_drive" if "os_config_drive" in _properties(image) else "img_config_drive"
    return _one_of(image, name, "optional", ["mandatory", "optional"]) == "mandatory"


def config_drive_format(image: Image) -> str:
    return _one_of(image, "os_config_drive_format", CONFIG_2, [CONFIG_2, NOCLOUD])


def cdrom_bus(image: Image, usual: str) -> str:
    """The bus of the config drive; `usual` is what the machine type has."""
    return _one_of(image, "hw_cdrom_bus", usual, sorted(LAST_DEVICES))


def cdrom_images(image: Image) -> list[str]:
    """Names or ids of what is in drives beside that of an ISO image itself; "" for an empty drive."""
    text = _properties(image).get(CDROM_IMAGES)
    names = [] if text is None else [name.strip() for name in str(text).split(",")]
    if len(names) >= MOST_DRIVES:
        raise _refused(image, CDROM_IMAGES, str(text), [f"up to {MOST_DRIVES - 1} names, with commas between"])
    return names


def guest_agent(image: Image) -> bool:
    """Tell whether guests get a channel for QEMU's guest agent; the values are those that Nova takes for a boolean."""
    return _one_of(image, "hw_qemu_guest_agent", "no", [*_YES, *_NO]) in _YES


def video_model(image: Image) -> str | None:
    """The model of a guest's display; None for a guest without one."""
    model = _one_of(image, "hw_video_model", "virtio", _VIDEO_MODELS)
    return None if model == NO_VIDEO else model


def shutdown_timeout(image: Image) -> int | None:
    """Seconds, up to an hour; None when the image does not say."""
    timeout = str(_properties(image).get("os_shutdown_timeout", ""))
    if not timeout:
        return None
    if not (timeout.isascii() and timeout.isdigit() and len(timeout) <= 4 and int(timeout) <= 3600):
        raise _refused(image, "os_shutdown_timeout", timeout, ["a number of seconds from 0 to 3600"])
    return int(timeout)


def _properties(image: Image) -> JsonMapping:
    return image.get("properties") or {}


def _one_of(image: Image, name: str, default: str, values: list[str]) -> str:
    if name not in _properties(image):
        return default
    text = str(_properties(image)[name]).lower()
    if text not in values:
        raise _refused(image, name, text, values)
    return text


def _refused(image: Image, name: str, text: str, values: list[str]) -> NovaliteError:
    return NovaliteError(f"image '{image.get('name')}': its property {name} is {text[:40]!r}; use {', '.join(values)}")
