# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stream of a job's events."""

from __future__ import annotations

import json
import threading
import time
import typing as t

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job as job_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import run
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import revoke_token
from api.v1 import streams
from api.web.host_names import host_id
from tests.api import scenes, seeds
from tests.api.v1.test_native_jobs import LAUNCH, ask, jobs_in, refused, stream

# --- The stream -----------------------------------------------------------------------------------------------------


class Message(t.NamedTuple):
    id: int | None
    event: str
    data: t.Any


def test_what_jobs_tell_names_hosts_to_administrators_alone(api: seeds.Api, scene: scenes.Scene) -> None:
    api.write(
        sa.update(job_table).where(job_table.c.id == scene.broken).values(result={"errors": ["hv2: unreachable"]})
    )
    hidden = host_id(api.projects["demo"], "hv2")
    paths = (
        f"/v1/jobs/{scene.broken}",
        f"/v1/jobs/{scene.broken}/events",
        "/v1/jobs",
        "/",
        "/jobs",
        f"/jobs/{scene.broken}",
        f"/instances/{scene.stopped}",
    )
    for path in paths:
        for who, there, not_there in (("reader", hidden, "hv2: "), ("admin", "hv2", hidden)):
            client = api.client_as(who)
            said = client.get(path).get_data(as_text=True)
            assert not_there not in said, (path, who)
            if path.startswith("/v1/jobs/") and not path.endswith("events"):
                assert client.get(path).get_json()["job"]["result"] == {"errors": [f"{there}: unreachable"]}
    stream_messages = messages(stream(api.client_as("reader"), scene.broken).get_data(as_text=True))
    assert stream_messages[-1].data["message"].startswith(f"{hidden}: unreachable")


def messages(text: str) -> list[Message]:
    stream_messages = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            number = int(fields["id"]) if "id" in fields else None
            stream_messages.append(Message(number, fields["event"], json.loads(fields["data"])))
    return stream_messages


def test_the_stream_of_a_job_that_ended_tells_all_and_ends(api: seeds.Api, scene: scenes.Scene) -> None:
    client = api.client_as("demo")
    answer = stream(client, scene.launched)
    assert answer.content_type == "text/event-stream; charset=utf-8"
    stream_messages = messages(answer.get_data(as_text=True))
    assert [message.event for message in stream_messages] == ["event", "event", "job", "end"]
    known = client.get(f"/v1/jobs/{scene.launched}/events").get_json()["events"]
    assert [message.data for message in stream_messages[:2]] == known
    assert [message.id for message in stream_messages[:2]] == [event["seq"] for event in known]
    assert stream_messages[-1].data["state"] == "succeeded"
    rest = messages(
        stream(client, scene.launched, **{"Last-Event-ID": str(stream_messages[0].id)}).get_data(as_text=True)
    )
    assert [message.event for message in rest] == ["event", "job", "end"]


def test_a_stream_goes_on_with_the_job(api: seeds.Api, scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PAUSE", 0.01)
    monkeypatch.setattr(streams, "HEARTBEAT", 0.02)
    answer = stream(api.client_as("demo"), scene.going)
    chunks = iter(answer.response)
    text = ""
    while text.count("event: event") < 2 or "\n: \n" not in text:
        text += t.cast(bytes, next(chunks)).decode()
    scenes.add_event(api, scene.going, task="Start the domains", status="changed")
    while "Start the domains" not in text:
        text += t.cast(bytes, next(chunks)).decode()
    scenes.end_job(api, scene.going)
    text += b"".join(t.cast("t.Iterator[bytes]", chunks)).decode()
    assert [message.event for message in messages(text)] == ["event", "event", "job", "event", "job", "end"]
    assert messages(text)[-1].data["state"] == "succeeded"


def test_a_stream_ends_with_the_token(api: seeds.Api, scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PAUSE", 0.01)
    monkeypatch.setattr(streams, "HEARTBEAT", 0.02)
    token = api.token("demo")
    client = api.app.test_client()
    answer = stream(client, scene.going, **{"X-Auth-Token": token})
    with transaction(api.engine) as connection:
        revoke_token(connection, token)
    assert "end" not in [message.event for message in messages(answer.get_data(as_text=True))]


def test_a_stream_does_not_last_for_ever(api: seeds.Api, scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PAUSE", 0.01)
    monkeypatch.setattr(streams, "LONGEST", 0.05)
    stream_messages = messages(stream(api.client_as("demo"), scene.going).get_data(as_text=True))
    assert [message.event for message in stream_messages] == ["event", "event", "job"]


def test_there_are_few_streams_at_once_and_each_gives_its_place_back(api: seeds.Api, scene: scenes.Scene) -> None:
    client = api.client_as("demo")
    # half of four threads
    first, second = stream(client, scene.going), stream(client, scene.going)
    third = stream(client, scene.going)
    assert "JSON" in refused(third, 429)
    assert third.headers["Retry-After"] == "5"
    assert client.get(f"/v1/jobs/{scene.going}/events").status_code == 200  # as JSON, always
    first.close()  # never read
    fourth = stream(client, scene.going)
    assert next(iter(fourth.response))
    second.close()
    fourth.close()
    fourth.close()  # gives back one place, not two
    held = [stream(client, scene.going) for _ in range(2)]
    assert [answer.status_code for answer in held] == [200, 200]
    assert stream(client, scene.going).status_code == 429
    for answer in held:
        answer.close()


def test_a_run_of_several_projects_shows_no_texts_to_them(api: seeds.Api, scene: scenes.Scene) -> None:
    api.write(sa.update(run).values(project_id=None))
    stream_messages = messages(stream(api.client_as("demo"), scene.launched).get_data(as_text=True))
    assert {message.data["text"] for message in stream_messages if message.event == "event"} == {None}


def test_two_requests_with_one_key_at_once_make_one_job(api: seeds.Api) -> None:
    answers: list[TestResponse] = []
    threads = [
        threading.Thread(target=lambda: answers.append(ask(api.client_as("demo"), LAUNCH, "same"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.get_json()["job"]["id"] for answer in answers}) == 1
    assert jobs_in(api) == 1


def test_times_are_rfc_3339(api: seeds.Api) -> None:
    job = ask(api.client_as("demo"), LAUNCH).get_json()["job"]
    assert job["created_at"].startswith(time.strftime("%Y-", time.gmtime()))
    assert job["created_at"].endswith("Z")


@pytest.mark.parametrize(("user", "may_read"), [("reader", False), ("demo", True), ("admin", True)])
def test_a_reader_is_not_told_what_a_guest_wrote(
    api: seeds.Api, scene: scenes.Scene, user: str, may_read: bool
) -> None:
    """Neither by the job itself nor in the list; who may ask for a console may read what came of it."""
    client = api.client_as(user)
    (listed,) = client.get("/v1/jobs?kind=console").get_json()["jobs"]
    shown = client.get(f"/v1/jobs/{listed['id']}").get_json()["job"]
    result = {"console": {scene.web: scenes.CONSOLE}} if may_read else None
    assert (shown["state"], listed["result"], shown["result"]) == ("succeeded", result, result)
