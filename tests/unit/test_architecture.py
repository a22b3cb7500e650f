# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The house: who may import whom, and how large a room may be."""

from __future__ import annotations

import ast
import collections
import pathlib
import subprocess
import typing as t

import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]
PLUGINS = REPOSITORY / "collections/ansible_collections/novalite/cloud/plugins"
UTILS = PLUGINS / "module_utils"
PACKAGE = "ansible_collections.novalite.cloud.plugins.module_utils"

# Rooms of module_utils, from the ground up. A room imports from those above it in this list only. The loose files are
# the ground: errors, commands, locks, libvirt's socket.
FLOORS = (
    "_addressing", "_scheduling", "_stack",
    # hands, which touch a host, and what they decide on
    "_disk", "_guest", "_transfer", "_domain", "_network", "_firewall", "_plan", "_ssh", "_graph", "_drift",
    "_rules",
    # SQL
    "_ledger.db", "_ledger.queries", "_ledger.identity", "_ledger.catalog", "_ledger.placement", "_ledger.security",
    "_ledger.network", "_ledger.volumes", "_ledger.compute", "_ledger.migration", "_ledger.ec2", "_ledger.adoption",
    "_ledger.drift", "_ledger.stack",
)  # fmt: skip

# Folders that hold more, and may not grow: each is to become two.
MOST_FILES = 25
LARGER = {
    "api/compute": 36,
    "api/ec2": 29,
    "collections/ansible_collections/novalite/cloud/plugins/module_utils/_disk": 26,
    # a file for each: filters plug in by being there, and Ansible finds modules and their actions here only
    "collections/ansible_collections/novalite/cloud/plugins/module_utils/_scheduling/filters": 40,
    "collections/ansible_collections/novalite/cloud/plugins/modules": 80,
    "collections/ansible_collections/novalite/cloud/plugins/action": 60,
}


def room_of(parts: t.Sequence[str]) -> str:
    """The room that `parts`, a dotted name below module_utils, is in; "" for what lies loose on the ground."""
    if parts and parts[0] == "_ledger":
        return ".".join(parts[:2])
    return parts[0] if parts and (UTILS / parts[0]).is_dir() else ""


def imports(path: pathlib.Path) -> t.Iterator[list[str]]:
    """What the file at `path` below module_utils imports from there at run time, as parts of dotted names."""
    here = list(path.relative_to(UTILS).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        parts = here[: -node.level] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            yield [*parts, alias.name]


def test_every_room_has_its_floor() -> None:
    rooms = {room_of(path.relative_to(UTILS).with_suffix("").parts) for path in UTILS.rglob("*.py")} - {""}
    assert {room for room in rooms if not room.startswith("_ledger.db.migrations")} == set(FLOORS)


def test_arrows_point_one_way() -> None:
    floor = {room: number for number, room in enumerate(FLOORS)}
    upwards = [
        f"{path.relative_to(UTILS)} imports {'.'.join(parts)}"
        for path in sorted(UTILS.rglob("*.py"))
        for parts in imports(path)
        if (target := room_of(parts)) in floor
        and floor[target] > floor.get(room_of(path.relative_to(UTILS).with_suffix("").parts), -1)
        and path.parent != UTILS  # the doors of modules lie loose, too: they import from everywhere
    ]
    assert not upwards


def test_only_the_ledger_knows_sql() -> None:
    strangers = [
        str(path.relative_to(PLUGINS))
        for path in sorted(PLUGINS.rglob("*.py"))
        if "_ledger" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "sqlalchemy" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sqlalchemy")
    ]
    assert not strangers


@pytest.mark.parametrize("folder", ["api", "collections"])
def test_no_folder_outgrows_its_name(folder: str) -> None:
    listed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files", f"{folder}/*.py"], check=True, capture_output=True, text=True
    ).stdout.split()
    sizes = collections.Counter(str(pathlib.PurePath(name).parent) for name in listed)
    crowded = {name: size for name, size in sizes.items() if size > LARGER.get(name, MOST_FILES)}
    assert not {name: size for name, size in crowded.items() if not name.endswith("migrations/versions")}
