# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status page's HTML: what it shows to whom, what it does, and what it never lets through."""

from __future__ import annotations

import re
import typing as t
import xml.etree.ElementTree as ElementTree

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job as job_table
from api.dashboard import rendering, session
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import ELEMENTS, Page, Visitor

LISTS = ("/images", "/volumes", "/security-groups", "/floating-ips", "/keys")


def paths_of(scene: scenes.Scene) -> list[str]:
    """Every page there is for a reader of demo."""
    return [
        "/",
        "/instances",
        f"/instances/{scene.web}",
        f"/instances/{scene.building}",
        f"/instances/{scene.failed}",
        "/networks",
        f"/networks/{scene.network}",
        "/jobs",
        f"/jobs/{scene.launched}",
        f"/jobs/{scene.going}",
        f"/jobs/{scene.broken}",
        "/quotas",
        *LISTS,
    ]


def paths_of_consoles(scene: scenes.Scene) -> list[str]:
    """The pages that say what guests wrote: members'."""
    return [f"/instances/{scene.web}/console", f"/instances/{scene.stopped}/console"]


def paths_of_hosts(scene: scenes.Scene) -> list[str]:
    """The pages that say which hosts there are: administrators' alone."""
    return [
        "/users",
        "/hosts",
        "/hosts/hv1",
        "/hosts/hv2",
        *(f"/instances/{uuid}/placement" for uuid in (scene.web, scene.failed)),
    ]


# --- Pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["reader", "demo", "admin"])
def test_every_page_is_well_formed_and_keeps_what_guests_say_as_text(
    api: seeds.Api, scene: scenes.Scene, user: str
) -> None:
    visitor = Visitor(api, user)
    consoles = paths_of_consoles(scene) if user != "reader" else []
    for path in [*paths_of(scene), *consoles, *(paths_of_hosts(scene) if user == "admin" else [])]:
        answer = visitor.client.get(path)
        assert answer.status_code == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        page = Page(answer.get_data(as_text=True))
        assert page.all("html")[0]["lang"] == "en"
        assert len(page.all("h1")) == 1 and len(page.all("main")) == 1
        assert page.all("img") == []
        assert {tag for tag, _attributes in page.elements} <= ELEMENTS
        # our own script, and nothing that is run or styled in place
        assert [script["src"] for script in page.all("script")] == [f"/static/{rendering.VERSION}/live.js"]
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (path, tag)
        # every reference stays here
        for name in ("href", "src", "action", "data-stream"):
            for _tag, attributes in page.elements:
                assert re.match(r"/(?!/)|#", attributes.get(name) or "/"), (path, attributes)
        ids = [attributes["id"] for _tag, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids)), path
        # a name for whatever can be used
        labels = {label.get("for") for label in page.all("label")}
        for field in (*page.all("input"), *page.all("select"), *page.all("textarea")):
            assert field.get("type") == "hidden" or field["id"] in labels
        for meter in page.all("svg"):
            assert meter["role"] == "meter" and meter["aria-label"] and meter["aria-valuetext"]
            assert 0 <= int(meter["aria-valuenow"] or "") <= 100
        headings = [int(tag[1]) for tag, _attributes in page.elements if re.fullmatch("h[1-6]", tag)]
        assert all(after - before <= 2 for before, after in zip(headings, headings[1:])), path


def test_which_hosts_there_are_is_no_tenants_business(api: seeds.Api, scene: scenes.Scene) -> None:
    member, admin = Visitor(api, "demo"), Visitor(api, "admin")
    for path in ("/instances", f"/instances/{scene.web}", "/networks", f"/networks/{scene.network}"):
        assert not re.search(r"\bhv[12]\b", member.get(path).words), path
    for path in paths_of(scene):
        leads = {str(link["href"]) for link in member.get(path).all("a") if link.get("href")}
        assert not [link for link in leads if link.startswith("/hosts") or link.endswith("/placement")], path
    for path in paths_of_hosts(scene):
        member.get(path, 403)
        admin.get(path)
    for path in ("/", "/instances", f"/instances/{scene.web}", "/hosts"):
        assert re.search(r"\bhv[12]\b", admin.get(path).words), path


def test_the_launch_is_drawn_for_those_who_may_see_hosts(api: seeds.Api, scene: scenes.Scene) -> None:
    member, admin = Visitor(api, "demo"), Visitor(api, "admin")
    path = f"/instances/{scene.web}/launch.svg"
    assert path in {link.get("href") for link in admin.get(f"/instances/{scene.web}").all("a")}
    assert path not in {link.get("href") for link in member.get(f"/instances/{scene.web}").all("a")}
    member.get(path, 403)
    answer = admin.client.get(path)
    assert (answer.status_code, answer.mimetype) == (200, "image/svg+xml")
    words = "".join(ElementTree.fromstring(answer.get_data()).itertext())
    assert scene.web in words and "rpc.cast run_instance" in words
    assert admin.client.get("/instances/00000000-0000-0000-0000-000000000000/launch.svg").status_code == 404


def test_what_a_guest_says_is_shown_as_it_is(api: seeds.Api, scene: scenes.Scene) -> None:
    visitor = Visitor(api, "demo")
    for path in (f"/instances/{scene.failed}", f"/instances/{scene.web}", f"/jobs/{scene.broken}", "/instances"):
        raw = visitor.client.get(path).get_data(as_text=True)
        assert scenes.SCRIPT not in raw, path
        assert scenes.SCRIPT in Page(raw).text, path
    said = visitor.get(f"/instances/{scene.web}/console").text
    assert f"Starting sshd\nlogin: {scenes.SCRIPT}\n" in said


def test_readers_have_no_buttons_and_members_those_that_work_now(api: seeds.Api, scene: scenes.Scene) -> None:
    reader, member = Visitor(api, "reader"), Visitor(api, "demo")
    for path in paths_of(scene):
        assert reader.get(path).actions == {"/logout"}, path
    for path in paths_of_consoles(scene):
        reader.get(path, 403)
    assert "read only" in reader.get("/").words

    def offered(instance_uuid: str) -> set[str]:
        return {action.rpartition("/")[2] for action in member.get(f"/instances/{instance_uuid}").actions} - {"logout"}

    assert {"stop", "reboot", "hard-reboot"} <= offered(scene.web)
    assert {"start", "hard-reboot"} <= offered(scene.stopped) and "stop" not in offered(scene.stopped)
    assert not {"start", "stop", "reboot", "hard-reboot"} & offered(scene.building)
    assert member.get(f"/jobs/{scene.going}").actions == {"/logout", f"/jobs/{scene.going}/cancel"}
    assert member.get(f"/jobs/{scene.broken}").actions == {"/logout", f"/jobs/{scene.broken}/retry"}


def test_readers_can_do_nothing(api: seeds.Api, scene: scenes.Scene) -> None:
    reader = Visitor(api, "reader")
    for path in (
        f"/instances/{scene.web}/stop",
        f"/instances/{scene.web}/delete",
        f"/instances/{scene.web}/console",
        f"/jobs/{scene.going}/cancel",
        f"/jobs/{scene.broken}/retry",
    ):
        assert reader.post(path).status_code == 403, path
    reader.get(f"/instances/{scene.web}/delete", 403)


def test_members_act(api: seeds.Api, scene: scenes.Scene) -> None:
    member = Visitor(api, "demo")
    answer = member.post(f"/instances/{scene.web}/hard-reboot")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/instances/{scene.web}")
    page = member.get(f"/instances/{scene.web}")
    assert "rebooting_hard" in page.words
    assert [element for element in page.all("div") if element.get("data-refresh")]
    assert (
        "while it is in task_state rebooting_hard"
        in Page(member.post(f"/instances/{scene.web}/stop").get_data(as_text=True)).words
    )

    confirm = member.get(f"/instances/{scene.stopped}/delete")
    assert "10.20.0.6" in confirm.words
    answer = member.post(f"/instances/{scene.stopped}/delete")
    assert answer.status_code == 303
    assert "terminate queued" in member.get(answer.headers["Location"]).words
    assert "deleting" in member.get(f"/instances/{scene.stopped}").words


def test_a_console_is_read_by_one_job_at_a_time(api: seeds.Api, scene: scenes.Scene) -> None:
    member = Visitor(api, "demo")
    for _ in range(3):
        assert member.post(f"/instances/{scene.stopped}/console").status_code == 303
    with api.engine.connect() as connection:
        waiting = sa.select(sa.func.count()).where(job_table.c.kind == "console", job_table.c.state == "queued")
        assert connection.execute(waiting).scalar_one() == 1
    assert "Being read" in member.get(f"/instances/{scene.stopped}/console").words


def test_anothers_things_are_not_there(api: seeds.Api, scene: scenes.Scene) -> None:
    member = Visitor(api, "demo")
    for path in (
        f"/instances/{scene.foreign}",
        f"/instances/{scene.foreign}/console",
        f"/instances/{scene.foreign}/delete",
        f"/jobs/{scene.foreign_job}",
        f"/jobs/{scene.foreign_job}/stream",
        "/networks/nope",
        "/instances/nope",
    ):
        member.get(path, 404)
    Visitor(api, "admin").get("/hosts/nope", 404)
    for path in (
        f"/instances/{scene.foreign}/stop",
        f"/instances/{scene.foreign}/delete",
        f"/instances/{scene.foreign}/console",
        f"/jobs/{scene.foreign_job}/cancel",
    ):
        assert member.post(path).status_code == 404, path
    assert "other-1" not in member.get("/instances").text
    assert "other-1" not in member.get("/instances?all_projects=true").text
    assert "other-1" not in member.get(f"/networks/{scene.network}").text
    assert "other-1" in Visitor(api, "admin").get("/instances?all_projects=true").text


def test_long_lists_go_on_over_the_page(api: seeds.Api) -> None:
    for number in range(53):
        api.instance("demo", f"many-{number:02}")
    visitor = Visitor(api, "reader")
    first = visitor.get("/instances")
    following = next(link["href"] for link in first.all("a") if link.get("rel") == "next")
    second = visitor.get(following or "")
    shown = [set(re.findall(r"many-\d\d", page.text)) for page in (first, second)]
    assert [len(names) for names in shown] == [50, 3] and not shown[0] & shown[1]
    assert "page 2 of 2" in second.words
    for page in ("x", "0", "999999"):
        assert visitor.client.get(f"/instances?page={page}").status_code == 200


def test_the_stream_takes_the_session(api: seeds.Api, scene: scenes.Scene) -> None:
    visitor = Visitor(api, "reader")
    page = visitor.get(f"/jobs/{scene.going}")
    path = next(element["data-stream"] for element in page.all("tbody") if "data-stream" in element)
    scenes.add_event(api, scene.going, task="Start the domains", status="changed")
    scenes.end_job(api, scene.going)
    answer = visitor.client.get(path or "")
    text = answer.get_data(as_text=True)
    assert text.count("event: event") == 1 and "Start the domains" in text and "event: end" in text
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert visitor.client.get(f"/jobs/{scene.going}/stream?after=x").status_code == 400
    assert Visitor(api, None).client.get(path or "").status_code == 303


def test_files_are_kept_for_as_long_as_they_are_the_same(api: seeds.Api) -> None:
    client = api.app.test_client()
    for name in rendering.FILES:
        answer = client.get(f"/static/{rendering.VERSION}/{name}")
        assert "immutable" in answer.headers["Cache-Control"]
        assert answer.headers["Content-Type"].startswith(rendering.type_of(name))
    assert client.get("/static/old/style.css").headers["Cache-Control"] == "no-cache"
    for name in ("../session.py", "nope.css", "%2e%2e/session.py"):
        assert client.get(f"/static/{rendering.VERSION}/{name}").status_code == 404


# --- Rendering ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\x1b[1;31mred\x1b[0m plain", "red plain"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\r\nc", "a\nb\nc"),
        ("bell\x07 null\x00 del\x7f c1\x9b", "bell null del c1"),
        ("\tkept\n", "\tkept\n"),
        ("\x1bPsecret\x1b\\shown", "shown"),
        ("\x1b", ""),
        ("ünï ☃", "ünï ☃"),
    ],
)
def test_a_console_is_text_without_what_a_terminal_obeys(raw: str, text: str) -> None:
    assert rendering.console_text(raw) == text


def test_of_a_long_console_the_end_is_shown() -> None:
    assert rendering.console_text("x" * 10**6 + "end").endswith("xend")
    assert len(rendering.console_text("x" * 10**6)) == rendering.CONSOLE_CHARACTERS


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.26, "0.3 s"),
        (42, "42 s"),
        (60, "1 min"),
        (200, "3 min"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (86400 * 4 + 3 * 3600, "4 d 3 h"),
        (None, ""),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert rendering.duration(seconds) == text


@pytest.mark.parametrize(("mebibytes", "text"), [(512, "512 MiB"), (2048, "2 GiB"), (1536, "1.5 GiB"), (0, "0 MiB")])
def test_sizes(mebibytes: int, text: str) -> None:
    assert rendering.size(mebibytes) == text


@pytest.mark.parametrize(
    ("used", "limit", "share", "tone"),
    [(0, 10, 0, "good"), (3, 4, 75, "busy"), (12, 10, 100, "bad"), (0, 0, 0, "good"), (1, 0, 100, "bad")],
)
def test_shares(used: int, limit: int, share: int, tone: str) -> None:
    assert (rendering.percent(used, limit), rendering.fullness(share)) == (share, tone)


def test_local_paths() -> None:
    assert session.local_path("/jobs/x?after=1") == "/jobs/x?after=1"


def test_members_of_one_project_do_not_see_the_others_quota(api: seeds.Api, scene: scenes.Scene) -> None:
    assert "4 of 10" in Visitor(api, "demo").get("/quotas").words
    assert "1 of 10" in Visitor(api, "alt").get("/quotas").words


def test_a_deleted_instance_is_shown_as_such(api: seeds.Api, scene: scenes.Scene) -> None:
    table = tables.instance
    api.write(
        sa.update(table).where(table.c.uuid == scene.web).values(deleted=table.c.id, vm_state="deleted", host=None)
    )
    visitor = Visitor(api, "demo")
    page = visitor.get(f"/instances/{scene.web}")
    assert "deleted" in page.words and page.actions == {"/logout"}
    assert "web-1" not in visitor.get("/instances").text


def test_that_a_task_began_is_shown_until_something_came_of_it(api: seeds.Api, scene: scenes.Scene) -> None:
    visitor = Visitor(api, "demo")
    scenes.add_event(api, scene.going, event="task", task="Start the domains")
    page = visitor.get(f"/jobs/{scene.going}")
    assert [row.get("class") for row in page.all("tr")][1:4] == ["result", "result", "task"]
    scenes.add_event(api, scene.going, task="Start the domains", status="ok")
    page = visitor.get(f"/jobs/{scene.going}")
    assert [row.get("class") for row in page.all("tr")][1:4] == ["result", "result", "result"]


def test_errors_are_pages(api: seeds.Api, scene: scenes.Scene) -> None:
    visitor = Visitor(api, "demo")
    page = visitor.get(f"/instances/{scene.foreign}", 404)
    assert "Not found" in page.words and scene.foreign in page.words
    assert t.cast("dict[str, str]", page.all("link")[0])["rel"] == "icon"
