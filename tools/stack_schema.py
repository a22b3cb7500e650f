# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write what _rules/noun_options.py and server_options.py declare into the JSON Schema of a site's document, which
editors read, too: `python -m tools.stack_schema`."""

from __future__ import annotations

import json

from ansible_collections.novalite.cloud.plugins.module_utils._rules.noun_options import stack_schemas
from ansible_collections.novalite.cloud.plugins.module_utils._stack.document import SCHEMA

WIDTH = 120  # columns


def text(value: object, before: int = 0, depth: int = 0) -> str:
    """`value` as JSON, in one line where it fits behind `before` characters and two spaces for each of `depth`."""
    line = json.dumps(value, ensure_ascii=False)
    if before + 2 * depth + len(line) < WIDTH or not isinstance(value, (dict, list)) or not value:
        return line
    names = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    values = value.values() if isinstance(value, dict) else value
    items = [f"{name}{text(item, len(name), depth + 1)}" for name, item in zip(names, values)]
    indent = "  " * depth
    inner = ",\n".join(f"{indent}  {item}" for item in items)
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{inner}\n{indent}{end}"


if __name__ == "__main__":
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    schema["$defs"].update(stack_schemas())
    SCHEMA.write_text(text(schema) + "\n", encoding="utf-8")
