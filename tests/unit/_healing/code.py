# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The code under test as modules, and copies of it with something changed."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import sys
import types
import typing as t

PACKAGE = "ansible_collections.novalite.cloud.plugins.module_utils._healing"
NAMES = ("states", "nouns", "actions", "evidence", "recovery", "decide")  # each imports from those before it


class Code(t.NamedTuple):
    """The room's modules."""

    states: t.Any
    nouns: t.Any
    actions: t.Any
    evidence: t.Any
    recovery: t.Any
    decide: t.Any


class Fault(t.NamedTuple):
    """Change that makes the code wrong: `old`, which stands once in the file of module `name`, becomes `new`."""

    says: str
    name: str
    old: str
    new: str


REAL = Code(*(importlib.import_module(f"{PACKAGE}.{name}") for name in NAMES))


def with_fault(fault: Fault) -> Code:
    """Load the room anew with a fault in it."""
    package = f"faulty_healing_{abs(hash(fault))}"
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = []
    modules = []
    for name in NAMES:
        path = pathlib.Path(str(getattr(REAL, name).__file__))
        text = path.read_text()
        if name == fault.name:
            assert text.count(fault.old) == 1, (
                f"{fault.says}: {fault.old!r} stands {text.count(fault.old)} times in {path}"
            )
            text = text.replace(fault.old, fault.new)
        module = types.ModuleType(f"{package}.{name}")
        sys.modules[module.__name__] = module
        module.__package__, module.__file__ = package, str(path)
        setattr(sys.modules[package], name, module)
        exec(compile(text, str(path), "exec"), module.__dict__)
        modules.append(module)
    return Code(*modules)
