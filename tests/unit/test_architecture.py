# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The house: who may import whom, and how large a room may be."""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]
PLUGINS = REPOSITORY / "collections/ansible_collections/novalite/cloud/plugins"
UTILS = PLUGINS / "module_utils"
API = REPOSITORY / "api"
PACKAGE = "ansible_collections.novalite.cloud.plugins.module_utils"

# Rooms of module_utils, from the ground up. A room imports from those above it in this list only. The loose files are
# the ground: errors, commands, locks, libvirt's socket.
FLOORS = (
    "_model",
    "_addressing",
    "_host",
    "_scheduling",
    "_healing",
    "_stack",
    # hands, which touch a host, and what they decide on
    "_disk",
    "_guest",
    "_snapshots",
    "_transfer",
    "_domain",
    "_backup",
    "_replica",
    "_network",
    "_firewall",
    "_plan",
    "_ssh",
    "_graph",
    "_drift",
    "_screen",
    "_samples",
    "_steps",
    "_rules",
    "_image_import",
    "_image_catalog",
    "_fencing",
    # SQL
    "_ledger.db",
    "_ledger.queries",
    "_ledger.instances",
    "_ledger.identity",
    "_ledger.catalog",
    "_ledger.placement",
    "_ledger.security",
    "_ledger.network",
    "_ledger.volumes",
    "_ledger.compute",
    "_ledger.migration",
    "_ledger.healing",
    "_ledger.jobs",
    "_ledger.ec2",
    "_ledger.adoption",
    "_ledger.drift",
    "_ledger.stack",
    "_ledger.operations",
    "_ledger.operations.catalog",
    "_ledger.operations.identity",
    "_ledger.operations.network",
    "_ledger.tasks",
    "_ledger.steps",
)

# Folders that hold more, and may not grow: each is to become two.
MOST_FILES = 25
LARGER = {
    # a file for each: Ansible finds modules and their actions here only
    "collections/ansible_collections/novalite/cloud/plugins/modules": 80,
    "collections/ansible_collections/novalite/cloud/plugins/action": 80,
    # likewise: module `ledger_step` finds its steps by the names of these files
    "collections/ansible_collections/novalite/cloud/plugins/module_utils/_ledger/steps": 40,
    # likewise: module `host_step` is documented to have its steps here
    "collections/ansible_collections/novalite/cloud/plugins/module_utils/_steps": 40,
}

# The name of a thing says what it holds, and these words do not
SAYS_NOTHING = {"one", "ones", "found", "wanted", "given", "told"}


def room_of(parts: t.Sequence[str]) -> str:
    """The room that `parts`, a dotted name below module_utils, is in; "" for what lies loose on the ground."""
    if parts and parts[0] == "_ledger":
        within = ".".join(parts[:3])
        return within if within in FLOORS else ".".join(parts[:2])
    return parts[0] if parts and (UTILS / parts[0]).is_dir() else ""


def imports(path: pathlib.Path) -> t.Iterator[list[str]]:
    """List what the file at `path` below module_utils imports from there at run time, as parts of dotted names."""
    here = list(path.relative_to(UTILS).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        parts = here[: -node.level] + (node.module.split(".") if node.module else [])
        for alias in node.names:
            yield [*parts, alias.name]


@functools.cache
def absolute_imports(path: pathlib.Path) -> list[str]:
    """List what the file at `path` imports by its full name, for type checkers too, as dotted names."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


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


def test_every_controller_module_has_its_operation() -> None:
    actions = {path.stem for path in (PLUGINS / "action").glob("*.py") if "_action import" in path.read_text()}
    actions |= set(re.findall(r"(?m)^    module = (\w+)$", (PLUGINS / "plugin_utils/_host_scan_action.py").read_text()))
    files = sorted([*(UTILS / "_ledger/tasks").glob("*.py"), *(UTILS / "_ledger/steps").glob("*.py")])
    records = set(re.findall(r"(?m)^(\w+) = _operation\(", (UTILS / "_ledger/tasks/records.py").read_text()))
    actions |= {path.stem for path in files if "\nARGUMENT_SPEC" in path.read_text()}
    operations = {
        node.name
        for path in files
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == path.stem
    }
    assert operations | records == {path.stem for path in files} - {"records"} | records == actions


def test_the_api_works_below_the_modules() -> None:
    above = [
        str(path.relative_to(REPOSITORY))
        for path in sorted((REPOSITORY / "api").rglob("*.py"))
        if re.search(r"_ledger\.(tasks|steps)", path.read_text())
    ]
    assert above == [
        "api/v1/routes_plan.py",
        "api/work/launch_plans.py",
    ]  # what a launch would do is what its modules would do


# Rooms of what is done, by subject: each operation looks up its policy entry and its rule of states, and knows which
# hosts have to learn of it. Doors ask operations for what is written, and queries for what is read
SUBJECTS = frozenset(FLOORS[FLOORS.index("_ledger.queries") + 1 : FLOORS.index("_ledger.operations")])
# The worker is no door: its trade is the rows of jobs, and the log of what is done to instances. Beside them it
TRADE = ("jobs.", "instances.")
WORKER_USES = {
    # keeps watch
    "api/jobs/chores.py": {"healing.rounds.RECOVER", "healing.watch_lock.VARIABLE", "healing.watch_lock.WatchLock"},
    "api/jobs/events.py": {"compute.server_states.spawning"},  # says that a host builds a server now
    "api/jobs/housekeeping.py": {"catalog.image_states"},  # ends uploads that died with their process
}


def test_no_door_imports_the_room_of_a_subject() -> None:
    used = collections.defaultdict(set)
    for path in sorted(API.rglob("*.py")):
        for name in absolute_imports(path):
            parts = name.removeprefix(f"{PACKAGE}.").split(".")
            if name.startswith(f"{PACKAGE}.") and room_of(parts) in SUBJECTS:
                used[str(path.relative_to(REPOSITORY))].add(".".join(parts[1:]))
    assert not [path for path in used if not path.startswith("api/jobs/")]
    beside = {path: {name for name in names if not name.startswith(TRADE)} for path, names in used.items()}
    assert {path: names for path, names in beside.items() if names} == WORKER_USES
    doors = [path for path in API.rglob("*.py") if path.relative_to(API).parts[0] != "jobs"]
    assert not [path for path in doors for name in absolute_imports(path) if "_ledger.operations.hosts" in name]


WRITING = ("sa.insert", "sa.update", "sa.delete")
# What reads rows for those who are about to change them, and keeps others off meanwhile
LOCKING = {
    "compute.instance_rows.instance_rows",
    "lookups.lock_project",
    "lookups.lock_rows",
    "lookups.project_by_name",
    "placement.groups.lock_groups",
    "placement.host_states.host_states",
}


def written(path: pathlib.Path) -> t.Iterator[tuple[str, str]]:
    """List what the file at `path` writes or locks: the function that does so, or "", and how."""
    for node in ast.parse(path.read_text()).body:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and (part.attr == "with_for_update" or ast.unparse(part) in WRITING):
                yield getattr(node, "name", ""), ast.unparse(part)


def test_queries_only_read() -> None:
    room, locking = UTILS / "_ledger/queries", set()
    for path in sorted(room.rglob("*.py")):
        for function, how in written(path):
            assert how not in WRITING, f"{path.relative_to(UTILS)}: {function} writes"
            locking.add(".".join((*path.relative_to(room).with_suffix("").parts, function)))
    assert locking == LOCKING
    assert set(WRITING) <= {how for path in UTILS.rglob("*.py") for _function, how in written(path)}  # it can fail


# Where the API still asks for a role, and not for an operation of the policy
ASKS_FOR_A_ROLE = {
    "api/web/context.py",  # defines it, and whose objects the caller may name
    "api/openstack/compute/routes_keypairs.py",
}


def test_the_policy_says_who_may() -> None:
    asking = {
        str(path.relative_to(REPOSITORY))
        for path in sorted((REPOSITORY / "api").rglob("*.py"))
        if re.search(r"\bis_admin\b", path.read_text())
    }
    assert asking <= ASKS_FOR_A_ROLE


# Services of the API: what several share is in api/web and api/work. Each may import the other services' modules, but
# not their routes
def service_of(parts: t.Sequence[str]) -> tuple[str, ...]:
    return tuple(parts[:2]) if parts[0] == "openstack" else tuple(parts[:1])


def api_imports(path: pathlib.Path) -> t.Iterator[list[str]]:
    """List what the file at `path` below the API imports from there, as parts of dotted names."""
    here = list(path.relative_to(API).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = here[: -node.level] + (node.module.split(".") if node.module else [])
            yield from ([*parts, alias.name] for alias in node.names)


def test_no_service_imports_the_routes_of_another() -> None:
    arrows = {
        f"{'/'.join(here)} imports {'.'.join(parts)}"
        for path in sorted(API.rglob("*.py"))
        if (here := path.relative_to(API).parts)
        for parts in api_imports(path)
        if service_of(parts) != service_of(here)
        and any(part.startswith("routes") or part == "legacy" for part in parts)
        and "legacy" not in here  # Compute's proxies of the other services
    }
    assert not arrows


def test_doors_beside_openstacks_do_not_import_it() -> None:
    arrows = {
        f"{'/'.join(here)} imports {'.'.join(parts[:3])}"
        for path in sorted(API.rglob("*.py"))
        if (here := path.relative_to(API).parts)[0]
        in ("ec2", "v1", "dashboard", "metadata", "jobs", "notices", "cli", "web", "work")
        for parts in api_imports(path)
        if parts[:1] == ["openstack"]
    }
    assert arrows == {
        "dashboard/routes_launch.py imports openstack.compute.servers",  # a launch, in the Compute API's words
        "dashboard/routes_session.py imports openstack.identity.authenticate",  # who logs in, gets a token
    }


def test_only_the_ledger_knows_sql() -> None:
    """Neither SQLAlchemy nor the tables are imported elsewhere, by plugins or by the API, which is an edge."""
    files = [path for path in sorted(PLUGINS.rglob("*.py")) if "_ledger" not in path.parts]
    strangers = [
        f"{path.relative_to(REPOSITORY)} imports {name}"
        for path in (*files, *sorted((REPOSITORY / "api").rglob("*.py")))
        for name in absolute_imports(path)
        if name.split(".")[0] == "sqlalchemy" or name.startswith(f"{PACKAGE}._ledger.db.tables")
    ]
    assert not strangers


def test_modules_ship_nothing_but_pythons_own_and_libvirt() -> None:
    """AnsiballZ sends a module with all that it imports, and hosts have neither netaddr nor SQLAlchemy."""
    there = {*sys.stdlib_module_names, "ansible", "ansible_collections", "libvirt", "libvirt_qemu"}
    there |= {"nbd", "pytsk3"}  # for backups: Debian's python3-libnbd and python3-tsk
    todo, shipped, foreign = list((PLUGINS / "modules").glob("*.py")), set(), set()
    while todo:
        path = todo.pop()
        if path in shipped or not path.is_file() or "_ledger" in path.parts:  # the doors open it
            continue
        shipped.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                foreign |= {(path.name, alias.name) for alias in node.names if alias.name.split(".")[0] not in there}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                foreign |= {(path.name, str(node.module))} if str(node.module).split(".")[0] not in there else set()
            elif isinstance(node, ast.ImportFrom):
                base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                todo += [base.with_suffix(".py"), *(base / f"{alias.name}.py" for alias in node.names)]
    assert len(shipped) > 100 and not foreign


@pytest.mark.parametrize("folder", ["api", "collections"])
def test_no_folder_outgrows_its_name(folder: str) -> None:
    listed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files", f"{folder}/*.py"], check=True, capture_output=True, text=True
    ).stdout.split()
    sizes = collections.Counter(str(pathlib.PurePath(name).parent) for name in listed)
    crowded = {name: size for name, size in sizes.items() if size > LARGER.get(name, MOST_FILES)}
    assert not {name: size for name, size in crowded.items() if not name.endswith("migrations/versions")}


def bound_names(tree: ast.AST) -> t.Iterator[tuple[int, str]]:
    """List what the module `tree` gives a name to, with its line: variables, parameters, functions; no fields."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {line.target for node in classes for line in node.body if isinstance(line, ast.AnnAssign)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name


def test_names_say_what_they_hold() -> None:
    listed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files", "*.py"], check=True, capture_output=True, text=True
    ).stdout.split()
    texts = {name: (REPOSITORY / name).read_text() for name in listed}
    nameless = [
        f"{path}:{line} {name}"
        for path, text in texts.items()
        if re.search(rf"\b({'|'.join(SAYS_NOTHING)})\b", text)
        for line, name in bound_names(ast.parse(text))
        if name in SAYS_NOTHING
    ]
    assert not nameless


DOCUMENTED = (REPOSITORY / "api", PLUGINS, REPOSITORY / "tools")
# A stranger cannot tell from these what a thing is or does: a docstring begins with a verb, or with a noun
NEITHER_VERB_NOR_NOUN = re.compile(
    r"(?:Who|What|Whether|Which|How|Where|When|Why|If|That|Those|These|This|As|Is|It|They|Its|For|Of|In|From|To|By|With"
    r"|At|On|All|Every|Each|Not|No|One|And|Or|But|So|Only|Also|Here|There|Into|After|Before|Both|Any)\b"
)


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    paths = sorted(path for folder in DOCUMENTED for path in folder.rglob("*.py"))
    assert len(paths) > 500  # or the folders have moved, and nothing is looked at
    vague = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node) or ""
                if NEITHER_VERB_NOR_NOUN.match(text):
                    vague.append(f"{path.relative_to(REPOSITORY)}: {text.splitlines()[0]}")
    assert not vague, "\n".join(vague)
