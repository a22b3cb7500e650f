# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Somebody who visits the status page, and the page as it came."""

from __future__ import annotations

import html.parser

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.dashboard import session
from tests.api import seeds

VOID = {"meta", "link", "input", "img", "br", "hr", "col"}  # and <rect/>, which is closed as XML is

ELEMENTS = {
    "html",
    "head",
    "meta",
    "title",
    "link",
    "script",
    "noscript",
    "body",
    "header",
    "main",
    "nav",
    "section",
    "div",
    "span",
    "p",
    "h1",
    "h2",
    "h3",
    "a",
    "ul",
    "li",
    "strong",
    "bdi",
    "code",
    "pre",
    "time",
    "svg",
    "rect",
    "path",
    "text",
    "desc",
    "br",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "form",
    "input",
    "select",
    "option",
    "textarea",
    "details",
    "summary",
    "fieldset",
    "legend",
    "label",
    "button",
}


class Page(html.parser.HTMLParser):
    """The elements of a page, with the text in each. Fails for one that is not closed, or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())

    @property
    def actions(self) -> set[str]:
        """Paths to which those of the page's forms lead that change something."""
        return {str(form["action"]) for form in self.all("form") if form["method"] == "post"}


class Visitor:
    """A browser with a session, or without one."""

    def __init__(self, api: seeds.Api, user: str | None) -> None:
        self.client: FlaskClient = api.app.test_client()
        if user is not None:
            self.client.set_cookie(session.COOKIE, api.token(user))

    def get(self, path: str, status: int = 200) -> Page:
        answer = self.client.get(path)
        assert answer.status_code == status, (path, answer.status)
        return Page(answer.get_data(as_text=True))

    def post(self, path: str, page: str = "/instances", **fields: str | list[str]) -> TestResponse:
        """Send a form as the page `page` holds it."""
        hidden = {
            field["name"]: field["value"] for field in self.get(page).all("input") if field.get("type") == "hidden"
        }
        return self.client.post(path, data={"csrf": hidden["csrf"], **fields})


def log_in(client: FlaskClient, **fields: str) -> TestResponse:
    known = {"user": "demo", "password": seeds.password("demo"), "project": "", "next": "/instances"}
    return client.post("/login", data={**known, **fields})
