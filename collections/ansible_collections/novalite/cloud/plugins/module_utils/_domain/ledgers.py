# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ledgers whose guests a host has, by the marks of its domains."""

from __future__ import annotations

import contextlib
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._host.libvirt_connection import DEFAULT_URI, connect
from .compare import LEDGER, METADATA_NAMESPACE

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

_AS_DEFINED = 2  # VIR_DOMAIN_XML_INACTIVE


def maker(xml: str) -> str | None:
    """Return the identity of the ledger that made the domain; None for one of others, and for one that was adopted: it
    has neither chains nor a name of a ledger's."""
    mark = ElementTree.fromstring(xml).find(f"metadata/{{{METADATA_NAMESPACE}}}instance")
    if mark is None or mark.findtext(f"{{{METADATA_NAMESPACE}}}adopted") == "true":
        return None
    return mark.findtext(f"{{{METADATA_NAMESPACE}}}{LEDGER}")


def with_guests(uri: str = DEFAULT_URI) -> list[str]:
    """List the ledgers that made domains of this host; none where libvirt does not answer, as before it is there."""
    makers: set[str | None] = set()
    with contextlib.suppress(NovaliteError):
        for domain in connect(uri).listAllDomains():
            with contextlib.suppress(libvirt.libvirtError):  # it was undefined just now
                makers.add(maker(domain.XMLDesc(_AS_DEFINED)))
    return sorted(each for each in makers if each)
