# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Code that the plug-ins share. Importing it lets Python keep the collection's code compiled.

Ansible's loader of collections compiles every file anew in each process, which costs a launch 0.3 s of CPU. Python's
own keeps what it compiled in `__pycache__` and compares it with the file, as for all other code.
"""

from __future__ import annotations

import collections.abc as c
import functools
import importlib.machinery
import sys
import types

_PLUGINS = __name__.rpartition(".")[0]
_ROOMS = tuple(f"{_PLUGINS}.{folder}." for folder in ("module_utils", "modules", "plugin_utils"))


@functools.cache
def _finder(folder: str) -> importlib.machinery.FileFinder:
    source = importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES
    return importlib.machinery.FileFinder(folder, source)


class _Compiled:
    """Find this collection's files. Folders, and what is not here, are left to Ansible's loader."""

    @staticmethod
    def find_spec(
        name: str, path: c.Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(_ROOMS):
            return None
        specs = (_finder(folder).find_spec(name) for folder in path or ())
        return next((spec for spec in specs if spec is not None and spec.loader is not None), None)


if type(__spec__.loader).__module__.startswith("ansible."):
    sys.meta_path.insert(0, _Compiled)
