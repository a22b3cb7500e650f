# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._domain.lifecycle_console import tail
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError


@pytest.mark.parametrize(
    ("content", "lines", "output"),
    [
        (b"a\nb\nc\n", 2, "b\nc\n"),
        (b"a\nb\nlogin: ", 2, "b\nlogin: "),
        (b"a\nb\n", 9, "a\nb\n"),
        (b"a\nb\n", 0, ""),
        (b"a\n\x1b[2J\x07\x00\r\n", 1, "\x1b[2J\x07\x00\r\n"),
        (b"\xff\n", None, "\ufffd\n"),
        (b"", 5, ""),
    ],
)
def test_the_last_lines(tmp_path: pathlib.Path, content: bytes, lines: int | None, output: str) -> None:
    (tmp_path / "console.log").write_bytes(content)
    assert tail(str(tmp_path / "console.log"), lines) == output


@given(text=st.text(max_size=60), most=st.integers(4, 80))
def test_never_more_than_asked_for_and_no_half_character(
    tmp_path_factory: pytest.TempPathFactory, text: str, most: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "console.log"
    path.write_bytes(text.encode())
    said = tail(str(path), None, most)
    assert len(said.encode()) <= most and text.endswith(said)
    assert len(said.encode()) > min(most, len(text.encode())) - 4


def test_a_log_that_was_just_rotated_goes_on_in_the_old_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "console.log"
    path.write_bytes(b"three\n")
    (tmp_path / "console.log.0").write_bytes(b"one\ntwo\n")
    assert tail(str(path), 2) == "two\nthree\n"
    assert tail(str(path), 1) == "three\n"
    assert tail(str(path), None, 9) == "wo\nthree\n"


def test_no_log_and_what_is_none(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "console.log"
    assert tail(str(path)) == ""
    os.mkfifo(path)
    with pytest.raises(NovaliteError, match="is not a plain file"):
        tail(str(path))
    path.unlink()
    path.symlink_to("/etc/shadow")
    with pytest.raises(NovaliteError, match="cannot be read"):
        tail(str(path))
