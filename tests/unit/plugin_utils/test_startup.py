# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's process imports the collection from bytecode, which is never older than the source."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.plugin_utils import _startup

PACKAGE = "plugins_of_a_collection"


@pytest.fixture
def source(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[pathlib.Path]:
    """A file of a package that the finder, alone, takes for the collection's."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_startup, "PLUGINS", f"{PACKAGE}.")
    monkeypatch.setattr(sys, "meta_path", [_startup.BytecodeFinder(), *sys.meta_path])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    yield folder / "answer.py"
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def answer() -> object:
    sys.modules.pop(f"{PACKAGE}.answer", None)
    return importlib.import_module(f"{PACKAGE}.answer").VALUE


def compiled(source: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(importlib.util.cache_from_source(str(source)))


def test_bytecode_is_kept_and_follows_the_source(source: pathlib.Path) -> None:
    source.write_text("VALUE = 1\n")
    assert answer() == 1 and compiled(source).exists()
    source.write_text("VALUE = 22\n")
    assert answer() == 22


def test_bytecode_is_used(source: pathlib.Path) -> None:
    source.write_text("VALUE = 1\n")
    answer()
    status = source.stat()
    source.write_text("VALUE = 2\n")  # of the same size and time: Python cannot tell, unless it compiles
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert answer() == 1


def test_damaged_bytecode_is_made_anew(source: pathlib.Path) -> None:
    source.write_text("VALUE = 1\n")
    answer()
    compiled(source).write_bytes(b"\0" * 40)
    assert answer() == 1


def test_nothing_else_is_found(source: pathlib.Path) -> None:
    finder = _startup.BytecodeFinder()
    assert finder.find_spec("json", [os.path.dirname(json_file())]) is None
    assert finder.find_spec(f"{PACKAGE}.missing", [str(source.parent)]) is None
    (source.parent / "room").mkdir()  # without __init__.py: Ansible's loader makes a package of it
    assert finder.find_spec(f"{PACKAGE}.room", [str(source.parent)]) is None


def json_file() -> str:
    return str(importlib.import_module("json").__file__)


def test_a_process_is_quickened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    registered: list[object] = []
    monkeypatch.setattr(_startup.atexit, "register", registered.append)
    monkeypatch.setattr(_startup.gc, "set_threshold", lambda *numbers: None)
    _startup.quicken()
    _startup.quicken()
    assert [type(finder) for finder in sys.meta_path].count(_startup.BytecodeFinder) == 1 and len(registered) == 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the actions that were made, in a process of its own as far as these go."""
    monkeypatch.setattr(_startup.Actions, "_made_here", [])
    return []


def actions_of(made: list[str], *names: str) -> _startup.Actions[object]:
    def make(name: str) -> type[object]:
        made.append(name)
        return type(name, (), {})

    return _startup.Actions(names, make)


def test_the_actions_that_a_playbook_takes_are_made_at_its_beginning(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_startup.Actions, "_expected", ("take",))
    actions = actions_of(made, "take", "prove", "remove")
    assert made == ["take"] and list(actions) == ["take", "prove", "remove"]
    _startup.Actions.expect(("prove", "unknown"))  # of the playbook after it, in the same process
    assert made == ["take", "prove"]
    assert actions["take"] is actions["take"] and actions["remove"].__name__ == "remove"
    assert made == ["take", "prove", "remove"]
    with pytest.raises(KeyError):
        actions["unknown"]


def test_all_actions_are_made_where_nobody_says_which(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_startup.Actions, "_expected", ())
    actions_of(made, "take", "prove")
    assert made == []
    _startup.Actions.expect(None)
    assert made == ["take", "prove"]
