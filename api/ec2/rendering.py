# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers as XML: a dictionary's keys are elements, a list's members are <item>s, what is None is left out."""

from __future__ import annotations

import re
import typing as t
import xml.etree.ElementTree as ElementTree

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
# what XML 1.0 has no way to write
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'


def response(action: str, request_id: str, body: JsonMapping, version: str) -> bytes:
    """The answer to `action`. `version` is the one that the client asked in; its namespace is what it looks for."""
    namespace = f"http://ec2.amazonaws.com/doc/{version}/" if version else NAMESPACE
    root = ElementTree.Element(f"{action}Response", {"xmlns": namespace})
    ElementTree.SubElement(root, "requestId").text = request_id
    _fill(root, body)
    return _HEAD + ElementTree.tostring(root)


def error(code: str, message: str, request_id: str) -> bytes:
    root = ElementTree.Element("Response")
    element = ElementTree.SubElement(ElementTree.SubElement(root, "Errors"), "Error")
    ElementTree.SubElement(element, "Code").text = code
    ElementTree.SubElement(element, "Message").text = _text(message)
    ElementTree.SubElement(root, "RequestID").text = request_id
    return _HEAD + ElementTree.tostring(root)


def _fill(parent: ElementTree.Element, value: object) -> None:
    if isinstance(value, t.Mapping):
        for name, item in value.items():
            if item is not None:
                _fill(ElementTree.SubElement(parent, name), item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _fill(ElementTree.SubElement(parent, "item"), item)
    elif isinstance(value, bool):
        parent.text = "true" if value else "false"
    else:
        parent.text = _text(str(value))


def _text(value: str) -> str:
    return _UNWRITABLE.sub("\ufffd", value)
