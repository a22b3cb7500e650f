# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Downloads from a server that cuts off, changes its mind, lies, or never ends."""

from __future__ import annotations

import itertools
import os
import pathlib
import random
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import download as room
from ansible_collections.novalite.cloud.plugins.module_utils._disk.download import Source, Transfer, download
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ImageRefusedError, NovaliteError
from tests.unit._disk.server import Behaviour, Server

CONTENT = random.Random(1).randbytes(3_000_000)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PAUSE", 0.0)


@pytest.fixture
def part(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "image.part"


def fetch(
    server: Server, part: pathlib.Path, path: str = "/image", limit: int = 4_000_000, timeout: float = 60.0
) -> Transfer:
    lines: list[str] = []
    done = download(Source(server.url + path, "the image", limit, timeout), str(part), lines.append)
    assert lines[-1].startswith(f"the image: {done.size} bytes in ")
    assert part.read_bytes() == server.behaviour.content and os.listdir(part.parent) == ["image.part"]
    return done


def test_in_one_piece(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT)) as server:
        done = fetch(server, part)
        assert (done.size, done.resumed_from) == (len(CONTENT), 0) and done.seconds > 0
        assert server.requests == [("/image", None, None)]
        assert part.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("length", [True, False])
def test_no_length_is_no_obstacle(part: pathlib.Path, length: bool) -> None:
    with Server(Behaviour(CONTENT, length=length)) as server:
        assert fetch(server, part).size == len(CONTENT)


def test_it_goes_on_where_it_was_cut_off(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT, cuts=[1_000_000, 5, 0])) as server:
        assert fetch(server, part).resumed_from == 0
        assert server.requests == [
            ("/image", None, None),
            ("/image", "bytes=1000000-", '"one"'),
            ("/image", "bytes=1000005-", '"one"'),
            ("/image", "bytes=1000005-", '"one"'),
        ]


def cut_off(server: Server, part: pathlib.Path, after: int = 1_000_000) -> None:
    """A run that gave up after some bytes."""
    server.behaviour.cuts = [after, 0, 0, 0, 0]
    with pytest.raises(NovaliteError, match=rf"the connection ended after {after} of 3000000 .*{after} bytes are kept"):
        fetch(server, part)
    assert sorted(os.listdir(part.parent)) == ["image.part", "image.part.json"]
    server.requests.clear()


def test_the_next_run_goes_on(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT)) as server:
        cut_off(server, part)
        assert fetch(server, part).resumed_from == 1_000_000
        assert server.requests == [("/image", "bytes=1000000-", '"one"')]


def test_another_version_is_fetched_from_its_beginning(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT)) as server:
        cut_off(server, part)
        server.behaviour.content, server.behaviour.etag = CONTENT[::-1], '"two"'
        assert fetch(server, part).resumed_from == 0


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_validator_it_goes_on_and_the_caller_compares(part: pathlib.Path, etag: str | None) -> None:
    with Server(Behaviour(CONTENT, etag=etag)) as server:
        cut_off(server, part)
        assert fetch(server, part).resumed_from == 1_000_000
        assert server.requests == [("/image", "bytes=1000000-", None)]


def test_a_server_without_ranges(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT)) as server:
        cut_off(server, part)
        server.behaviour.ranges = False
        assert fetch(server, part).resumed_from == 0


@pytest.mark.parametrize("lie", ["bytes 0-9/10", "bytes 5-9/3000000", "octets", f"bytes {'9' * 5000}-1/1"])
def test_another_part_than_was_asked_for(part: pathlib.Path, lie: str) -> None:
    with Server(Behaviour(CONTENT)) as server:
        cut_off(server, part)
        server.behaviour.content_range = lie
        assert fetch(server, part).resumed_from == 0


def test_all_has_come_already_or_too_much(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT)) as server:
        cut_off(server, part)
        part.write_bytes(CONTENT)
        assert fetch(server, part).resumed_from == len(CONTENT)
        cut_off(server, part)
        part.write_bytes(CONTENT + b"more")
        assert fetch(server, part).resumed_from == 0


def test_what_another_url_left_is_not_used(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT)) as server:
        cut_off(server, part)
        assert fetch(server, part, "/other").resumed_from == 0
        assert server.requests == [("/other", None, None)]


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"url": 1}'])
def test_a_note_that_is_none(part: pathlib.Path, note: str) -> None:
    with Server(Behaviour(CONTENT)) as server:
        cut_off(server, part)
        pathlib.Path(f"{part}.json").write_text(note)
        assert fetch(server, part).resumed_from == 0


@pytest.mark.parametrize("length", [True, False])
def test_more_than_is_accepted_is_not_kept(part: pathlib.Path, length: bool) -> None:
    with Server(Behaviour(CONTENT, length=length)) as server:
        with pytest.raises(ImageRefusedError, match="larger than the 2999999 bytes"):
            fetch(server, part, limit=len(CONTENT) - 1)
        assert os.listdir(part.parent) == []


def test_statuses_that_pass_and_those_that_do_not(part: pathlib.Path) -> None:
    with Server(Behaviour(CONTENT, statuses=[503, 429, 500])) as server:
        fetch(server, part)
        assert len(server.requests) == 4
        for status in (401, 403, 404, 410):
            server.behaviour.statuses = [status]
            with pytest.raises(NovaliteError, match=f"the image cannot be downloaded: HTTP Error {status}"):
                fetch(server, part)
        server.requests.clear()
        server.behaviour.statuses = [503] * 9
        with pytest.raises(NovaliteError, match="HTTP Error 503"):
            fetch(server, part)
        assert len(server.requests) == room.ATTEMPTS


def test_redirects_lead_to_http_only(part: pathlib.Path, tmp_path: pathlib.Path) -> None:
    secret = tmp_path.parent / "secret"
    secret.write_text("secret")
    with Server(Behaviour(CONTENT)) as server:
        server.behaviour.redirect = f"{server.url}/image"
        assert fetch(server, part, "/moved").size == len(CONTENT)
        part.unlink()
        for target in (f"file://{secret}", "ftp://127.0.0.1/image", "data:,x", f"{server.url}/moved"):
            server.behaviour.redirect = target
            with pytest.raises(NovaliteError, match="cannot be downloaded"):
                fetch(server, part, "/moved")
            assert os.listdir(part.parent) == []


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://a..b/x", "http://[/x", "http:///x", "http://127.0.0.1:1/x"],
)
def test_urls_that_lead_nowhere(part: pathlib.Path, url: str) -> None:
    with pytest.raises(NovaliteError, match="the image cannot be downloaded"):
        download(Source(url, "the image", 10, 10.0), str(part), lambda _line: None)
    assert os.listdir(part.parent) == []


def test_a_server_that_never_comes_to_an_end(part: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 40)
    monkeypatch.setattr(room.time, "monotonic", lambda: float(next(clock)))
    lines: list[str] = []
    message = "did not come within 90 s"
    with Server(Behaviour(CONTENT, length=False)) as server, pytest.raises(NovaliteError, match=message):
        download(Source(f"{server.url}/image", "the image", 4_000_000, 90.0), str(part), lines.append)
    assert lines and "bytes" in lines[0]
    assert part.stat().st_size


def test_a_full_disk(part: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_usage(_path: str) -> t.Any:
        return type("Usage", (), {"free": 5})

    monkeypatch.setattr(room.shutil, "disk_usage", disk_usage)
    message = "3000000 bytes are to come, 5 are free"
    with Server(Behaviour(CONTENT)) as server, pytest.raises(NovaliteError, match=message):
        fetch(server, part)
