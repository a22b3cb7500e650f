# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""parts.py COLLECTIONS SOURCE PATH... : prints, as tar's arguments in JSON, where the parts of an installation are.

SOURCE is a source tree or an unpacked wheel; when it is empty, the parts are those that this Python finds, and the
collection is that in COLLECTIONS. community.libvirt is in one of the PATHs, or where this Python looks.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys

APPLICATION, CLOUD = "novalite_api", "ansible_collections/novalite/cloud"
LIBVIRT = "ansible_collections/community/libvirt"


def first(what: str, remedy: str, *directories: str) -> list[str]:
    for directory in directories:
        if os.path.isdir(os.path.join(directory, what)):
            return ["--directory", os.path.realpath(directory), what]
    sys.exit(f"there is no {what} in {', '.join(directories) or 'any place'}: {remedy}")


def main(own: str, source: str, *paths: str) -> None:
    spec = None if source else importlib.util.find_spec(APPLICATION)
    installed = [os.path.dirname(path) for path in (spec.submodule_search_locations or [])] if spec else []
    remedy = "name a wheel or a source tree of novalite in controller_source"
    arguments = [
        *first(APPLICATION, remedy, *([source] if source else installed)),
        *first(CLOUD, remedy, *([source, f"{source}/collections"] if source else [own])),
        *first(LIBVIRT, "ansible-galaxy collection install community.libvirt", *paths, *sys.path),
    ]
    print(json.dumps(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
