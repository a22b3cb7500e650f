# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images of the catalogue on the controller: fetched, verified, unpacked, or refused with nothing kept."""

from __future__ import annotations

import functools
import gzip
import http.server
import lzma
import os
import pathlib
import shutil
import socket
import threading
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import download as downloads
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ImageRefusedError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._image_catalog import fetch as fetching
from ansible_collections.novalite.cloud.plugins.module_utils._image_import import packed as packing
from tests.unit._image_catalog.conftest import FILE, KEYRING, Mirror


class Quiet(http.server.SimpleHTTPRequestHandler):
    cut = 0  # bytes of an image after which the connection ends; 0: never

    def log_message(self, format: str, *args: t.Any) -> None:
        pass

    def copyfile(self, source: t.Any, outputfile: t.Any) -> None:
        if self.cut and self.path.endswith(".qcow2"):
            outputfile.write(source.read(self.cut))
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            super().copyfile(source, outputfile)


@pytest.fixture
def served(mirror: Mirror, request: pytest.FixtureRequest) -> t.Iterator[Mirror]:
    """The mirror behind HTTP."""
    handler = type("Handler", (Quiet,), {"cut": getattr(request, "param", 0)})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(mirror.directory))
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    mirror.write_catalog(base=f"http://127.0.0.1:{server.server_port}/")
    yield mirror
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_directory_serves_as_well_as_a_mirror(mirror: Mirror) -> None:
    fetched = mirror.fetch()
    assert pathlib.Path(fetched.path).read_bytes() == mirror.file.read_bytes()
    assert not fetched.warnings and mirror.kept() == [os.path.basename(fetched.path)]
    assert os.stat(fetched.path).st_mode & 0o077 == 0


def test_what_is_there_is_not_fetched_again(served: Mirror) -> None:
    fetched = served.fetch()
    served.file.unlink()  # the checksums alone are asked for
    assert served.fetch() == fetched


def test_a_new_version_is_another_file(mirror: Mirror) -> None:
    first = mirror.fetch().path
    with open(mirror.file, "ab") as file:
        file.write(bytes(65536))
    mirror.write_checksums()
    second = mirror.fetch().path
    assert first != second and sorted(mirror.kept()) == sorted(map(os.path.basename, (first, second)))


def test_a_signature_counts(signed_mirror: Mirror) -> None:
    assert not signed_mirror.fetch().warnings


def test_checksums_that_are_signed_in_clear(signed_mirror: Mirror) -> None:
    signed_mirror.gpg(
        "--local-user", "right@example.org", "--output", f"{signed_mirror.checksums}.new", "--clear-sign",
        str(signed_mirror.checksums),
    )  # fmt: skip
    os.rename(f"{signed_mirror.checksums}.new", signed_mirror.checksums)
    signed_mirror.write_catalog(signature="{checksums}")
    assert not signed_mirror.fetch().warnings
    shutil.rmtree(signed_mirror.home / "catalog")
    # what stands beside the signed text is nobody's word
    text = signed_mirror.checksums.read_text()
    with open(signed_mirror.file, "ab") as file:
        file.write(bytes(512))
    signed_mirror.write_checksums()
    signed_mirror.checksums.write_text(signed_mirror.checksums.read_text() + text)
    with pytest.raises(ImageRefusedError, match="has the sha256 checksum"):
        signed_mirror.fetch()
    assert signed_mirror.kept() == []


def test_a_signature_that_nobody_can_check_is_said(signed_mirror: Mirror) -> None:
    (signed_mirror.home / "keyrings" / KEYRING).unlink()
    (warning,) = signed_mirror.fetch().warnings
    assert "was not checked" in warning and KEYRING in warning


def another_key(mirror: Mirror) -> None:
    mirror.sign("--local-user", "other@example.org", "--detach-sign")


def another_text(mirror: Mirror) -> None:
    mirror.checksums.write_text(mirror.checksums.read_text().replace("other", "another"))


def no_signature(mirror: Mirror) -> None:
    (mirror.directory / "current/SHA256SUMS.gpg").unlink()


def empty_signature(mirror: Mirror) -> None:
    (mirror.directory / "current/SHA256SUMS.gpg").write_bytes(b"")


def wrong_checksum(mirror: Mirror) -> None:
    mirror.write_checksums("1" * 64)
    mirror.sign("--local-user", "right@example.org", "--detach-sign")


def no_checksum(mirror: Mirror) -> None:
    mirror.checksums.write_text(f"{'a' * 32}  {FILE}\n")  # MD5
    mirror.sign("--local-user", "right@example.org", "--detach-sign")


def huge_checksums(mirror: Mirror) -> None:
    with open(mirror.checksums, "ab") as file:
        file.truncate(fetching.MAX_TEXT + 1)


def another_format(mirror: Mirror) -> None:
    mirror.file.write_bytes(b"QFI\xfb" + bytes(508))
    mirror.write_checksums()
    mirror.sign("--local-user", "right@example.org", "--detach-sign")


def a_fifo(mirror: Mirror) -> None:
    mirror.file.unlink()
    os.mkfifo(mirror.file)


def a_directory(mirror: Mirror) -> None:
    mirror.file.unlink()
    mirror.file.mkdir()


def nothing(mirror: Mirror) -> None:
    mirror.file.unlink()


WRONG = (
    another_key, another_text, no_signature, empty_signature, wrong_checksum, no_checksum, huge_checksums,
    another_format, a_fifo, a_directory, nothing,
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_is_wrong_is_refused_and_nothing_is_kept(signed_mirror: Mirror, wrong: t.Callable[[Mirror], None]) -> None:
    wrong(signed_mirror)
    with pytest.raises(NovaliteError) as refused:
        signed_mirror.fetch()
    message = str(refused.value)
    assert "tiny-1" in message or str(signed_mirror.directory) in message, message
    assert "\n" not in message
    assert signed_mirror.kept() == []


@pytest.mark.parametrize("served", [100], indirect=True)
def test_nothing_is_kept_of_a_mirror_that_dies(served: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "PAUSE", 0.01)
    with pytest.raises(NovaliteError, match="cannot be downloaded"):
        served.fetch()
    assert served.kept() == []


def packed(mirror: Mirror, suffix: str, content: bytes) -> None:
    path = mirror.file.with_name(f"{FILE}.{suffix}")
    path.write_bytes(content)
    mirror.file.unlink()
    os.symlink(path.name, mirror.file)  # for write_checksums()
    mirror.write_checksums()
    mirror.checksums.write_text(mirror.checksums.read_text().replace(FILE, path.name))
    mirror.write_catalog(file=f"current/{path.name}")


@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
def test_packed_images_are_unpacked(
    mirror: Mirror, disk: pathlib.Path, suffix: str, pack: t.Callable[[bytes], bytes]
) -> None:
    packed(mirror, suffix, pack(disk.read_bytes()))
    assert pathlib.Path(mirror.fetch().path).read_bytes() == disk.read_bytes()


@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
@pytest.mark.parametrize("damage", ["cut", "bomb", "garbage"])
def test_damaged_and_huge_packs_are_refused(
    mirror: Mirror,
    disk: pathlib.Path,
    suffix: str,
    pack: t.Callable[[bytes], bytes],
    damage: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = pack(disk.read_bytes() + os.urandom(4096))
    if damage == "bomb":
        monkeypatch.setattr(packing, "MAX_SIZE", 1 << 20)
        content = pack(bytes(3 << 20))
    content = {"cut": content[:-4000], "bomb": content, "garbage": b"\xfd7zXZ\0" + bytes(100)}[damage]
    packed(mirror, suffix, content)
    with pytest.raises(ImageRefusedError, match="tiny-1"):
        mirror.fetch()
    assert mirror.kept() == []


def test_unpacking_takes_a_bounded_amount_of_memory(mirror: Mirror, disk: pathlib.Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20}]
    packed(mirror, "xz", lzma.compress(disk.read_bytes(), filters=filters))
    with pytest.raises(ImageRefusedError, match="Memory usage limit"):
        mirror.fetch()
