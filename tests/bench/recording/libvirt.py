# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for libvirt's Python binding: it records what it is asked for in files, and starts no guest.

For launch.thousand_s only: one machine has room for a hundred hosts, and not for a hundred libvirtd and a thousand
QEMU. It knows what a launch asks of libvirt, in the types and errors of the real binding; whatever else is asked for is
an AttributeError. Standard library only: it stands where hosts' own Python finds `libvirt`.
"""

from __future__ import annotations

import json
import pathlib
import typing as t
import uuid
from xml.etree import ElementTree

RECORDS = pathlib.Path("/var/lib/recording-libvirt")
DOMAINS, FILTERS = RECORDS / "domains", RECORDS / "filters"

VIR_ERR_NO_DOMAIN = 42
VIR_ERR_OPERATION_INVALID = 55
VIR_ERR_NO_NWFILTER = 81
VIR_ERR_NO_NWFILTER_BINDING = 103
VIR_DOMAIN_START_PAUSED = 1
VIR_DOMAIN_XML_SECURE = 1
VIR_DOMAIN_XML_INACTIVE = 2
VIR_DOMAIN_UNDEFINE_MANAGED_SAVE = 1
VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA = 2
VIR_DOMAIN_UNDEFINE_NVRAM = 4
VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA = 16
_ACTIVE, _INACTIVE = 1, 2  # VIR_CONNECT_LIST_DOMAINS_*
_RUNNING, _PAUSED, _SHUTOFF = 1, 3, 5  # VIR_DOMAIN_*

_CAPABILITIES = """
<capabilities>
  <host><uuid>{host}</uuid><cpu><arch>x86_64</arch><model>EPYC</model></cpu>
    <secmodel><model>dac</model><doi>0</doi><baselabel type="qemu">+64055:+64055</baselabel></secmodel></host>
  <guest><os_type>hvm</os_type>
    <arch name="x86_64"><wordsize>64</wordsize><emulator>/usr/bin/qemu-system-x86_64</emulator>
      <machine>pc</machine><domain type="qemu"/></arch></guest>
</capabilities>
"""


class libvirtError(Exception):
    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self._code = code

    def get_error_code(self) -> int:
        return self._code

    def get_error_message(self) -> str:
        return str(self)


class virDomain:
    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def _record(self) -> dict[str, t.Any]:
        try:
            return dict(json.loads(self._path.read_text()))
        except FileNotFoundError:
            raise libvirtError(f"Domain not found: {self._path.name}", VIR_ERR_NO_DOMAIN) from None

    def _write(self, record: dict[str, t.Any]) -> None:
        _replace(self._path, json.dumps(record))

    def name(self) -> str:
        return ElementTree.fromstring(self.XMLDesc()).findtext("name") or ""

    def UUIDString(self) -> str:
        return self._path.name

    def XMLDesc(self, flags: int = 0) -> str:
        return str(self._record()["xml"])

    def isActive(self) -> bool:
        return bool(self._record()["active"])

    def isPersistent(self) -> bool:
        return True

    def state(self) -> list[int]:
        record = self._record()
        return [(_PAUSED if record.get("paused") else _RUNNING) if record["active"] else _SHUTOFF, 1]

    def info(self) -> list[int]:
        root = ElementTree.fromstring(self.XMLDesc())
        memory = int(root.findtext("memory") or 0) * 1024
        return [self.state()[0], memory, memory, int(root.findtext("vcpu") or 0), 0]

    def createWithFlags(self, flags: int = 0) -> None:
        self._write({**self._record(), "active": True, "paused": bool(flags & VIR_DOMAIN_START_PAUSED)})

    def resume(self) -> None:
        self._write({**self._record(), "paused": False})

    def destroy(self) -> None:
        self._write({**self._record(), "active": False})

    def undefineFlags(self, flags: int = 0) -> None:
        self._path.unlink(missing_ok=True)


class virNWFilter:
    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def name(self) -> str:
        return self._path.name

    def XMLDesc(self, flags: int = 0) -> str:
        return self._path.read_text()

    def UUIDString(self) -> str:
        return ElementTree.fromstring(self.XMLDesc()).findtext("uuid") or ""

    def undefine(self) -> None:
        self._path.unlink(missing_ok=True)


class virConnect:
    def close(self) -> None:
        pass

    def getVersion(self) -> int:
        return 7002000

    def getLibVersion(self) -> int:
        return 9000000

    def getCapabilities(self) -> str:
        return _CAPABILITIES.format(host=uuid.uuid5(uuid.NAMESPACE_DNS, "recording"))

    def listAllDomains(self, flags: int = 0) -> list[virDomain]:
        domains = [virDomain(path) for path in sorted(DOMAINS.iterdir())]
        listed = flags or _ACTIVE | _INACTIVE
        return [domain for domain in domains if listed & (_ACTIVE if domain.isActive() else _INACTIVE)]

    def lookupByUUIDString(self, text: str) -> virDomain:
        if not (DOMAINS / text).exists():
            raise libvirtError(f"Domain not found: {text}", VIR_ERR_NO_DOMAIN)
        return virDomain(DOMAINS / text)

    def lookupByName(self, name: str) -> virDomain:
        for domain in self.listAllDomains():
            if domain.name() == name:
                return domain
        raise libvirtError(f"Domain not found: {name}", VIR_ERR_NO_DOMAIN)

    def defineXML(self, xml: str) -> virDomain:
        path = DOMAINS / (ElementTree.fromstring(xml).findtext("uuid") or "")
        active = path.exists() and virDomain(path).isActive()
        _replace(path, json.dumps({"xml": xml, "active": active}))
        return virDomain(path)

    def listNWFilters(self) -> list[str]:
        return sorted(path.name for path in FILTERS.iterdir())

    def nwfilterLookupByName(self, name: str) -> virNWFilter:
        if not (FILTERS / name).exists():
            raise libvirtError(f"Network filter not found: {name}", VIR_ERR_NO_NWFILTER)
        return virNWFilter(FILTERS / name)

    def nwfilterDefineXML(self, xml: str) -> virNWFilter:
        root = ElementTree.fromstring(xml)
        if root.find("uuid") is None:
            ElementTree.SubElement(root, "uuid").text = str(uuid.uuid4())
        path = FILTERS / root.attrib["name"]
        _replace(path, ElementTree.tostring(root, encoding="unicode"))
        return virNWFilter(path)


def open(uri: str | None = None) -> virConnect:
    for directory in (DOMAINS, FILTERS):
        directory.mkdir(parents=True, exist_ok=True)
    return virConnect()


def registerErrorHandler(handler: t.Callable[..., None], context: object) -> None:
    pass


def _replace(path: pathlib.Path, text: str) -> None:
    """Write a file that is old or new at each moment, as libvirt does."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.rename(path)
