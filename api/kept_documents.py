# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parsed files of playbooks and roles, kept for all processes that are forked later.

Ansible reads the files of a run anew, tags each text with its line, and copies the result: a third of what a launch
takes before its last task. What is kept is asked for by the text of the file, so a file that was changed is parsed.
"""

from __future__ import annotations

import pathlib
import typing as t

Key = tuple[str, str, bool]  # text, file, whether templates in it are trusted


class KeptDocuments:
    """Memory of Ansible's loader of YAML, which is asked before a file is parsed."""

    def __init__(self) -> None:
        self._parsed: dict[Key, t.Any] = {}

    def install(self) -> None:
        """Have the loaders of this process, and of those that it forks, ask this memory."""
        from ansible.parsing.dataloader import DataLoader
        from ansible.template import is_trusted_as_template, trust_as_template

        parse_anew = DataLoader.load

        def parse_once(
            loader: DataLoader, data: str, file_name: str | None = None, *more: t.Any, **named: t.Any
        ) -> t.Any:
            key = (str(data), str(file_name), bool(is_trusted_as_template(data)))
            if key in self._parsed and not (any(more) or any(named.values())):
                return self._parsed.pop(key)  # to one caller, who may change it
            return parse_anew(loader, data, file_name, *more, **named)

        # Texts cannot be changed: a document's copy needs none of them, nor of their tags
        shared = ("__deepcopy__", lambda text, _memory: text)
        for kind, (name, value) in ((DataLoader, ("load", parse_once)), (type(trust_as_template("")), shared)):
            setattr(kind, name, value)

    def fill(self, collection: pathlib.Path) -> None:
        """Parse the files of all playbooks and roles of a collection, as Ansible reads them."""
        from ansible.errors import AnsibleError
        from ansible.parsing.dataloader import DataLoader
        from ansible.template import trust_as_template

        loader = DataLoader()
        for folder in ("playbooks", "roles"):
            for path in map(str, sorted((collection / folder).rglob("*.yml"))):
                try:
                    text = trust_as_template(loader.get_text_file_contents(path))
                    self._parsed[str(text), path, True] = loader.load(text, path)
                except AnsibleError:
                    continue  # whoever uses it is told
