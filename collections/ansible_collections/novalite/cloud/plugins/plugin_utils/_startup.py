# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A quicker start of the controller's process, which a launch of one instance spends most of its time in."""

from __future__ import annotations

import atexit
import collections.abc as c
import gc
import importlib.abc
import importlib.machinery
import sys
import types
import typing as t

PLUGINS = f"{__package__.rpartition('.')[0]}."
# Ansible makes many objects that live as long as it does; by Python's own numbers they are all gone through again for
# every 700 new ones
THRESHOLDS = (50_000, 20, 50)


class BytecodeFinder(importlib.abc.MetaPathFinder):
    """Finds the collection's own files as Python finds any other file, with the bytecode that it keeps beside them.

    Ansible's loader of collections (ansible/utils/collection_loader/_collection_finder.py, `get_code`) compiles every
    file anew in every run. What this finder does not find is left to it: packages without an `__init__.py` above all.
    """

    def __init__(self) -> None:
        self._finders: dict[str, list[importlib.machinery.FileFinder]] = {}  # by package: each lists its directory once

    def find_spec(
        self, fullname: str, path: c.Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PLUGINS):
            return None
        package = fullname.rpartition(".")[0]
        if package not in self._finders:  # of a package without an `__init__.py`, each look at `path` works it out anew
            loaders = (importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES)
            self._finders[package] = [importlib.machinery.FileFinder(directory, loaders) for directory in path or ()]
        for finder in self._finders[package]:
            spec = finder.find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
        return None


def quicken() -> None:
    """Have this process import the collection's files from bytecode, and collect garbage seldom and not at its end."""
    if any(isinstance(finder, BytecodeFinder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, BytecodeFinder())
    gc.set_threshold(*THRESHOLDS)
    atexit.register(gc.freeze)  # the last collection, before an end that frees everything, has nothing to go through


A = t.TypeVar("A")


class Actions(c.Mapping[str, type[A]]):
    """The actions of steps by their `names`, which `make` imports: in the parent of all workers those of the playbook
    that is at work, once for all of them, and any other one where it is looked for first.

    All of them take half a second of a processor; a playbook has a few.
    """

    _expected: t.ClassVar[c.Collection[str] | None] = None  # None: all of them
    _made_here: t.ClassVar[list[Actions[t.Any]]] = []

    def __init__(self, names: c.Iterable[str], make: c.Callable[[str], type[A]]) -> None:
        self._actions: dict[str, type[A] | None] = dict.fromkeys(names)
        self._make = make
        self._made_here.append(self)
        self._load()

    @classmethod
    def expect(cls, names: c.Collection[str] | None) -> None:
        """Have the actions of a playbook that is about to run imported in this process."""
        cls._expected = names
        for actions in cls._made_here:
            actions._load()

    def _load(self) -> None:
        for name in self:
            if self._expected is None or name in self._expected:
                self[name]

    def __getitem__(self, name: str) -> type[A]:
        action = self._actions[name] or self._make(name)
        self._actions[name] = action
        return action

    def __iter__(self) -> c.Iterator[str]:
        return iter(self._actions)

    def __len__(self) -> int:
        return len(self._actions)
