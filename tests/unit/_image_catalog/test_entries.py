# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalogue: the images that it ships, the operator's own, and files of checksums."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest import image_properties
from ansible_collections.novalite.cloud.plugins.module_utils._image_catalog.checksums import Checksum, checksum_of
from ansible_collections.novalite.cloud.plugins.module_utils._image_catalog.entries import catalog
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    checked_properties,
)

A, B, LONG = "a1" * 32, "b2" * 32, "c3" * 64
DISTRIBUTIONS = ("debian", "ubuntu", "fedora", "almalinux", "rocky", "opensuse", "arch", "alpine", "freebsd", "cirros")
OWN: dict[str, t.Any] = {"base": "/srv/mirror", "file": "a/b.qcow2", "checksums": "SHA256SUMS", "login": "me"}


def test_the_catalogue_has_each_distribution(tmp_path: pathlib.Path) -> None:
    images = catalog(str(tmp_path))
    for distribution in DISTRIBUTIONS:
        assert any(name.split("-")[0] == distribution for name in images), distribution
    for image in images.values():
        assert image.base.startswith("https://") and image.min_disk_gb and image.login
        assert checked_properties(image.name, image.record["properties"]) == image.record["properties"]
        assert image_properties.partition(image.record) is None  # cloud-init makes the login that would be looked for
        assert "{" not in image.place_of(image.checksums) + image.place_of(image.signature or "")


def own(home: pathlib.Path, said: t.Any) -> dict[str, t.Any]:
    (home / "images.yml").write_text(said if isinstance(said, str) else yaml.safe_dump(said))
    return dict(catalog(str(home)))


def test_a_mirror_takes_the_place_of_a_distributions_base(tmp_path: pathlib.Path) -> None:
    images = own(tmp_path, {"debian": {"base": "/srv/debian/"}})
    assert images["debian-12"].place_of().startswith("/srv/debian/bookworm/latest/debian-12")
    assert images["debian-12"].place_of("SHA512SUMS") == "/srv/debian/bookworm/latest/SHA512SUMS"
    assert images["fedora-43"].base.startswith("https://")


def test_properties_join_those_that_all_have(tmp_path: pathlib.Path) -> None:
    images = own(tmp_path, {"debian": {"properties": {"hw_firmware_type": "uefi", "hw_cdrom_bus": "sata"}}})
    properties = images["debian-12"].record["properties"]
    assert (properties["hw_firmware_type"], properties["hw_cdrom_bus"]) == ("uefi", "sata")
    assert (properties["os_config_drive"], properties["os_admin_user"]) == ("mandatory", "debian")


def test_a_release_is_a_line(tmp_path: pathlib.Path) -> None:
    images = own(tmp_path, {"debian": {"images": {"debian-14": {"file": "forky/latest/debian-14.qcow2"}}}})
    assert images["debian-14"].login == "debian" and "debian-12" in images


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "../b.qcow2"}, "is not a path below its base"),
        ({"file": "/etc/shadow"}, "is not a path below its base"),
        ({"base": "ftp://host/"}, "is not an absolute path or an http"),
        ({"base": "mirror"}, "is not an absolute path or an http"),
        ({"checksums": "../SHA256SUMS"}, "is not the name of a file"),
        ({"signature": "x/y", "keyring": "k"}, "is not the name of a file"),
        ({"signature": "y", "keyring": "../../k"}, "is not the name of a file"),
        ({"signature": "y"}, "give both"),
        ({"checksum": "x"}, "'checksum' is not a field: use base"),
        ({"min_disk_gb": "3"}, "min_disk_gb '3' is not a number"),
        ({"min_disk_gb": True}, "is not a number"),
        ({"login": 7}, "login 7 is not text"),
        ({"properties": []}, "is not a mapping"),
        ({"login": ""}, "give its login"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(tmp_path: pathlib.Path, change: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message) as refused:
        own(tmp_path, {"mine": {"images": {"mine-1": {**OWN, **change}}}})
    assert "mine-1" in str(refused.value)


@pytest.mark.parametrize("text", ["- a", "a: [", "mine: 3", "mine: {images: [a]}", "mine: {images: {a: b}}", "7"])
def test_a_file_that_is_not_a_catalogue_is_named(tmp_path: pathlib.Path, text: str) -> None:
    with pytest.raises(NovaliteError, match=r"images\.yml"):
        own(tmp_path, text)


@pytest.mark.parametrize("name", ["a b", "../a", "-a", "", "x" * 64])
def test_names_are_plain(tmp_path: pathlib.Path, name: str) -> None:
    with pytest.raises(NovaliteError, match="a name has at most 63"):
        own(tmp_path, {"mine": {"images": {name: OWN}}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{A}  f.img\n{B}  g.img\n", A),
        (f"{A} *f.img\n", A),
        (f"{A.upper()}  ./dir/f.img\r\n", A),
        (f"# f.img: 12 bytes\nSHA256 (f.img) = {A}\nSHA256 (g.img) = {B}\n", A),
        (f"MD5 (f.img) = {'d' * 32}\nSHA256 (f.img) = {A}\n", A),
        (f"{A}  f.img\n{LONG}  f.img\n", LONG),
        (f"{A}  f.img\n{A}  f.img\n", A),
        (f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{A}  f.img\n", A),
    ],
)
def test_checksums_are_read_in_their_forms(text: str, expected: str) -> None:
    algorithm = "sha512" if expected is LONG else "sha256"
    assert checksum_of(text, "f.img", "SUMS", alone=False) == Checksum(algorithm, expected)


@pytest.mark.parametrize(
    "text", ["", "hello", f"{A}  g.img", f"{'d' * 32}  f.img", f"{A}  f.img.sig", f"{A}  f.img\n{B}  f.img"]
)
def test_checksums_that_say_nothing_or_two_things_are_refused(text: str) -> None:
    with pytest.raises(NovaliteError, match="SUMS has"):
        checksum_of(text, "f.img", "SUMS", alone=False)


@pytest.mark.parametrize(("text", "alone"), [(A, True), (A, False), (f"{A}  f-2026.img", True)])
def test_a_checksum_alone_is_the_files(text: str, alone: bool) -> None:
    """Also under the name that "latest" is a link to."""
    assert checksum_of(text, "f.img", "SUMS", alone=alone).digest == A


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(NovaliteError):
        assert len(checksum_of(text, "f.img", "SUMS", alone=True).digest) in (64, 128)
