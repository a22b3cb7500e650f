# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scheduler's plug-ins: filters and weighers.

A **filter** (`filters/<name>.py`) is a module with
    NAME                                as it stands in the options and in explanations
    NOVA                                optional: Nova's class that it does the work of; the options take that, too
    RUN_ONCE_PER_REQUEST                true: what earlier choices of this call claimed cannot change its answer
    LOOKS_AT_OTHER_HOSTS                true: a choice changes its answer for other hosts than the chosen one (affinity)
                                        (both false where they are left out)
    passes(host, request, options)      None, or why the host is refused, worded to follow the host's name
    concerns(request, options)          optional: false when it would refuse no host at all, so it is not asked
    refused(hosts, request, options)    optional: the positions of those that `passes` refuses, at one go; for the few
                                        filters that every request asks about every host
A host that a filter refuses stays refused for the rest of the call: claims only ever take.

A **weigher** (`weighers/<name>.py`) is a module with
    NAME                                its multiplier is the option `<NAME>_weight_multiplier`
    NOVA                                optional, as a filter's
    weigh(hosts, request, options)      a number for each host; more is better while the multiplier is above zero
    MINIMUM                             optional: weights below it count as it, and normalisation begins there
    SIGN                                optional: -1 turns the multiplier around
    MULTIPLIER                          the default multiplier, for a weigher that has no option (the user's)
    concerns(request, options)          optional: false when it has nothing to say

They are plain functions of plain values: no state, no logging, no input or output. One of ours is a file in its folder
here; several that are the same idea share a file, which lists them in PLUGINS (kinds.py). One of the user's is a file
named in `plugin_paths`, or in a directory named there, with the same attributes; it is enabled by being there, and
takes the place of ours when it has the same NAME.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
import pathlib
import pkgutil
import types
import typing as t

from .._errors import NovaliteError
from . import filters, weighers
from .kinds import Filter, Weigher
from .nova_names import resolved
from .options import Options

Plugin = t.TypeVar("Plugin", Filter, Weigher)

# The fields of the kinds that modules call otherwise
_ATTRIBUTES = {
    "name": "NAME",
    "nova": "NOVA",
    "once": "RUN_ONCE_PER_REQUEST",
    "looks_around": "LOOKS_AT_OTHER_HOSTS",
    "minimum": "MINIMUM",
    "sign": "SIGN",
    "multiplier": "MULTIPLIER",
}


def filters_for(options: Options) -> list[Filter]:
    """The enabled filters and the user's, in running order. NovaliteError for a name that none has."""
    return in_running_order(_enabled("filter", options.enabled_filters, FILTERS, _users(Filter, options, "passes")))


def weighers_for(options: Options) -> list[Weigher]:
    """The enabled weighers and the user's, with their multipliers. NovaliteError for a name that none has."""
    enabled = _enabled("weigher", options.enabled_weighers, WEIGHERS, _users(Weigher, options, "weigh"))
    return [_in_force(weigher, options) for weigher in enabled]


def in_running_order(filters: t.Iterable[Filter]) -> list[Filter]:
    """Sort filters so that those that run once come first: they leave fewer hosts to ask again and again.

    The order does not change what passes; it only decides which of several refusals an explanation names.
    """
    return sorted(filters, key=lambda filter_: not filter_.once)


def _read(kind: type[Plugin], module: types.ModuleType) -> Plugin:
    """The plug-in that a module is, by those attributes that it has."""
    names = {field.name: _ATTRIBUTES.get(field.name, field.name) for field in dataclasses.fields(kind)}
    return kind(**{field: getattr(module, name) for field, name in names.items() if hasattr(module, name)})


def _ours(kind: type[Plugin], folder: types.ModuleType) -> list[Plugin]:
    """The plug-ins that lie in the package `folder`: each file there is one, or lists some."""
    files = pkgutil.iter_modules(folder.__path__)
    modules = [importlib.import_module(f"{folder.__name__}.{file.name}") for file in files]
    return [plugin for module in modules for plugin in getattr(module, "PLUGINS", None) or [_read(kind, module)]]


FILTERS, WEIGHERS = _ours(Filter, filters), _ours(Weigher, weighers)


def _in_force(weigher: Weigher, options: Options) -> Weigher:
    multiplier = getattr(options, weigher.option, None)
    if multiplier is None:
        multiplier = options.weight_multipliers.get(weigher.name, weigher.multiplier)
    return dataclasses.replace(weigher, multiplier=weigher.sign * multiplier)


def _enabled(kind: str, names: t.Iterable[str], ours: t.Iterable[Plugin], users: t.Sequence[Plugin]) -> list[Plugin]:
    available: dict[str, Plugin] = {plugin.name: plugin for plugin in itertools.chain(ours, users)}
    classes: dict[str, str] = {plugin.nova: plugin.name for plugin in itertools.chain(ours, users) if plugin.nova}
    chosen = [*resolved(kind, names, available, classes), *(plugin.name for plugin in users)]
    return [available[name] for name in dict.fromkeys(chosen)]


def _users(kind: type[Plugin], options: Options, function: str) -> list[Plugin]:
    return [_read(kind, module) for module in _loaded(tuple(options.plugin_paths)) if hasattr(module, function)]


@functools.lru_cache(maxsize=16)
def _loaded(paths: tuple[str, ...]) -> tuple[types.ModuleType, ...]:
    """The user's files, each read once a process."""
    files: list[pathlib.Path] = []
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            files += sorted(file for file in path.glob("*.py") if not file.name.startswith("_"))
        elif path.is_file():
            files.append(path)
        else:
            raise NovaliteError(f"the scheduler's plug-in path {str(path)!r} does not exist: take it out or create it")
    return tuple(_load(file) for file in files)


def _load(file: pathlib.Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"novalite_scheduling_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise NovaliteError(f"the scheduler's plug-in {str(file)!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a file of the user's may raise
        raise NovaliteError(f"the scheduler's plug-in {str(file)!r} cannot be loaded: {error!r}") from error
    does = hasattr(module, "passes") or hasattr(module, "weigh")
    if not does or not isinstance(getattr(module, "NAME", None), str):
        raise NovaliteError(f"the scheduler's plug-in {str(file)!r} needs NAME and passes(...) or weigh(...)")
    return module
