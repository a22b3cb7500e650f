# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image cache, in a state directory of its own; needs qemu-img, no root."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import http.server
import os
import pathlib
import subprocess
import threading
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import Image, ensure_images
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.unit._disk.state import MIB, files, image_of, needs_qemu_img, push, qcow2

pytestmark = needs_qemu_img


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
