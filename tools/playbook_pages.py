# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the reference of the playbooks, in Markdown: the comment at each one's top, and its variables."""

from __future__ import annotations

import pathlib
import re
import textwrap
import typing as t

from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS
from ansible_collections.novalite.cloud.plugins.plugin_utils._settings import INVENTORY, Variable

PLAYBOOK_FOLDER = pathlib.Path(__file__).parents[1] / "playbooks"

HEAD = """\
# Playbooks

`ansible-playbook novalite.cloud.NAME` runs the collection's playbook; in a checkout,
`ansible-playbook playbooks/NAME.yml` is the same one. Variables are given with `-e`, and an unknown one ends the run:
[variables](../variables.md).
"""


def heading_comment(name: str) -> str:
    """The comment at the top of the playbook `name`, without its marks."""
    lines = []
    for line in (PLAYBOOK_FOLDER / f"{name}.yml").read_text().splitlines():
        if line == "---":
            continue
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines).strip("\n")


def with_code_blocks(comment: str) -> str:
    """The comment in Markdown: its indented lines become blocks of code."""
    blocks = re.split(r"(?m)((?:^ {2,}.*$\n?)+)", comment)
    for number, block in enumerate(blocks):
        code = number % 2 == 1
        if code:
            block = re.sub(r"playbooks/([a-z_]+)\.yml", r"novalite.cloud.\1", textwrap.dedent(block).rstrip())
            blocks[number] = f"```\n{block}\n```\n"
        else:
            blocks[number] = block.replace("<", "&lt;")
    return "".join(blocks)


def table(variables: t.Mapping[str, Variable]) -> str:
    """A table of variables: name, kind and choices, meaning."""
    rows = ["| variable | type | meaning |", "|---|---|---|"]
    for name, variable in sorted(variables.items()):
        kind = " or ".join(f"`{choice}`" for choice in variable.choices) or variable.kind
        meaning = variable.help.replace("|", "\\|")
        rows.append(f"| `{name}` | {kind} | {meaning} |")
    return "\n".join(rows)


def main() -> None:
    print(HEAD)
    for name, playbook in sorted(PLAYBOOKS.items()):
        print(f"## {name}\n\n{with_code_blocks(heading_comment(name))}\n")
        if playbook.needs:
            needs = "; ".join(" or ".join(f"`{word}`" for word in words) for words in playbook.needs)
            print(f"Required: {needs}.\n")
        if playbook.variables:
            print(f"{table(playbook.variables)}\n")
    print(f"## Variables of the inventory\n\nEvery playbook knows these.\n\n{table(INVENTORY)}")


if __name__ == "__main__":
    main()
