# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parsed files that are kept: each is parsed once, unless it was changed, and reads as without the memory."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from api.kept_documents import KeptDocuments

TEXT = "- name: 'Start {{ server }}'\n  vars: {deep: [{a: 1, b: two}]}\n"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the files that are parsed from now on, while a memory is asked before."""
    from ansible.parsing.dataloader import DataLoader  # which is not for collecting
    from ansible.template import trust_as_template

    anew, files = DataLoader.load, list[str]()

    def counted(loader: DataLoader, data: str, file_name: str, *more: bool, **named: bool) -> t.Any:
        files.append(os.path.basename(file_name))
        return anew(loader, data, file_name, *more, **named)

    monkeypatch.setattr(DataLoader, "load", counted)
    monkeypatch.setattr(type(trust_as_template("")), "__deepcopy__", None, raising=False)
    return files


@pytest.fixture
def tasks(tmp_path: pathlib.Path, parsed: list[str]) -> pathlib.Path:
    path = tmp_path / "roles/spawn/tasks/main.yml"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    (path.parent / "broken.yml").write_text("a: {")
    kept = KeptDocuments()
    kept.install()
    kept.fill(tmp_path)
    parsed.clear()
    return path


def read(path: pathlib.Path, **more: t.Any) -> t.Any:
    from ansible.parsing.dataloader import DataLoader

    return DataLoader().load_from_file(str(path), **more)


def test_what_is_kept_reads_as_what_is_parsed(tasks: pathlib.Path, parsed: list[str]) -> None:
    from ansible.template import is_trusted_as_template

    kept = read(tasks, trusted_as_template=True)
    assert parsed == []
    anew = read(tasks, trusted_as_template=True)
    assert parsed == ["main.yml"] and kept == anew and type(kept) is type(anew)
    for document in (kept, anew):
        assert is_trusted_as_template(document[0]["name"])
        assert f"{tasks}:1:9" in str(_origin(document[0]["name"]))


def _origin(text: str) -> object:
    from ansible._internal._datatag._tags import Origin

    return Origin.get_tag(text)


def test_a_changed_file_is_parsed(tasks: pathlib.Path, parsed: list[str]) -> None:
    status = tasks.stat()
    tasks.write_text(TEXT.replace("Start", "Halts"))
    os.utime(tasks, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read(tasks, trusted_as_template=True)[0]["name"] == "Halts {{ server }}"
    assert parsed == ["main.yml"]


def test_templates_of_whom_nobody_trusts_stay_so(tasks: pathlib.Path, parsed: list[str]) -> None:
    from ansible.template import is_trusted_as_template

    assert not is_trusted_as_template(read(tasks)[0]["name"])
    assert parsed == ["main.yml"]


def test_who_changes_a_document_changes_it_for_nobody_else(tasks: pathlib.Path) -> None:
    first = read(tasks, trusted_as_template=True, unsafe=True)
    first[0]["vars"]["deep"][0]["a"] = 2
    assert read(tasks, trusted_as_template=True)[0]["vars"]["deep"] == [{"a": 1, "b": "two"}]


def test_a_copy_shares_its_texts_alone(tasks: pathlib.Path) -> None:
    from ansible.parsing.dataloader import DataLoader

    loader = DataLoader()
    first, second = (loader.load_from_file(str(tasks), trusted_as_template=True) for _time in range(2))
    assert first == second and first[0]["name"] is second[0]["name"]
    first[0]["vars"]["deep"][0]["a"] = 2
    assert second[0]["vars"]["deep"][0]["a"] == 1


def test_an_error_is_said_each_time(tasks: pathlib.Path) -> None:
    from ansible.errors import AnsibleError

    for _time in range(2):
        with pytest.raises(AnsibleError, match="YAML parsing failed"):
            read(tasks.with_name("broken.yml"), trusted_as_template=True)
