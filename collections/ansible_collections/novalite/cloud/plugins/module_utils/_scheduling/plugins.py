# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scheduler's plug-ins: filters, weighers and choices, each a file of its own.

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

A **choice** (`choices/<name>.py`) has NAME, USES_WEIGHERS, scores(candidates, rng) and
    details(candidates, position, score), which tells what a score was made of.

They are plain functions of plain values: no state, no logging, no input or output. One of ours is a file in its folder
here. One of the user's is a file named in `plugin_paths`, or in a directory named there, with the same attributes; it
is enabled by being there, and takes the place of ours when it has the same NAME.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import pathlib
import pkgutil
import types
import typing as t

from .._errors import NovaliteError
from . import filters, weighers
from .choices import chance, filter_scheduler, simple, zone
from .nova_names import resolved
from .options import Options
from .rows import HostState, Request

if t.TYPE_CHECKING:
    import random

    from .best import Score
    from .candidates import Candidates

_CHOICES = (simple, chance, zone, filter_scheduler)


def _always(request: Request, options: Options) -> bool:
    return True


@dataclasses.dataclass(frozen=True)
class Filter:
    """One filter, read out of its module once, so that loops touch no module attributes."""

    name: str
    passes: t.Callable[[HostState, Request, Options], t.Optional[str]]
    once: bool = False
    looks_around: bool = False
    concerns: t.Callable[[Request, Options], bool] = _always
    refused: t.Callable[[t.Sequence[HostState], Request, Options], list[int]] | None = None
    nova: str | None = None


@dataclasses.dataclass(frozen=True)
class Weigher:
    """One weigher with the multiplier in force; `sign` is in the multiplier already."""

    name: str
    weigh: t.Callable[[t.Sequence[HostState], Request, Options], list[float]]
    multiplier: float = 1.0
    minimum: float | None = None
    sign: int = 1
    concerns: t.Callable[[Request, Options], bool] = _always
    nova: str | None = None

    @property
    def option(self) -> str:
        """The name of the multiplier in the options and in the metadata of aggregates."""
        return f"{self.name}_weight_multiplier"


Plugin = t.TypeVar("Plugin", Filter, Weigher)


class Choice(t.Protocol):
    """One way to rank what passed. A higher score is better; the earlier name wins a tie."""

    NAME: str
    USES_WEIGHERS: bool

    def scores(self, candidates: Candidates, rng: random.Random) -> t.Sequence[Score]: ...

    def details(self, candidates: Candidates, position: int, score: Score) -> dict[str, float]: ...


def filters_for(options: Options) -> list[Filter]:
    """The enabled filters and the user's, in running order. NovaliteError for a name that none has."""
    users = {module.NAME: _filter(module) for module in _users(options, "passes")}
    return in_running_order(_enabled("filter", options.enabled_filters, _FILTERS, users))


def weighers_for(options: Options) -> list[Weigher]:
    """The enabled weighers and the user's, with their multipliers. NovaliteError for a name that none has."""
    ours = {module.NAME: _weigher(module, options) for module in ours_in(weighers)}
    users = {module.NAME: _weigher(module, options) for module in _users(options, "weigh")}
    return _enabled("weigher", options.enabled_weighers, ours, users)


def in_running_order(filters: t.Iterable[Filter]) -> list[Filter]:
    """Those that run once first: they leave fewer hosts to ask again and again.

    The order does not change what passes; it only decides which of several refusals an explanation names.
    """
    return sorted(filters, key=lambda filter_: not filter_.once)


def choice_named(name: str) -> Choice:
    """The choice called `name`; NovaliteError lists those that exist."""
    known = {module.NAME: t.cast(Choice, module) for module in _CHOICES}
    if name not in known:
        raise NovaliteError(f"there is no scheduler choice {name!r}; take one of: {', '.join(known)}")
    return known[name]


@functools.cache
def ours_in(folder: types.ModuleType) -> tuple[types.ModuleType, ...]:
    """The plug-ins that lie in the package `folder`: each file there is one."""
    files = pkgutil.iter_modules(folder.__path__)
    return tuple(importlib.import_module(f"{folder.__name__}.{file.name}") for file in files)


def _filter(module: types.ModuleType) -> Filter:
    return Filter(
        module.NAME,
        module.passes,
        bool(getattr(module, "RUN_ONCE_PER_REQUEST", False)),
        bool(getattr(module, "LOOKS_AT_OTHER_HOSTS", False)),
        getattr(module, "concerns", _always),
        getattr(module, "refused", None),
        getattr(module, "NOVA", None),
    )


_FILTERS = {module.NAME: _filter(module) for module in ours_in(filters)}


def _weigher(module: types.ModuleType, options: Options) -> Weigher:
    sign = getattr(module, "SIGN", 1)
    default = getattr(module, "MULTIPLIER", 1.0)
    multiplier = getattr(options, f"{module.NAME}_weight_multiplier", None)
    if multiplier is None:
        multiplier = options.weight_multipliers.get(module.NAME, default)
    return Weigher(
        module.NAME,
        module.weigh,
        sign * multiplier,
        getattr(module, "MINIMUM", None),
        sign,
        getattr(module, "concerns", _always),
        getattr(module, "NOVA", None),
    )


def _enabled(
    kind: str, names: t.Iterable[str], known: t.Mapping[str, Plugin], users: t.Mapping[str, Plugin]
) -> list[Plugin]:
    available: dict[str, Plugin] = {**known, **users}
    classes: dict[str, str] = {plugin.nova: plugin.name for plugin in [*known.values(), *users.values()] if plugin.nova}
    return [available[name] for name in dict.fromkeys([*resolved(kind, names, available, classes), *users])]


def _users(options: Options, function: str) -> list[types.ModuleType]:
    return [module for module in _loaded(tuple(options.plugin_paths)) if hasattr(module, function)]


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
        raise NovaliteError(f"the scheduler's plug-in {str(file)!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a file of the user's may raise
        raise NovaliteError(f"the scheduler's plug-in {str(file)!r} cannot be loaded: {error!r}") from error
    does = hasattr(module, "passes") or hasattr(module, "weigh")
    if not does or not isinstance(getattr(module, "NAME", None), str):
        raise NovaliteError(f"the scheduler's plug-in {str(file)!r} needs NAME and passes(...) or weigh(...)")
    return module
