# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clients of the API as there are: plain HTTP, a token, and the doubt when a connection dies before the answer came.

A request that may or may not have been carried out is not simply made again. A create is looked up by a name of its
own, an action by its request id, and only what is not there is asked for once more. A deletion may be repeated.
"""

from __future__ import annotations

import collections
import dataclasses
import random
import threading
import time
import typing as t
import uuid

import requests

COMPUTE, IDENTITY, IMAGE = "/compute/v2.1", "/identity/v3", "/image/v2"
PATIENCE = 600.0  # seconds, for an API that is being started again
ANSWER = 60.0  # seconds
# How often each is asked for, beside what else can be asked for at that moment
WEIGHTS = {"create": 5, "delete": 2, "reboot": 5, "stop": 2, "start": 4}
REPEATS = 5  # of an action whose answer was lost


class Lost(Exception):
    """No answer came: it was carried out, or it was not."""


@dataclasses.dataclass(frozen=True)
class Login:
    user: str
    password: str
    project: str


@dataclasses.dataclass(frozen=True)
class Accepted:
    """A request that the API said yes to."""

    what: str
    server: str  # its id; of a create, the name that was asked for
    request_id: str
    count: int = 1


class Book:
    """Record of what all clients asked for, and of whose servers they may lay hands on."""

    def __init__(self, request_count: int) -> None:
        self._lock = threading.Lock()
        self._request_count = request_count
        self.accepted: list[Accepted] = []
        self.counts: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.settled: set[str] = set()  # names of which the client that asked for them knows what became

    def accept(self, request: Accepted) -> None:
        with self._lock:
            self.accepted.append(request)
            self.counts[request.what] += 1

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def complain(self, what: str) -> None:
        with self._lock:
            self.wrong.append(what)

    @property
    def full(self) -> bool:
        return len(self.accepted) >= self._request_count


class Client(threading.Thread):
    """Asks at random until the book is full."""

    def __init__(
        self,
        number: int,
        urls: t.Sequence[str],
        login: Login,
        book: Book,
        *,
        seed: int,
        flavor: str,
        image: str,
        servers: int,
        pause: float,
    ) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self._urls, self._login, self._book = list(urls), login, book
        self._random = random.Random(f"{seed} {number}")
        self._flavor, self._image, self._servers, self._pause = flavor, image, servers, pause
        self._session = requests.Session()
        self._session.trust_env = False
        self._token: str | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            flavors = self.look(f"{COMPUTE}/flavors")["flavors"]
            self._flavor_id = next(flavor["id"] for flavor in flavors if flavor["name"] == self._flavor)
            images = self.look(f"{IMAGE}/images")["images"]
            self._image_id = next(image["id"] for image in images if image["name"] == self._image)
            while not self._book.full and not self.stopping.is_set():
                self._ask_something()
                self.stopping.wait(self._random.random() * self._pause)
        except Exception as error:
            self._book.complain(f"{self.name}: {type(error).__name__}: {error}")

    # - Plain HTTP

    def send(self, verb: str, path: str, body: t.Any = None, request_id: str | None = None) -> requests.Response:
        """One request, made once. Raises Lost."""
        if self._token is None:
            self._token = self._log_in()
        headers = {"X-Auth-Token": self._token}
        if request_id is not None:
            headers["X-OpenStack-Request-Id"] = request_id
        answer = self._once(verb, path, body, headers)
        if answer.status_code == 401:
            self._book.complain(f"{verb} {path}: a token that is good was refused")
            self._token = None
            raise Lost
        return answer

    def look(self, path: str) -> t.Any:
        """Return what a GET says, asked again while the API is away."""
        return self._patiently(lambda: self.send("GET", path), (200,)).json()

    def _log_in(self) -> str:
        login = self._login
        scope = {"project": {"name": login.project, "domain": {"id": "default"}}}
        user = {"name": login.user, "password": login.password, "domain": {"id": "default"}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
        answer = self._patiently(lambda: self._once("POST", f"{IDENTITY}/auth/tokens", body, {}), (201,))
        return str(answer.headers["X-Subject-Token"])

    def _once(self, verb: str, path: str, body: t.Any, headers: t.Mapping[str, str]) -> requests.Response:
        # as a proxy before several servers does
        self._urls.append(self._urls.pop(0))
        try:
            answer = self._session.request(verb, self._urls[0] + path, json=body, headers=headers, timeout=ANSWER)
        except requests.RequestException as error:
            self._book.count("no connection" if _refused(error) else "answer lost")
            raise Lost from error
        if answer.status_code >= 500:
            self._book.complain(f"{verb} {path}: {answer.status_code} {answer.text[:300]}")
        return answer

    def _patiently(self, ask: t.Callable[[], requests.Response], good: t.Collection[int]) -> requests.Response:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                answer = ask()
                if answer.status_code in good or answer.status_code < 500:
                    break
            except Lost:
                pass
            if time.monotonic() > deadline:
                raise TimeoutError(f"the API was away for {PATIENCE} s")
            time.sleep(0.2)
        if answer.status_code not in good:
            raise RuntimeError(f"{answer.status_code} {answer.text[:300]}")
        return answer

    # - What is asked for

    def servers(self) -> list[dict[str, t.Any]]:
        servers: list[dict[str, t.Any]] = self.look(f"{COMPUTE}/servers/detail")["servers"]
        return servers

    def _ask_something(self) -> None:
        there = self.servers()
        room = self._servers - len(there)
        free = [server for server in there if server["metadata"].get("chaos") in self._book.settled]
        # Chosen among what can be asked for now: otherwise a server that runs is soon deleted as a rule, for little
        # else than creates and deletions is possible at most moments, and hardly one is rebooted.
        possible = {what: self._candidates(what, free) for what in WEIGHTS}
        choices = [what for what, servers in possible.items() if servers or (what == "create" and room > 0)]
        if not choices:
            return None
        what = self._random.choices(choices, weights=[WEIGHTS[choice] for choice in choices])[0]
        if what == "create":
            return self._create(self._random.choice([1, 1, 2][: 1 + room]))
        server_id = self._random.choice(possible[what])["id"]
        return self.delete(server_id) if what == "delete" else self._act(what, server_id)

    def _candidates(self, what: str, free: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
        """The servers of which `what` may be asked; now and then also those of which it cannot be."""
        if what == "create":
            return []
        patient = self._random.random() < 0.97  # most users wait for what they asked for
        if what == "delete":
            free = [server for server in free if server["OS-EXT-STS:task_state"] != "deleting"]
            return [server for server in free if server["status"] != "BUILD"] if patient else free
        if not patient:
            return free
        status = "SHUTOFF" if what == "start" else "ACTIVE"
        return [server for server in free if server["status"] == status and server["OS-EXT-STS:task_state"] is None]

    def _create(self, count: int) -> None:
        name = f"chaos-{uuid.uuid4().hex[:12]}"
        body = {
            "server": {
                "name": name,
                "flavorRef": self._flavor_id,
                "imageRef": self._image_id,
                "metadata": {"chaos": name},
                "min_count": count,
                "max_count": count,
            }
        }
        request_id = _new_request_id()
        while True:
            try:
                answer = self.send("POST", f"{COMPUTE}/servers", body, request_id)
                if answer.status_code != 202:
                    return self._refused("create", answer, (403,))
                break
            except Lost:
                servers = self.look(f"{COMPUTE}/servers/detail?name={name}")["servers"]
                if servers:
                    self._book.count("found afterwards")
                    break
            time.sleep(0.2)
        self._book.settled.add(name)
        self._book.accept(Accepted("create", name, request_id, count))
        return None

    def delete(self, server: str) -> None:
        """Ask until the answer is there: to delete what is being deleted, or gone, does no harm."""
        request_id, lost = _new_request_id(), False
        while True:
            try:
                answer = self.send("DELETE", f"{COMPUTE}/servers/{server}", None, request_id)
                break
            except Lost:
                lost = True
                time.sleep(0.2)
        if answer.status_code == 204 or (lost and answer.status_code == 404):
            self._book.accept(Accepted("delete", server, request_id))
        else:
            self._refused("delete", answer, (404, 409))

    def _act(self, what: str, server: str) -> None:
        kind = self._random.choice(["SOFT", "HARD", "HARD"])
        body: dict[str, t.Any] = {"reboot": {"type": kind}} if what == "reboot" else {f"os-{what}": None}
        for _repeat in range(REPEATS):
            request_id = _new_request_id()
            try:
                answer = self.send("POST", f"{COMPUTE}/servers/{server}/action", body, request_id)
                if answer.status_code != 202:
                    return self._refused(what, answer, (404, 409))
                return self._book.accept(Accepted(what, server, request_id))
            except Lost:
                if self._was_begun(server, request_id):
                    self._book.count("found afterwards")
                    return self._book.accept(Accepted(what, server, request_id))
            time.sleep(0.2)
        return None

    def _was_begun(self, server: str, request_id: str) -> bool:
        path = f"{COMPUTE}/servers/{server}/os-instance-actions/{request_id}"
        return self._patiently(lambda: self.send("GET", path), (200, 404)).status_code == 200

    def _refused(self, what: str, answer: requests.Response, expected: t.Collection[int]) -> None:
        self._book.count(f"refused with {answer.status_code}")
        if answer.status_code not in expected and answer.status_code < 500:
            self._book.complain(f"{what}: {answer.status_code} {answer.text[:300]}")


def _refused(error: requests.RequestException) -> bool:
    return "Connection refused" in str(error)


def _new_request_id() -> str:
    return f"req-{uuid.uuid4()}"
