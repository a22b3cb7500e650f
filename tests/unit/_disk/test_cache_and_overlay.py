# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image cache and the disks on top of it, in a state directory of their own; needs qemu-img, no root."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils import _host
from ansible_collections.novalite.cloud.plugins.module_utils._disk import cache, overlay
from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import Image, ensure_images
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import (
    Disk,
    create_disks,
    recorded_format,
    remove_disks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

MIB = 1 << 20
GIB = 1 << 30
UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
OTHER = "0b3f3b57-0f0e-4a27-8a9d-2f6c9d6f1a11"
pytestmark = pytest.mark.skipif(not (shutil.which("qemu-img") and shutil.which("prlimit")), reason="no qemu-img")


@pytest.fixture(autouse=True)
def locks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of this test's own: /run/lock is root's."""
    own = functools.partial(_host.locked, directory=str(tmp_path / "locks"))
    monkeypatch.setattr(cache, "locked", own)
    monkeypatch.setattr(overlay, "locked", own)


@pytest.fixture
def state(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "state")


def qcow2(tmp_path: pathlib.Path, size: str = "8M") -> Image:
    raw, path = tmp_path / "content.raw", tmp_path / "image.qcow2"
    raw.write_bytes(b"\1" * MIB)
    subprocess.run(["qemu-img", "resize", "-q", "-f", "raw", str(raw), size], check=True)
    subprocess.run(["qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", str(raw), str(path)], check=True)
    return image_of(path, disk_format="qcow2", virtual_size=raw.stat().st_size)


def image_of(path: pathlib.Path, **changes: t.Any) -> Image:
    data = path.read_bytes()
    return Image(f"sha256:{hashlib.sha256(data).hexdigest()}", str(path), len(data), **changes)


def push(image: Image, state: str) -> dict[str, t.Any]:
    """As the action plug-in does it."""
    first = ensure_images([image], state)
    (missing,) = first["missing"]
    shutil.copyfile(image.source, missing["staged"])
    return ensure_images([dataclasses.replace(image, staged=missing["staged"])], state)


def files(state: str) -> list[str]:
    return sorted(os.listdir(os.path.join(state, "_base")))


def test_a_disk_becomes_a_sparse_raw_file(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path)
    assert ensure_images([image], state, check_mode=True)["changed"] and not os.path.exists(state)
    result = push(image, state)
    path = result["images"][0]["path"]
    assert result["changed"] and result["images"][0]["status"] == "fetched" and result["missing"] == []
    assert files(state) == [image.checksum[7:]]
    status = os.stat(path)
    assert status.st_mode & 0o777 == 0o444 and status.st_size == 8 * MIB and status.st_blocks * 512 < 2 * MIB
    assert pathlib.Path(path).read_bytes() == (tmp_path / "content.raw").read_bytes()
    for check_mode in (False, True):
        again = ensure_images([image, image], state, check_mode)
        assert not again["changed"] and [entry["status"] for entry in again["images"]] == ["cached"]
        assert again["diff"] == {"before": {}, "after": {}}


def test_kernels_are_stored_as_they_are(tmp_path: pathlib.Path, state: str) -> None:
    (tmp_path / "kernel").write_bytes(b"MZ kernel")
    image = image_of(tmp_path / "kernel", kind="kernel")
    assert pathlib.Path(push(image, state)["images"][0]["path"]).read_bytes() == b"MZ kernel"


@pytest.mark.parametrize(("change", "message"), [
    ({"checksum": f"sha256:{'0' * 64}"}, f"its checksum is sha256:[0-9a-f]+ but sha256:{'0' * 64} was declared"),
    ({"size": 5}, "has [0-9]+ bytes but 5 were declared"),
    ({"disk_format": "raw"}, "was declared raw but its content is qcow2"),
    ({"virtual_size": 9 * MIB}, f"has a virtual size of {8 * MIB} bytes but {9 * MIB} was declared"),
    ({"virtual_size": MIB}, "virtual size"),
])
def test_what_is_not_as_declared_leaves_nothing(
    tmp_path: pathlib.Path, state: str, change: dict[str, t.Any], message: str
) -> None:
    image = dataclasses.replace(qcow2(tmp_path), **change)
    with pytest.raises(NovaliteError, match=message) as caught:
        push(image, state)
    assert "image '" in str(caught.value) and "\n" not in str(caught.value)
    assert files(state) == []


@pytest.mark.parametrize("options", ["backing_file=/etc/passwd,backing_fmt=raw", "data_file=@"])
def test_an_image_that_refers_to_another_file_leaves_nothing(tmp_path: pathlib.Path, state: str, options: str) -> None:
    path = tmp_path / "evil.qcow2"
    options = options.replace("@", f"{tmp_path}/data")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", options, str(path), "8M"], check=True)
    with pytest.raises(NovaliteError, match=r"backing file|external"):
        push(image_of(path, disk_format="qcow2"), state)
    assert files(state) == []


def test_bad_declarations() -> None:
    good = f"sha256:{'0' * 64}"
    for arguments, message in (
        ({"checksum": "md5:1"}, "not sha256"), ({"checksum": good.upper()}, "not sha256"),
        ({"checksum": f"sha256:{'/' * 64}"}, "not sha256"), ({"checksum": f"{good}\n"}, "not sha256"),
        ({"kind": "iso"}, "kind 'iso'"), ({"disk_format": None}, "never guessed"),
    ):
        with pytest.raises(NovaliteError, match=message):
            Image(**{"checksum": good, "source": "/x", "size": 1, "disk_format": "raw", **arguments})  # type: ignore[arg-type]
    assert "secret" not in str(Image(good, "https://me:secret@example.org/a?secret", 1, disk_format="raw"))


@contextlib.contextmanager
def served(directory: pathlib.Path) -> t.Iterator[tuple[str, list[str]]]:
    requests: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: t.Any) -> None:
            requests.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_url_is_fetched_once_by_many(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path)
    with served(tmp_path) as (url, requests):
        image = dataclasses.replace(image, source=f"{url}/image.qcow2")
        assert ensure_images([image], state, check_mode=True)["changed"] and requests == []
        statuses: list[str] = []
        threads = [threading.Thread(target=lambda: statuses.append(
            ensure_images([image], state)["images"][0]["status"])) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == ["cached"] * 4 + ["fetched"]
        assert requests == ["/image.qcow2"]


def test_a_url_that_fails(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path)
    with served(tmp_path) as (url, _requests):
        for change, message in (
            ({"source": f"{url}/none"}, "cannot be downloaded: HTTP Error 404"),
            ({"source": f"{url}/image.qcow2", "size": 5}, "larger than the 5 bytes"),
        ):
            with pytest.raises(NovaliteError, match=message):
                ensure_images([dataclasses.replace(image, **change)], state)
            assert files(state) == []


def test_stale_pushes_are_removed_and_young_ones_kept(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path)
    staged = ensure_images([image], state)["missing"][0]["staged"]
    assert os.stat(staged).st_mode & 0o777 == 0o600
    assert ensure_images([image], state)["missing"][0]["staged"] != staged and len(files(state)) == 2
    os.utime(staged, (0, 0))
    ensure_images([], state)
    assert len(files(state)) == 1 and not os.path.exists(staged)


@pytest.fixture
def base(tmp_path: pathlib.Path, state: str) -> str:
    image = qcow2(tmp_path)
    push(image, state)
    return image.checksum


def info(path: str) -> dict[str, t.Any]:
    output = subprocess.run(["qemu-img", "info", "-f", "qcow2", "--output=json", path], check=True, capture_output=True)
    return t.cast("dict[str, t.Any]", json.loads(output.stdout))


def test_a_disk_on_its_base(state: str, base: str) -> None:
    disk = Disk(UUID, base, 1, kernel=base)
    planned = create_disks([disk], state, check_mode=True)
    directory = os.path.join(state, "instances", UUID)
    assert not os.path.exists(directory)
    done = create_disks([disk], state)
    assert done == planned and done["disks"][0]["created"] == ["disk", "kernel"]
    found = info(done["disks"][0]["path"])
    assert found["virtual-size"] == GIB and found["backing-filename-format"] == "raw"
    assert found["full-backing-filename"] == os.path.join(state, "_base", base[7:])
    assert sorted(os.listdir(directory)) == ["disk", "disk.info", "kernel"]
    assert os.stat(directory).st_mode & 0o777 == 0o711
    assert os.stat(f"{directory}/kernel").st_nlink == 1 and recorded_format(directory) == "qcow2"
    for check_mode in (True, False):
        assert not create_disks([disk], state, check_mode)["changed"]


def test_a_run_that_was_cut_off_is_completed(state: str, base: str) -> None:
    disk = Disk(UUID, base)
    directory = pathlib.Path(os.path.dirname(create_disks([disk], state)["disks"][0]["path"]))
    assert info(str(directory / "disk"))["virtual-size"] == 8 * MIB
    (directory / "disk.info").unlink()
    (directory / "disk.part").write_text("half")
    with pytest.raises(NovaliteError, match="does not exist"):
        recorded_format(str(directory))
    assert create_disks([disk], state)["disks"][0]["created"] == ["disk.info"]
    assert recorded_format(str(directory)) == "qcow2"
    (directory / "disk").unlink()
    assert create_disks([disk], state)["changed"] and not (directory / "disk.part").exists()


def test_a_base_larger_than_the_flavor_is_refused(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path, "1025M")
    push(image, state)
    with pytest.raises(NovaliteError, match="more than the flavor's root disk of 1 GiB"):
        create_disks([Disk(UUID, image.checksum, 1)], state)
    assert os.listdir(os.path.join(state, "instances")) == []


def test_a_failure_takes_back_what_the_call_made(state: str, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pathlib.Path(state, "instances", OTHER)
    kept.mkdir()
    (kept / "console.log").touch()
    run = overlay.run

    def failing(argv: t.Sequence[str], **options: t.Any) -> t.Any:
        if OTHER in argv[-1]:
            raise NovaliteError("no space")
        return run(argv, **options)

    monkeypatch.setattr(overlay, "run", failing)
    with pytest.raises(NovaliteError, match="no space"):
        create_disks([Disk(UUID, base, kernel=base), Disk(OTHER, base)], state)
    assert os.listdir(os.path.join(state, "instances")) == [OTHER] and os.listdir(kept) == ["console.log"]


def test_missing_base(state: str, base: str) -> None:
    absent = f"sha256:{'0' * 64}"
    with pytest.raises(NovaliteError, match="not in the cache of this host"):
        create_disks([Disk(UUID, base, ramdisk=absent)], state)
    assert create_disks([Disk(UUID, absent)], state, check_mode=True)["changed"]
    with pytest.raises(NovaliteError, match="needs its base image"):
        create_disks([Disk(UUID)], state)


def test_removal(state: str, base: str) -> None:
    disks = [Disk(UUID, base), Disk(OTHER, base)]
    create_disks(disks, state)
    planned = remove_disks(disks[:1], state, check_mode=True)
    assert planned["diff"]["before"] == {UUID: ["disk", "disk.info"]}
    assert remove_disks(disks[:1], state) == planned
    assert os.listdir(os.path.join(state, "instances")) == [OTHER]
    assert not remove_disks(disks[:1], state)["changed"]


@pytest.mark.parametrize("uuid", [
    "..", "", "../_base", UUID.upper(), f"{UUID}/x", f"{{{UUID}}}", UUID.replace("-", "")])
def test_only_instances_are_removed(state: str, base: str, uuid: str) -> None:
    with pytest.raises(NovaliteError, match="is not the UUID of an instance"):
        remove_disks([Disk(uuid)], state)
    assert files(state) == [base[7:]]


def test_a_link_instead_of_a_directory_is_not_followed(tmp_path: pathlib.Path, state: str, base: str) -> None:
    (tmp_path / "victim").mkdir()
    os.symlink(tmp_path / "victim", os.path.join(state, "instances", UUID))
    for action in (create_disks, remove_disks):
        with pytest.raises(NovaliteError, match="is not a directory"):
            action([Disk(UUID, base)], state)
    assert (tmp_path / "victim").is_dir()
