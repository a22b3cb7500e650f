# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image cache, in a state directory of its own; needs qemu-img, no root."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import http.server
import os
import pathlib
import shutil
import subprocess
import threading
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import cache, download
from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import Image, Rules, ensure_images
from ansible_collections.novalite.cloud.plugins.module_utils._disk.controller_files import downloaded
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ImageRefusedError, NovaliteError
from tests.unit._disk.server import Behaviour, Server
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checksum": f"sha256:{'0' * 64}"}, f"its checksum is sha256:[0-9a-f]+ but sha256:{'0' * 64} was declared"),
        ({"size": 5}, "has [0-9]+ bytes but 5 were declared"),
        ({"disk_format": "raw"}, "was declared raw but its content is qcow2"),
        ({"virtual_size": 9 * MIB}, f"has a virtual size of {8 * MIB} bytes but {9 * MIB} was declared"),
        ({"virtual_size": MIB}, "virtual size"),
    ],
)
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
        ({"checksum": "md5:1"}, "not sha256"),
        ({"checksum": good.upper()}, "not sha256"),
        ({"checksum": f"sha256:{'/' * 64}"}, "not sha256"),
        ({"checksum": f"{good}\n"}, "not sha256"),
        ({"kind": "iso"}, "kind 'iso'"),
        ({"disk_format": None}, "never guessed"),
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
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
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
        threads = [
            threading.Thread(target=lambda: statuses.append(ensure_images([image], state)["images"][0]["status"]))
            for _ in range(5)
        ]
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


def test_a_download_goes_on_in_the_next_run(
    tmp_path: pathlib.Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.0)
    image = qcow2(tmp_path)
    behaviour = Behaviour((tmp_path / "image.qcow2").read_bytes(), cuts=[100_000, 0, 0, 0, 0])
    with Server(behaviour) as server:
        image = dataclasses.replace(image, source=f"{server.url}/image", size=0, virtual_size=0)
        with pytest.raises(NovaliteError, match="100000 bytes are kept"):
            ensure_images([image], state)
        assert files(state) == [f"{image.checksum[7:]}.part", f"{image.checksum[7:]}.part.json"]
        lines: list[str] = []
        [entry] = ensure_images([image], state, rules=Rules(report=lines.append))["images"]
        assert (entry["status"], entry["resumed_from"], entry["bytes"]) == ("fetched", 100_000, len(behaviour.content))
        assert entry["seconds"] >= 0 and lines and files(state) == [image.checksum[7:]]


@pytest.mark.parametrize("good", [True, False])
def test_halves_of_two_files_are_thrown_away(
    tmp_path: pathlib.Path, state: str, monkeypatch: pytest.MonkeyPatch, good: bool
) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.0)
    image = qcow2(tmp_path)
    content = (tmp_path / "image.qcow2").read_bytes()
    with Server(Behaviour(content[::-1], etag=None, cuts=[100_000, 0, 0, 0, 0])) as server:
        image = dataclasses.replace(image, source=f"{server.url}/image")
        with pytest.raises(NovaliteError, match="bytes are kept"):
            ensure_images([image], state)
        server.behaviour.content = content if good else content[::-1]
        server.requests.clear()
        if good:
            [entry] = ensure_images([image], state)["images"]
            assert entry["resumed_from"] == 0 and files(state) == [image.checksum[7:]]
            assert [part for _path, part, _validator in server.requests] == ["bytes=100000-", None]
        else:
            with pytest.raises(ImageRefusedError, match="is not what was registered"):
                ensure_images([image], state)
            assert files(state) == []


def test_a_disk_too_small_for_what_unfolds(tmp_path: pathlib.Path, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "content.raw").write_bytes(b"\1" * 64 * MIB)
    convert = ["qemu-img", "convert", "-q", "-c", "-f", "raw", "-O", "qcow2"]
    subprocess.run([*convert, str(tmp_path / "content.raw"), str(tmp_path / "bomb")], check=True)
    image = image_of(tmp_path / "bomb", disk_format="qcow2")
    assert image.size < MIB
    real = cache.shutil.disk_usage

    def disk_usage(path: str) -> t.Any:
        return real(path)._replace(free=60 * MIB)

    monkeypatch.setattr(cache.shutil, "disk_usage", disk_usage)
    with pytest.raises(NovaliteError, match=f"it takes up to {64 * MIB} bytes there, {60 * MIB} are free") as caught:
        push(image, state)
    assert not isinstance(caught.value, ImageRefusedError) and files(state) == []
    monkeypatch.undo()


def test_the_flavor_bounds_an_image_of_unknown_size(tmp_path: pathlib.Path, state: str) -> None:
    image = dataclasses.replace(qcow2(tmp_path), virtual_size=0, max_virtual_size=7 * MIB)
    with pytest.raises(ImageRefusedError, match="at most 7340032 are accepted"):
        push(image, state)
    assert push(dataclasses.replace(image, max_virtual_size=8 * MIB), state)["changed"]


def test_the_controller_downloads_once_for_all_hosts(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path)
    with Server(Behaviour((tmp_path / "image.qcow2").read_bytes())) as server:
        image = dataclasses.replace(image, source=f"{server.url}/image")
        [missing] = ensure_images([image], state, rules=Rules(pushed=True))["missing"]
        assert server.requests == [] and missing["source"] == image.source
        directory = str(tmp_path / "controller/images")
        threads = [threading.Thread(target=downloaded, args=(image, directory, Rules())) for _host in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        path = downloaded(image, directory, Rules())
        assert len(server.requests) == 1 and sorted(os.listdir(directory)) == [path[-64:], f"{path[-64:]}.lock"]
    shutil.copyfile(path, missing["staged"])
    result = ensure_images([dataclasses.replace(image, staged=missing["staged"])], state, rules=Rules(pushed=True))
    assert result["images"][0]["status"] == "fetched" and result["missing"] == [] and files(state) == [path[-64:]]
