# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters and weighers as a nova.conf names them: by class, with or without its module, or all at once.

Each of ours says in NOVA which class of Nova's it does the work of. Here is what no file of ours says: Nova's words
for all of them, and the classes that there is no work for.
"""

from __future__ import annotations

import difflib
import typing as t

from .._errors import NovaliteError
from .options import ENABLED_FILTERS, ENABLED_WEIGHERS

# The package of their modules, and the word for all of them. To Nova, `all_filters` are those that there are
# (`available_filters`), of which its defaults act.
NOVA = {
    "filter": ("nova.scheduler.filters.", "all_filters", ENABLED_FILTERS),
    "weigher": ("nova.scheduler.weights.", "all_weighers", ENABLED_WEIGHERS),
}
# What Nova leaves to Placement, its host manager, or the operator's care with ranges, whatever filters are enabled: a
# list of its classes lacks them
OF_PLACEMENT = (
    "requested_host",
    "retry",
    "other_ledger",
    "ranges",
    "availability_zone",
    "traits",
    "hardware",
    "pci_passthrough",
    "numa_topology",
    "vcpu",
    "ram",
    "disk",
)
IDLE = ("AllHostsFilter", "CrossCellWeigher")  # refuses no host; there are no cells

_RATIOS = "a ratio is the host's (compute_node_cpu_ratio and its siblings), and {} holds it"
_IRONIC = "it is for bare metal (Ironic)"
REFUSED = {
    "AggregateCoreFilter": _RATIOS.format("vcpu"),
    "AggregateDiskFilter": _RATIOS.format("disk"),
    "AggregateRamFilter": _RATIOS.format("ram"),
    "ExactCoreFilter": _IRONIC,
    "ExactDiskFilter": _IRONIC,
    "ExactRamFilter": _IRONIC,
    "ImagePropertiesWeigher": "hosts are not weighed by the images that they run",
    "TrustedFilter": "Nova has it no more; traits (trait:NAME=required in a flavor) do its work",
    "TypeAffinityFilter": "Nova has it no more; aggregate_type_affinity does its work",
}


def resolved(kind: str, names: t.Iterable[str], ours: t.Collection[str], classes: t.Mapping[str, str]) -> list[str]:
    """Return each of `names` as it is in `ours`, to which `classes` maps Nova's. Raises NovaliteError for another.

    Where one of Nova's filters is named, the list is taken for Nova's, and gets what Placement does there.
    """
    package, all_of_them, defaults = NOVA[kind]
    chosen: list[str] = []
    placement: tuple[str, ...] = ()
    for name in names:
        plain = name.rpartition(".")[2] if name.startswith(package) else name
        if name == package + all_of_them:
            chosen += defaults
        elif name in ours:
            chosen.append(name)
        elif plain in classes or plain in IDLE:
            chosen += [classes[plain]] if plain in classes else []
            placement = OF_PLACEMENT if kind == "filter" else ()
        else:
            raise NovaliteError(f"there is no scheduler {kind} {name!r}{_remedy(plain, ours, classes)}")
    return [*chosen, *placement]


def _remedy(name: str, ours: t.Collection[str], classes: t.Collection[str]) -> str:
    if name in REFUSED:
        return f": {REFUSED[name]}; take it out"
    nearest = "".join(f"; the nearest is {near}" for near in difflib.get_close_matches(name, [*ours, *classes], 1))
    return f"; take some of: {', '.join(sorted(ours))}, or Nova's names for them{nearest}"
