# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalogue of cloud images that are known by name: images.yml beside this file, and the operator's own."""

from __future__ import annotations

import dataclasses
import functools
import os
import posixpath
import re
import types
import typing as t

from ansible.module_utils.common.yaml import yaml_load

from .._errors import NovaliteError
from .._json import JsonMapping

SHIPPED = os.path.join(os.path.dirname(__file__), "images.yml")
OWN = "images.yml"  # of the operator, in the ledger's home
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# What holds of all unless they say otherwise. The bus is virtio: kernels that are made for clouds may have no driver
# for IDE, and would not find the config drive. Nothing is written into their disks: the login is there only once
# cloud-init, which has all of it from the config drive, has made it
PROPERTIES: t.Mapping[str, str] = types.MappingProxyType(
    {"hw_cdrom_bus": "virtio", "os_config_drive": "mandatory", "os_partition": "none"}
)


@dataclasses.dataclass(frozen=True)
class CatalogImage:
    """Place of an image of this name, how it is verified, and what the ledger records of it.

    `base` is a URL or a directory, `file` a path below it; `checksums` and `signature` (None: there is none) are names
    beside the file. `keyring` is the name of a file, `login` the user who gets the key, `min_disk_gb` GiB.
    """

    name: str
    base: str
    file: str
    checksums: str
    login: str
    signature: str | None = None
    keyring: str | None = None
    min_disk_gb: int = 0
    disk_format: str = "qcow2"
    properties: JsonMapping = dataclasses.field(default_factory=dict)

    def place_of(self, beside: str | None = None) -> str:
        """Return the URL or path of the file, or of what is `beside` it."""
        path = self.file if beside is None else posixpath.join(posixpath.dirname(self.file), beside)
        return f"{self.base.rstrip('/')}/{path}"

    @property
    def record(self) -> dict[str, t.Any]:
        """Return what module `image` is told of it, without its source."""
        return {
            "name": self.name,
            "disk_format": self.disk_format,
            "min_disk_gb": self.min_disk_gb,
            "properties": {"os_admin_user": self.login, **PROPERTIES, **self.properties},
        }


KINDS: t.Mapping[str, tuple[type, str]] = {"min_disk_gb": (int, "a number"), "properties": (dict, "a mapping")}
FIELDS = {field.name: field for field in dataclasses.fields(CatalogImage) if field.name != "name"}


def catalog(home: str) -> dict[str, CatalogImage]:
    """Return the images that the catalogue knows for a ledger in the directory `home`, by name. Raises NovaliteError
    for a file of the operator's that is not a catalogue."""
    own = os.path.join(home, OWN)
    distributions = dict(_shipped())
    for name, changed in (_read(own) if os.path.lexists(own) else {}).items():
        before = distributions.get(name, {})
        images = {**before.get("images", {}), **changed.get("images", {})}
        distributions[name] = {**before, **changed, "images": images}
    return {
        name: _image(name, {**{key: value for key, value in distribution.items() if key != "images"}, **image})
        for distribution in distributions.values()
        for name, image in distribution["images"].items()
    }


@functools.cache
def _shipped() -> JsonMapping:
    return _read(SHIPPED)


def _read(path: str) -> JsonMapping:
    """Read a file of distributions, each with what is said of it and its images."""
    try:
        with open(path, encoding="utf-8") as file:
            said = yaml_load(file)
    except OSError as error:
        raise NovaliteError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise NovaliteError(f"{path} is not text in UTF-8: {error}") from error
    except Exception as error:  # of the YAML library, which need not be there for others to import this file
        raise NovaliteError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(said, dict):
        raise NovaliteError(f"{path} is not a mapping of distributions: see {SHIPPED}")
    for name, distribution in said.items():
        images = distribution.get("images", {}) if isinstance(distribution, dict) else None
        if not isinstance(images, dict) or not all(isinstance(image, dict) for image in images.values()):
            raise NovaliteError(f"{path}: {name!r} is not a mapping with images: see {SHIPPED}")
    return said


def _image(name: str, said: JsonMapping) -> CatalogImage:
    what = f"image {name!r} of the catalogue"
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise NovaliteError(f"{what}: a name has at most 63 letters, digits, '.', '_' and '-', a letter or digit first")
    for key, value in said.items():
        if key not in FIELDS:
            raise NovaliteError(f"{what}: '{key}' is not a field: use {', '.join(FIELDS)}")
        kind, called = KINDS.get(key, (str, "text"))
        if not isinstance(value, kind) or isinstance(value, bool):
            raise NovaliteError(f"{what}: {key} {value!r} is not {called}")
    missing = [key for key in ("base", "file", "checksums", "login") if not said.get(key)]
    if missing:
        raise NovaliteError(f"{what}: give its {', '.join(missing)}")
    file = posixpath.basename(said["file"])
    checksums = said["checksums"].replace("{file}", file)
    signature = said.get("signature")
    if signature is not None:
        signature = signature.replace("{file}", file).replace("{checksums}", checksums)
    image = CatalogImage(name, **{**said, "checksums": checksums, "signature": signature})
    _check_places(what, image)
    if (image.signature is None) != (image.keyring is None):
        raise NovaliteError(f"{what}: a signature and a keyring go together: give both")
    return image


def _check_places(what: str, image: CatalogImage) -> None:
    """Raise NovaliteError for a place that is neither in a directory of the controller nor on a web server, and for
    names that leave theirs."""
    if not image.base.startswith(("/", "http://", "https://")):
        raise NovaliteError(f"{what}: base {image.base!r} is not an absolute path or an http(s) URL")
    if image.file.startswith("/") or ".." in image.file.split("/"):
        raise NovaliteError(f"{what}: file {image.file!r} is not a path below its base")
    for key, name in (("checksums", image.checksums), ("signature", image.signature), ("keyring", image.keyring)):
        if name is not None and (not name or "/" in name or name in (".", "..")):
            raise NovaliteError(f"{what}: {key} {name!r} is not the name of a file")
