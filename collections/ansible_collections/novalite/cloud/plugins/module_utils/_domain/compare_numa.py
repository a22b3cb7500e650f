# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pinning, NUMA nodes and huge pages of a domain's XML, as texts by what they are of. Standard library only."""

from __future__ import annotations

from xml.etree import ElementTree

from .._errors import NovaliteError
from .._model import cpu_sets


def placement_of(root: ElementTree.Element) -> tuple[tuple[str, str], ...]:
    """Places that the domain's vCPUs, QEMU's own threads and its memory have on the host, and its own NUMA nodes."""
    texts: dict[str, str] = {}
    vcpu, emulator = root.find("vcpu"), root.find("cputune/emulatorpin")
    if vcpu is not None and vcpu.get("cpuset"):
        texts["cpuset"] = _set(vcpu, "cpuset")
    for pin in root.iterfind("cputune/vcpupin"):
        texts[f"vcpupin[{pin.get('vcpu')}]"] = _set(pin, "cpuset")
    if emulator is not None:
        texts["emulatorpin"] = _set(emulator, "cpuset")
    for memory in root.iterfind("numatune/memory"):
        texts["memory"] = f"{memory.get('mode', 'strict')} {_set(memory, 'nodeset')}"
    for node in root.iterfind("numatune/memnode"):
        texts[f"memnode[{node.get('cellid')}]"] = f"{node.get('mode', 'strict')} {_set(node, 'nodeset')}"
    for page in root.iterfind("memoryBacking/hugepages/page"):
        texts[f"page[{_set(page, 'nodeset')}]"] = f"{page.get('size')} {page.get('unit', 'KiB')}"
    for number, cell in enumerate(root.iterfind("cpu/numa/cell")):
        memory_text = f"{cell.get('memory')} {cell.get('unit', 'KiB')} {cell.get('memAccess', 'private')}"
        texts[f"cell[{cell.get('id', str(number))}]"] = f"{_set(cell, 'cpus')} {memory_text}"
    return tuple(sorted(texts.items()))


def _set(element: ElementTree.Element, name: str) -> str:
    text = element.get(name) or ""
    try:
        return cpu_sets.text_of(cpu_sets.parse(name, text))
    except NovaliteError:
        return text  # of somebody else's, in words of a newer libvirt: another value, that is all
