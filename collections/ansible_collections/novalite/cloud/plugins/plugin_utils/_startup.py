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

PLUGINS = f"{__package__.rpartition('.')[0]}."
# Ansible makes many objects that live as long as it does; by Python's own numbers they are all gone through again for
# every 700 new ones
THRESHOLDS = (50_000, 20, 50)


class BytecodeFinder(importlib.abc.MetaPathFinder):
    """Finds the collection's own files as Python finds any other file, with the bytecode that it keeps beside them.

    Ansible's loader of collections (ansible/utils/collection_loader/_collection_finder.py, `get_code`) compiles every
    file anew in every run. What this finder does not find is left to it: packages without an `__init__.py` above all.
    """

    def find_spec(
        self, fullname: str, path: c.Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PLUGINS):
            return None
        loaders = (importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES)
        for directory in path or ():
            spec = importlib.machinery.FileFinder(directory, loaders).find_spec(fullname)
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
