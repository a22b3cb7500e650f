# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a host has from novalite: all or none, and nothing of others."""

from __future__ import annotations

import os
import pathlib
import stat
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.host_files import ensure_files, parse


def ensured(*files: dict[str, t.Any], check_mode: bool = False) -> dict[str, t.Any]:
    return ensure_files(parse(files), check_mode)


def mode_of(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def several(tmp_path: pathlib.Path) -> list[dict[str, t.Any]]:
    return [
        {"path": f"{tmp_path}/old", "state": "absent"},
        {"path": f"{tmp_path}/units", "state": "directory"},
        {"path": f"{tmp_path}/units/one.service", "content": "[Unit]\n"},
        {"path": f"{tmp_path}/program", "content": "#!/bin/sh\n", "mode": "0755"},
        {"path": f"{tmp_path}/units/wanted", "state": "link", "target": "one.service"},
        {"path": f"{tmp_path}/state", "state": "directory", "mode": "0711"},
    ]


def test_all_are_written_once(tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").write_text("x")
    files = several(tmp_path)
    result = ensured(*files)
    assert result["changed"] and result["written"] == [file["path"] for file in files]
    assert not (tmp_path / "old").exists()
    assert (tmp_path / "units" / "wanted").read_text() == "[Unit]\n"
    assert [mode_of(tmp_path / name) for name in ("units", "program", "state")] == [0o755, 0o755, 0o711]
    assert ensured(*files) == {"changed": False, "written": []}


def test_check_mode_says_the_same_and_writes_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").write_text("x")
    preview = ensured(*several(tmp_path), check_mode=True)
    assert os.listdir(tmp_path) == ["old"]
    assert ensured(*several(tmp_path)) == preview
    assert preview["diff"]["after"][f"{tmp_path}/program"]["content"] == "#!/bin/sh\n"


@pytest.mark.parametrize("spoil", [lambda path: path.write_text("#!/bin/true\n"), lambda path: path.chmod(0o4755)])
def test_what_was_changed_is_put_right(tmp_path: pathlib.Path, spoil: t.Callable[[pathlib.Path], None]) -> None:
    ensured(*several(tmp_path))
    spoil(tmp_path / "program")
    assert ensured(*several(tmp_path))["written"] == [f"{tmp_path}/program"]
    assert (tmp_path / "program").read_text() == "#!/bin/sh\n"
    assert mode_of(tmp_path / "program") == 0o755


def test_a_directory_of_others_keeps_its_mode(tmp_path: pathlib.Path) -> None:
    (tmp_path / "units").mkdir(mode=0o700)
    (tmp_path / "units").chmod(0o2775)
    ensured(*several(tmp_path))
    assert mode_of(tmp_path / "units") == 0o2775


def test_the_state_directory_may_be_a_link(tmp_path: pathlib.Path) -> None:
    """An operator who has it on another disk."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to("elsewhere")
    ensured(*several(tmp_path))
    assert (tmp_path / "state").is_symlink()
    assert not ensured(*several(tmp_path))["changed"]


@pytest.mark.parametrize("name", ["program", "units", "old"])
def test_nothing_is_written_where_something_else_is_in_the_way(tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("mine") if name == "units" else path.mkdir()
    with pytest.raises(NovaliteError, match=f"{path} is to be .* move that away"):
        ensured(*several(tmp_path))
    assert os.listdir(tmp_path) == [name]


def test_a_link_is_replaced_and_not_followed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "link").symlink_to("theirs")
    (tmp_path / "link.new").symlink_to("a run that was cut off")
    ensured({"path": f"{tmp_path}/link", "state": "link", "target": "other"})
    assert os.readlink(tmp_path / "link") == "other"
    with pytest.raises(NovaliteError, match="a link is in its place"):
        ensured({"path": f"{tmp_path}/link", "content": "x"})
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_what_cannot_be_written_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NovaliteError, match=f"{tmp_path}/nowhere/file cannot be written: No such file or directory"):
        ensured({"path": f"{tmp_path}/nowhere/file", "content": "x"})


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"path": "etc/x", "content": ""}, "whole path"),
        ({"path": "/etc/../x", "content": ""}, "whole path"),
        ({"path": "/etc/x"}, "a file has a content"),
        ({"path": "/etc/x", "state": "link"}, "a link has a target"),
        ({"path": "/etc/x", "content": "", "mode": "u=rwx"}, "four octal digits"),
    ],
)
def test_what_is_no_file_is_refused(file: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        parse([file])
    with pytest.raises(NovaliteError, match="given twice"):
        parse([{"path": "/etc/x", "content": ""}, {"path": "/etc/x", "state": "absent"}])
