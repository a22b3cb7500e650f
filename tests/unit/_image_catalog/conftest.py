# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A mirror of one distribution with one image, signed with a key of its own, and a controller's home that knows it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._image_catalog.entries import CatalogImage, catalog
from ansible_collections.novalite.cloud.plugins.module_utils._image_catalog.fetch import DIRECTORY, Fetched, fetch

FILE = "tiny-1.qcow2"
KEYRING = "tiny.gpg"


@dataclasses.dataclass
class Mirror:
    """`directory` is the mirror, `home` the ledger's; what the catalogue says of the image is in `said`."""

    directory: pathlib.Path
    home: pathlib.Path
    gnupg: pathlib.Path
    said: dict[str, t.Any]

    @property
    def file(self) -> pathlib.Path:
        return self.directory / "current" / FILE

    @property
    def checksums(self) -> pathlib.Path:
        return self.directory / "current/SHA256SUMS"

    def write_catalog(self, **more: t.Any) -> None:
        self.said.update(more)
        said = {key: value for key, value in self.said.items() if value is not None}
        text = yaml.safe_dump({"tiny": {**said, "images": {"tiny-1": {}}}})
        (self.home / "images.yml").write_text(text)

    def write_checksums(self, digest: str | None = None) -> None:
        digest = digest or hashlib.sha256(self.file.read_bytes()).hexdigest()
        self.checksums.write_text(f"{'0' * 64}  other.qcow2\n{digest} *{FILE}\n")

    def gpg(self, *arguments: str) -> None:
        subprocess.run(
            ["gpg", "--homedir", str(self.gnupg), "--batch", "--yes", "--passphrase", "", *arguments],
            check=True,
            capture_output=True,
        )

    def sign(self, *how: str) -> None:
        """Sign the checksums, apart from them or in clear."""
        self.gpg("--output", str(self.directory / "current/SHA256SUMS.gpg"), *how, str(self.checksums))

    def image(self) -> CatalogImage:
        return catalog(str(self.home))["tiny-1"]

    def fetch(self) -> Fetched:
        return fetch(self.image(), str(self.home), lambda _line: None)

    def kept(self) -> list[str]:
        """List the files that are kept of the catalogue, but for locks."""
        files = (self.home / DIRECTORY).glob("**/*")
        return [path.name for path in files if path.suffix != ".lock"]


@pytest.fixture(scope="session")
def gnupg(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[pathlib.Path]:
    """GnuPG's home with one key; and a file beside it with its public part, and one with another's."""
    home = tmp_path_factory.mktemp("gpg")  # a short path: gpg-agent's socket is in it
    mirror = Mirror(home, home, home, {})
    for name in ("right", "other"):
        mirror.gpg("--quick-generate-key", f"{name}@example.org", "default", "default", "never")
        mirror.gpg("--output", str(home / f"{name}.gpg"), "--export", f"{name}@example.org")
    yield home
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("disk") / FILE
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(path), "8M"], check=True)
    return path


@pytest.fixture
def mirror(tmp_path: pathlib.Path, gnupg: pathlib.Path, disk: pathlib.Path) -> Mirror:
    """A mirror that is a directory, whose checksums are not signed."""
    made = Mirror(tmp_path / "mirror", tmp_path / "home", gnupg, {})
    os.makedirs(made.file.parent)
    made.home.mkdir()
    shutil.copy(disk, made.file)
    made.write_checksums()
    base = {"base": str(made.directory), "file": f"current/{FILE}", "checksums": "SHA256SUMS", "login": "tiny"}
    made.write_catalog(**base)
    return made


@pytest.fixture
def signed_mirror(mirror: Mirror) -> Mirror:
    """The same, signed, with a keyring in the home."""
    mirror.sign("--local-user", "right@example.org", "--detach-sign")
    (mirror.home / "keyrings").mkdir()
    shutil.copy(mirror.gnupg / "right.gpg", mirror.home / "keyrings" / KEYRING)
    mirror.write_catalog(signature="SHA256SUMS.gpg", keyring=KEYRING)
    return mirror
