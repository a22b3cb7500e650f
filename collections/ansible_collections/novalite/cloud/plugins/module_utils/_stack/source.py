# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading a stack's document from its file, and finding the line of what is wrong with it.

PyYAML keeps the last of two equal keys and forgets where anything stood; here the first is an error, and the place of
everything can be asked for afterwards (it costs a second reading, which only an error has to pay).
"""

from __future__ import annotations

import os
import typing as t

import yaml

from .._errors import NovaliteError

Loader: t.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

LARGEST = 4 * 1024**2  # bytes
MAX_NODES = 500_000  # aliases of aliases multiply
MAX_DEPTH = 40
WRAPPER = "stack"  # the variable under which a document may stand, so that `-e @cloud.yml` can hand it over

Where = tuple[t.Union[str, int], ...]


def read(path: str) -> t.Any:
    """The content of the YAML file at `path`, of at most one document. Raises NovaliteError with line and column."""
    shown = _short(path)
    try:
        loader = Loader(_text(path, shown))
        try:
            root = loader.get_single_node()
            if root is None:
                raise NovaliteError(f"{shown}: the file is empty: describe a stack in it")
            for _where, _key, _value in _walk(root, shown):
                pass
            return loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{shown}:{mark.line + 1}:{mark.column + 1}" if mark else shown
        raise NovaliteError(f"{place}: this is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise NovaliteError(f"{shown}: this is not YAML: {str(error).splitlines()[0]}") from None


def unwrapped(data: t.Any) -> t.Any:
    """The document itself, whether or not it stands under the key `stack`."""
    return data[WRAPPER] if isinstance(data, dict) and set(data) == {WRAPPER} else data


def place(path: str | None, where: Where, key: bool = False) -> str:
    """`file:line:column: ` of `where` in the document, or of the nearest thing around it; empty if nobody knows. `key`
    asks for the place of a mapping's key, not of its value."""
    if path is None:
        return ""
    shown = _short(path)
    try:
        loader = Loader(_text(path, shown))
        try:
            root = loader.get_single_node()
            places = {at: (of_key, of_value) for at, of_key, of_value in _walk(root, shown)}
        finally:
            loader.dispose()
    except (NovaliteError, yaml.YAMLError):
        return f"{shown}: "
    # a file of variables may hold others beside the document, which then stands under its name
    full = (WRAPPER, *where) if (WRAPPER,) in places else where
    for length in range(len(full), -1, -1):
        if full[:length] in places:
            of_key, of_value = places[full[:length]]
            line, column = of_key if (key or length < len(full)) and of_key is not None else of_value
            return f"{shown}:{line}:{column}: "
    return f"{shown}: "


def _short(path: str) -> str:
    """`path` as people would write it from here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _text(path: str, shown: str) -> str:
    try:
        with open(path, "rb") as handle:
            raw = handle.read(LARGEST + 1)
    except OSError as error:
        raise NovaliteError(f"{shown}: the document cannot be read: {error.strerror}") from None
    if len(raw) > LARGEST:
        raise NovaliteError(f"{shown}: the document has more than {LARGEST} bytes: split it")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise NovaliteError(f"{shown}: the document is not UTF-8: byte {error.start} cannot be read") from None


def _walk(root: t.Any, shown: str) -> t.Iterator[tuple[Where, tuple[int, int] | None, tuple[int, int]]]:
    """(where, place of its key, place of its value) of every node. Raises NovaliteError for a key that stands twice."""
    pending: list[tuple[Where, tuple[int, int] | None, t.Any]] = [((), None, root)]
    nodes = 0
    while pending:
        where, of_key, node = pending.pop()
        nodes += 1
        if nodes > MAX_NODES or len(where) > MAX_DEPTH:
            raise NovaliteError(f"{shown}: the document is nested too deeply, or refers to itself")
        yield where, of_key, _mark(node)
        if isinstance(node, yaml.SequenceNode):
            pending.extend(((*where, index), None, child) for index, child in enumerate(node.value))
        elif isinstance(node, yaml.MappingNode):
            seen: dict[str, tuple[int, int]] = {}
            for key, child in node.value:
                name, at = str(key.value), _mark(key)
                if name in seen and name != "<<":
                    raise NovaliteError(
                        f"{shown}:{at[0]}:{at[1]}: {name!r} stands here a second time (first in line {seen[name][0]}): "
                        "keep one of them"
                    )
                seen[name] = at
                pending.append(((*where, name), at, child))


def _mark(node: t.Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
