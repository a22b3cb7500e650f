# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Things that documents name are there: playbooks, variables, targets of make, files, headings, settings."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import shlex
import typing as t
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from tools import story

from ansible_collections.novalite.cloud.plugins.module_utils._graph.launch_steps import HOSTS, STEPS
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS
from ansible_collections.novalite.cloud.plugins.plugin_utils._settings import INVENTORY
from api.cli import all_commands
from api.jobs.options import Options
from api.settings import Settings

ROOT = pathlib.Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *CHAPTERS]
PAGES += sorted(ROOT.glob("api/**/*.md")) + sorted(ROOT.glob("collections/**/README.md"))
COLLECTION = ROOT / "collections/ansible_collections/novalite/cloud"
MODULES = COLLECTION / "plugins/modules"
BOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
# files of an operator's own, and of other programs, that examples name beside our playbooks
OTHER_FILES = {"cloud", "galaxy", "groups", "hosts", "instances.novalite", "runtime", "servers", "images", "upgrade"}

ARGUMENT = r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"`()#|]+)"
PLAYBOOK_CALL = re.compile(
    # in a command, and in the shorter `pause.yml -e server=web`
    rf"(?:(?<![\w/.])(?:\S*/)?(?:playbooks/)?(?P<file>[a-z_]+)\.yml|\bnovalite\.cloud\.(?P<name>[a-z_]+))"
    rf"(?P<arguments>(?: +{ARGUMENT})*)"
)
COLLECTION_CALL = re.compile(r"ansible-playbook(?: -i \S+)? novalite\.cloud\.([a-z_]+)")
FILE_CALL = re.compile(r"ansible-playbook(?: -i \S+)? playbooks/([a-z_]+)\.yml")
MAKE = re.compile(r"(?m)(?:^|`)make ([a-z][a-z-]*)(?=[\s`]|$)(?! (?:sure|a|the|an)\b)")
COMMAND = re.compile(r"(?m)^novalite ([a-z][a-z-]*)\b")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def _named(text: str) -> t.Iterator[tuple[str, str]]:
    """Each pair of a playbook and a variable that it is called with by `-e`."""
    for call in PLAYBOOK_CALL.finditer(text.replace("\\\n", " ")):
        playbook = call["file"] or call["name"]
        if playbook not in PLAYBOOKS:
            continue
        words = shlex.split(call["arguments"])
        for option, value in zip(words, words[1:]):
            if option != "-e" or value.startswith("@"):
                continue
            names = json.loads(value) if value.startswith("{") and "..." not in value else ()
            for name in names or [assignment.split("=")[0] for assignment in value.split() if "=" in assignment]:
                yield playbook, name


def unknown_variables(text: str) -> list[str]:
    """List what `text` says with `-e` and no playbook of that name knows."""
    return [
        f"{playbook} -e {name}="
        for playbook, name in _named(text)
        if name not in PLAYBOOKS[playbook].variables and name not in INVENTORY
    ]


def unknown_playbooks(text: str) -> set[str]:
    """Playbooks that `text` calls, or names in backquotes, and that are not there."""
    called = {*COLLECTION_CALL.findall(text), *FILE_CALL.findall(text)}
    named = set(re.findall(r"`([a-z_-][a-z_.-]*)\.yml", text)) - OTHER_FILES
    return (called | named) - set(PLAYBOOKS)


def unknown_targets(text: str) -> set[str]:
    """Targets of make that `text` names in code, and that the Makefile lacks."""
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    return set(MAKE.findall(text)) - targets


def unknown_commands(text: str) -> set[str]:
    """Commands of `novalite` that `text` calls in code, and that it does not have."""
    blocks = re.findall(r"(?ms)^ *```\w*\n(.*?)^ *```", text)
    inline = re.findall(r"`([^`\n]+)`", text)
    return set(COMMAND.findall("\n".join(blocks + inline))) - set(all_commands())


def anchors(path: pathlib.Path) -> set[str]:
    """The anchors that headings of the page at `path` have."""
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text())
    headings = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


SITE = "https://github.com/novalite/novalite/blob/main/"  # of this tree, for who reads a page elsewhere


def dead_links(path: pathlib.Path) -> list[str]:
    """Links of the page at `path` to files, or headings of them, that are not there."""
    dead = []
    for target in LINK.findall(path.read_text()):
        if re.match(r"[a-z]+:", target) and not target.startswith(SITE):
            continue
        name, _, anchor = target.removeprefix(SITE).partition("#")
        folder = ROOT if target.startswith(SITE) else path.parent
        file = (folder / name).resolve() if name else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    return dead


def _name(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*PAGES, ROOT / "Makefile", *BOOKS], ids=_name)
def test_commands_name_what_is_there(path: pathlib.Path) -> None:
    text = path.read_text().replace("-e coutn=3", "")  # the example of a word that ends the run
    assert not unknown_variables(text)
    if path in PAGES:
        assert not unknown_playbooks(text)
        assert not unknown_targets(text)
        assert not unknown_commands(text)


def test_a_misspelt_word_is_found() -> None:
    assert unknown_variables("`pause.yml -e serve=web`") == ["pause -e serve="]
    assert unknown_variables("ansible-playbook novalite.cloud.launch -e server=web -e 'coutn=3'") == [
        "launch -e coutn="
    ]
    assert unknown_variables("""launch.yml -e '{"uuid": []}'""") == ["launch -e uuid="]
    assert unknown_playbooks("ansible-playbook novalite.cloud.lanch -e @servers.yml, `paus.yml`") == {"lanch", "paus"}
    assert unknown_commands("`novalite lst`\n```\nnovalite shw web\n```") == {"lst", "shw"}
    assert unknown_targets("```\nmake lanch\n```\n`make doc`") == {"lanch", "doc"}


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_links_lead_somewhere(path: pathlib.Path) -> None:
    assert not dead_links(path)


def test_dead_links_are_found(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"# A heading\n[a](other.md) [b](#a-heading) [c](#another) [d](https://example.org)\n[e]({SITE}gone.md)\n"
    )
    assert dead_links(page) == ["other.md", "#another", f"{SITE}gone.md"]


def test_links_of_the_readme_lead_somewhere_from_a_registry_too() -> None:
    assert not [target for target in LINK.findall((ROOT / "README.md").read_text()) if "://" not in target]


PLACE = re.compile(r"`((?:module_utils|plugin_utils|api|roles|playbooks)/[\w./-]+)(?:::(\w+))?`")


def lost_places(text: str) -> list[str]:
    """Files that `text` names, with a function or a class behind `::`, and that are not there, or have none such."""
    lost = []
    for name, definition in PLACE.findall(text):
        path = next((root / name for root in (ROOT, COLLECTION / "plugins") if (root / name).exists()), None)
        if path is None:
            lost.append(name)
        elif definition and not re.search(rf"(?m)^(?:def|class) {definition}\b", path.read_text()):
            lost.append(f"{name}::{definition}")
    return lost


def test_the_places_of_novas_parts_are_there() -> None:
    text = (ROOT / "docs/from-nova.md").read_text()
    assert len(PLACE.findall(text)) > 30
    assert not lost_places(text)
    assert lost_places("`api/nosuch.py`, `module_utils/_disk/cache.py::nosuch`") == [
        "api/nosuch.py",
        "module_utils/_disk/cache.py::nosuch",
    ]
    steps = set(re.findall(r"module `(\w+)`", text)) | set(re.findall(r"modules `(\w+)` and `(\w+)`", text)[0])
    assert steps <= {path.stem for path in MODULES.glob("*.py")}


def test_the_steps_of_a_launch_are_those_of_the_table() -> None:
    lines = (ROOT / "docs/from-nova.md").read_text().splitlines()
    rows = {int(match[1]): line for line in lines if (match := re.match(r"\| (\d+) \|", line))}
    assert sorted(rows) == sorted(step.number for step in STEPS if step.number is not None) == list(range(1, 22))
    for step in STEPS:
        if step.number is None:
            (row,) = [line for line in lines if step.method in line]
        else:
            row = rows[step.number]
            assert all(method in row for method in step.method.split(", ")), row
            article = row.split(" | ")[2]
            assert [int(number) for number in re.findall(r"\d", article)] == list(step.arrows), row
            assert tuple(re.findall(r"`([\w.]+)`", article)) == step.article, row
        if step.number not in (17, 20):  # a part of the step before, of the same module
            assert set(step.operations) & HOSTS <= set(re.findall(r"`(\w+)`", row)), row


def test_the_pictures_of_the_chapter_are_made_by_the_build() -> None:
    text = (ROOT / "docs/from-nova.md").read_text()
    shown = set(re.findall(r"\{image\} reference/story/(\S+)", text))
    made = story.pictures()
    assert shown == set(made)
    for picture in made.values():
        assert len(list(ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"))) > 10


def test_the_readme_is_short_and_lists_every_chapter() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 130
    reference = {"index.md", "ansible.md"}
    assert not {path.name for path in CHAPTERS} - reference - set(re.findall(r"\(\S+/docs/([\w-]+\.md)\)", text))


def test_every_setting_is_described() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    settings = {f"NOVALITE_{field.name.upper()}" for field in dataclasses.fields(Settings)}
    settings |= {f"NOVALITE_JOBS_{field.name.upper()}" for field in dataclasses.fields(Options)}
    other_names = {"HOME", "LEDGER_URL", "INVENTORY", "PLAYBOOKS", "RECONCILE_SECONDS"}  # without JOBS_
    assert not {name for name in settings if name.removeprefix("NOVALITE_JOBS_") not in other_names} - set(
        re.findall(r"NOVALITE_[A-Z_0-9]+", text)
    )


def test_the_collection_lists_its_content() -> None:
    listed = set(re.findall(r"`(\w+)`", (COLLECTION / "README.md").read_text()))
    modules = {path.stem for path in MODULES.glob("*.py")}
    roles = {path.name for path in (COLLECTION / "roles").iterdir()}
    assert not (modules | roles) - listed


@pytest.mark.parametrize("path", sorted(MODULES.glob("*.py")), ids=lambda path: str(path.stem))
def test_each_module_shows_examples_and_return_values(path: pathlib.Path) -> None:
    text = path.read_text()
    for name in ("EXAMPLES", "RETURN"):
        match = re.search(rf'^{name} = r"""(.*?)"""', text, re.DOTALL | re.MULTILINE)
        assert match and yaml.safe_load(match[1]), name


@pytest.mark.parametrize("module", sorted(MODULES.glob("*.py")), ids=lambda path: path.stem)
def test_no_result_has_a_name_that_means_something_to_ansible(module: pathlib.Path) -> None:
    """`skipped`, a list of ours, made Ansible take a task that changed something for one that was skipped."""
    text = re.search(r'RETURN = r?"""(.*?)"""', module.read_text(), re.DOTALL)
    keys = yaml.safe_load(text[1]) if text else {}
    assert not {"failed", "skipped", "unreachable", "invocation", "exception"} & set(keys or {})
