# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of playbooks: where they may come from, and the check of those that a person gave with `-e`.

Decided from plugin_utils/_playbooks.py alone.
"""

from __future__ import annotations

import collections.abc as c
import difflib
import fnmatch
import math

from ansible.module_utils.common.validation import check_type_bool, check_type_dict, check_type_float, check_type_int

from ..module_utils._errors import NovaliteError
from ..module_utils._json import Json, JsonMapping, JsonObject
from ..module_utils._model.yaml_types import complaint
from ._playbooks import JOBS, PLAYBOOKS, WORDS, Playbook
from ._settings import INVENTORY, Variable
from ._texts import as_list

OPTIONS = "novalite_options"  # the variable by which playbooks read their options
NAMESPACES = ("novalite_", "compute_node_", "controller_", "interfaces_", "move_", "power_", "reclaim_", "spawn_")
CLOSE = 0.6  # difflib's own measure of "close"
# What a playbook of somebody else's was told may be meant for itself: `hosts` there is no misspelt `host`
CLOSER = 0.8

CONVERTERS: dict[str, tuple[c.Callable[[Json], Json], str]] = {
    "bool": (check_type_bool, "true or false"),
    "int": (check_type_int, "a whole number"),
    "float": (check_type_float, "a number"),
    "dict": (check_type_dict, "a mapping: say it as JSON, or in a file with -e @file.yml"),
}


def meant(name: str, extra: JsonMapping, entries: c.Collection[str], foreign: bool, own: c.Iterable[str]) -> JsonObject:
    """Return what of `extra` is to be replaced: values in their types, under the names that playbook `name` reads.

    `extra` are the extra variables as Ansible read them. `entries` are those of our playbooks that the command names,
    `foreign` says that it names others', too: these may have variables of their own. `own` are patterns of names that
    the operator uses for other things. Raises NovaliteError, which says all that is wrong.
    """
    problems = _unknown(name, extra, entries, foreign, own)
    values: JsonObject = {}
    for canonical, variable in {**INVENTORY, **PLAYBOOKS[name].variables}.items():
        words = [word for word in (canonical, *variable.aliases) if word in extra]
        if len(words) > 1:
            problems.append(f"{' and '.join(words)} mean the same: leave out {words[1]}")
        elif words:
            try:
                values[canonical] = _converted(words[0], extra[words[0]], variable)
            except NovaliteError as error:
                problems.append(str(error))
    if problems:
        raise NovaliteError(f"{name}.yml: " + "; ".join(problems))
    return values


def options(name: str, play: JsonMapping, extra: JsonMapping) -> JsonObject:
    """Return what playbook `name` is asked, of the variables of a play, without any host's, and the extra variables;
    values in their types, as far as the playbook knows them. Raises NovaliteError.

    The inventory has no part in it: `servers` there may be the operator's time servers, `host` anything at all.
    """
    variables, known = {**play, **extra}, PLAYBOOKS[name].variables
    return {
        word: _converted(word, variables[word], known[word]) if word in known else variables[word]
        for word in WORDS
        if word in variables
    }


def complete(name: str, chosen: JsonMapping, extra: c.Container[str], ignored: c.Collection[str]) -> None:
    """Raises NovaliteError when the options `chosen` do not tell playbook `name` what it is about, or do so twice.

    `extra` are those that the command line says; `ignored` the variables of the inventory that have the name of one.
    """
    book = PLAYBOOKS[name]

    def place(word: str) -> str:
        return f"{word} (from {'-e' if word in extra else f'the playbook that imports {name}.yml'})"

    for word, others in book.instead.items():
        doubled = [place(other) for other in others if other in chosen] if word in chosen else []
        if doubled:
            raise NovaliteError(f"{name}.yml: {place(word)} takes the place of {', '.join(doubled)}: leave out either")
    for words in book.needs:
        # `servers:` in a file, and `-e host=$HOST` without such a variable, would end well with nothing done
        empty = [word for word in words if word in chosen and chosen[word] in (None, "")]
        if not any(word in chosen and word not in empty for word in words):
            more = f" (or {', '.join(words[1:])})" if words[1:] else ""
            unheard = [word for word in words if word in ignored]
            raise NovaliteError(
                f"{name}.yml: say -e {words[0]}=...{more}: {book.variables[words[0]].help}"
                + (f". {' and '.join(map(place, empty))}: nothing is in it" if empty else "")
                + (f". The inventory's {', '.join(unheard)} is not an option of it" if unheard else "")
            )


def ignored(name: str, inventory: c.Container[str], chosen: c.Container[str], own: c.Collection[str]) -> list[str]:
    """Return the variables of the `inventory` that are named like options of playbook `name`, and are none.

    Left out are those that are `chosen` elsewhere, and those that the operator calls `own`.
    """
    unheard = (word for word in PLAYBOOKS[name].variables if word in inventory and word not in chosen)
    return [word for word in unheard if not _matches(word, own)]


def misspelt(names: c.Iterable[str], own: c.Iterable[str], host: str | None = None) -> None:
    """Raises NovaliteError for inventory variables, of `host` or of the controller, that are nearly ours."""
    for name in names:
        if name.startswith(NAMESPACES) and name not in INVENTORY and not _matches(name, own):
            near = difflib.get_close_matches(name, INVENTORY, 1, 0.9)
            if near:
                raise NovaliteError(
                    f"the inventory's variable {name}{f' of {host}' if host else ''} is not one of novalite's: "
                    f"did you mean {near[0]}? If not, name it in novalite_extra_variables"
                )


def _unknown(
    name: str, extra: c.Iterable[str], entries: c.Collection[str], foreign: bool, own: c.Iterable[str]
) -> list[str]:
    books: dict[str, Playbook] = {entry: PLAYBOOKS[entry] for entry in (*entries, name)}
    words = {word for book in books.values() for word in _words(book)}
    known = words | set(INVENTORY) | JOBS
    refused = {word: why for book in books.values() for word, why in book.refused.items()}
    problems = []
    for word in extra:
        if word in refused:
            problems.append(f"{word}: {refused[word]}")
            continue
        if word in known or word.startswith("ansible_") or _matches(word, own):
            continue
        # an old word is no advice
        advised = [canonical for book in books.values() for canonical in book.variables]
        near = difflib.get_close_matches(word, [*advised, *INVENTORY], 1, CLOSER if foreign else CLOSE)
        if near:
            problems.append(f"there is no variable '{word}': did you mean '{near[0]}'?")
        elif not foreign:
            problems.append(
                f"there is no variable '{word}'. It knows {', '.join(sorted(advised)) or 'none'}. "
                "Name a variable of your own in novalite_extra_variables, in the inventory or with -e"
            )
    return problems


def _words(book: Playbook) -> list[str]:
    return [word for name, variable in book.variables.items() for word in (name, *variable.aliases)]


def _matches(word: str, patterns: c.Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(word, pattern) for pattern in patterns)


def _converted(word: str, value: Json, variable: Variable) -> Json:
    """`value` in the variable's type. A template is left to Ansible: what it stands for is known to hosts alone."""
    if variable.kind == "raw" or value is None or (isinstance(value, str) and ("{{" in value or "{%" in value)):
        return value
    shown = word if variable.secret else f"{word}={value!r}"
    if variable.kind == "list":
        return _list(shown, word, value, variable)
    if variable.kind == "str":
        if not isinstance(value, str):
            raise NovaliteError(f"{complaint(word, value, variable.secret)}: {variable.help}")
        if variable.choices and value not in variable.choices:
            raise NovaliteError(f"{shown} is none of {', '.join(variable.choices)}: {variable.help}")
        return value
    convert, description = CONVERTERS[variable.kind]
    try:
        if isinstance(value, bool) and variable.kind != "bool":
            raise TypeError
        converted = convert(value)
        if isinstance(converted, float) and not math.isfinite(converted):
            raise ValueError
        return converted
    except (TypeError, ValueError, OverflowError) as error:
        raise NovaliteError(f"{shown} is not {description}: {variable.help}") from error


def _list(shown: str, word: str, value: Json, variable: Variable) -> list[Json]:
    remedy = f"-e {word}=a,b" if variable.commas else f"-e @file.yml with {word}: [...] in it"
    if isinstance(value, str) and not variable.commas and not value.lstrip().startswith("["):
        raise NovaliteError(f"{shown} is not a list: say {remedy}")
    try:
        return as_list(value)
    except ValueError:
        raise NovaliteError(f"{shown} is not a list: say {remedy}") from None
