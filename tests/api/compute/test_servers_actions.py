# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on servers: power, locks, groups, consoles; and what belongs to them."""

from __future__ import annotations

import threading
import time
import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from api.openstack.compute.servers import routes_actions
from tests.api import seeds

SERVERS = "/compute/v2.1/servers"
ClientAs = t.Callable[..., FlaskClient]
Does = t.Callable[..., tuple[int, t.Any]]


def at(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"compute {version}"}


def row(api: seeds.Api, uuid: str) -> t.Any:
    return api.rows(sa.select(tables.instance).where(tables.instance.c.uuid == uuid))[0]


def jobs(api: seeds.Api) -> list[t.Any]:
    return api.rows(sa.select(tables_jobs.job).order_by(tables_jobs.job.c.created_at))


@pytest.fixture
def server(api: seeds.Api) -> str:
    return api.instance("demo", "web", host="hv1")


@pytest.fixture
def does(server: str, client_as: ClientAs) -> Does:
    def post(body: t.Any, user: str = "demo", version: str = "2.1", uuid: str = server) -> tuple[int, t.Any]:
        answer = client_as(user).post(f"{SERVERS}/{uuid}/action", json=body, headers=at(version))
        text = answer.get_data(as_text=True)
        if not text or answer.status_code < 300:
            return answer.status_code, answer.get_json(silent=True)
        return answer.status_code, next(iter(answer.get_json().values()))["message"]

    return post


@pytest.mark.parametrize(
    ("body", "vm_state", "task_state", "kind", "variables"),
    [
        ({"os-stop": None}, "active", "powering-off", "stop", {}),
        ({"os-start": None}, "stopped", "powering-on", "start", {}),
        ({"reboot": {"type": "SOFT"}}, "active", "rebooting", "reboot", {"type": "SOFT"}),
        ({"reboot": {"type": "hard"}}, "stopped", "rebooting_hard", "reboot", {"type": "HARD"}),
        ({"pause": None}, "active", "pausing", "pause", {}),
        ({"unpause": {}}, "paused", "unpausing", "unpause", {}),
        ({"suspend": None}, "active", "suspending", "suspend", {}),
        ({"resume": None}, "suspended", "resuming", "resume", {}),
    ],
)
def test_an_action_begins_with_its_job(
    api: seeds.Api, does: Does, server: str, body: t.Any, vm_state: str, task_state: str, kind: str, variables: t.Any
) -> None:
    table = tables.instance
    api.write(sa.update(table).values(vm_state=vm_state))
    assert does(body) == (202, None)
    assert row(api, server).task_state == task_state
    (job,) = jobs(api)
    assert (job.kind, job.variables) == (kind, variables)
    (action,) = api.rows(sa.select(tables.instance_action))
    assert (action.action, action.request_id, action.user_id) == (kind, job.request_id, api.users["demo"])
    status, message = does(body)
    assert status == 409 and f"Cannot '{kind}' instance {server} while it is in task_state {task_state}" in message
    assert len(jobs(api)) == 1


def test_an_action_in_the_wrong_state_is_a_conflict(does: Does, server: str) -> None:
    assert does({"os-start": None}) == (409, f"Cannot 'start' instance {server} while it is in vm_state active")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"os-stop": None, "os-start": None}, 400),
        ({"nosuch": None}, 400),
        ([], 400),
        ("x", 400),
        ({"reboot": {}}, 400),
        ({"reboot": {"type": "x"}}, 400),
        ({"reboot": None}, 400),
        ({"lock": {"locked_reason": ""}}, 400),
        ({"lock": {"locked_reason": "x"}}, 400),
        ({"lock": 3}, 400),
        ({"addSecurityGroup": {}}, 400),
        ({"addSecurityGroup": {"name": ""}}, 400),
        ({"os-resetState": {"state": "nosuch"}}, 400),
        ({"os-resetState": {"state": "active"}}, 403),
        ({"os-getConsoleOutput": {"length": -2}}, 400),
        ({"os-getConsoleOutput": {"length": "x"}}, 400),
        ({"os-getConsoleOutput": {"length": [1]}}, 400),
    ],
)
def test_bodies_that_cannot_be(does: Does, body: t.Any, status: int) -> None:
    assert does(body)[0] == status


@pytest.mark.parametrize("name", sorted(routes_actions.UNSUPPORTED))
def test_what_nova_can_and_we_cannot_is_said_so(does: Does, name: str) -> None:
    assert does({name: {}}) == (400, f"The action {name} is not supported here.")
    assert does({name: {}}, user="alt")[0] == 404


@pytest.mark.parametrize("name", [*routes_actions.ACTIONS, routes_actions.CONSOLE])
def test_a_foreign_server_is_not_found_and_a_reader_may_nothing(does: Does, name: str) -> None:
    values = {"reboot": {"type": "SOFT"}, "os-resetState": {"state": "error"}}
    values |= {name: {"address": "203.0.113.9"} for name in ("addFloatingIp", "removeFloatingIp")}
    body = {name: values.get(name, {"name": "x"} if "Group" in name else None)}
    assert does(body, user="alt")[0] == 404
    assert does(body, user="reader")[0] == 403


def test_a_locked_server_is_left_alone(api: seeds.Api, does: Does, server: str) -> None:
    assert does({"lock": {"locked_reason": "mine"}}, version="2.73") == (202, None)
    assert (row(api, server).locked, row(api, server).locked_reason) == (True, "mine")
    for body in ({"os-stop": None}, {"addSecurityGroup": {"name": "default"}}, {"forceDelete": None}):
        assert does(body) == (409, f"Instance {server} is locked")
    assert does({"os-stop": None}, user="admin") == (202, None)
    assert does({"unlock": None}) == (202, None)
    assert (row(api, server).locked, row(api, server).locked_reason) == (False, None)


def test_an_administrator_resets_a_state(api: seeds.Api, does: Does, server: str) -> None:
    assert does({"os-resetState": {"state": "error"}}, user="admin") == (202, None)
    assert (row(api, server).vm_state, row(api, server).task_state) == ("error", None)


def test_groups_are_joined_and_left(api: seeds.Api, does: Does, server: str, client_as: ClientAs) -> None:
    web = "11111111-1111-1111-1111-111111111111"
    api.insert(tables.security_group, uuid=web, project_id=api.projects["demo"], name="web")
    assert does({"addSecurityGroup": {"name": web}}) == (202, None)
    assert does({"addSecurityGroup": {"name": "default"}}) == (202, None)  # which is made then
    shown = client_as("demo").get(f"{SERVERS}/{server}").get_json()["server"]["security_groups"]
    assert shown == [{"name": "web"}, {"name": "default"}]
    listed = client_as("demo").get(f"{SERVERS}/{server}/os-security-groups").get_json()["security_groups"]
    assert [(group["name"], len(group["rules"])) for group in listed] == [("web", 0), ("default", 2)]  # its members
    assert listed[0]["id"] == web
    assert does({"removeSecurityGroup": {"name": "web"}}) == (202, None)
    assert does({"removeSecurityGroup": {"name": "web"}})[0] == 404
    assert does({"removeSecurityGroup": {"name": "nosuch"}})[0] == 404
    (default,) = api.rows(sa.select(tables.security_group.c.uuid).where(tables.security_group.c.name == "default"))
    assert [(job.kind, job.variables) for job in jobs(api)] == [
        ("security_groups", {"project": "demo", "changed_groups": [group], "changed_members": [server]})
        for group in (web, default.uuid, web)
    ]


# --- console


def _end_console_jobs(api: seeds.Api, **values: t.Any) -> threading.Thread:
    """Stand in for the worker: end the first console job that comes up."""

    def work() -> None:
        table = tables_jobs.job
        for _look in range(100):
            with transaction(api.engine) as connection:
                open_ = sa.and_(table.c.kind == "console", table.c.state == "queued")
                if connection.execute(sa.update(table).where(open_).values(**values)).rowcount:
                    return
            time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.usefixtures("patience")
def test_the_console_is_read_by_a_job(api: seeds.Api, does: Does, server: str) -> None:
    worker = _end_console_jobs(api, state="succeeded", result={"console": {server: "login:"}})
    assert does({"os-getConsoleOutput": {"length": "5"}}) == (200, {"output": "login:"})
    worker.join()
    assert [(job.kind, job.variables) for job in jobs(api)] == [("console", {"lines": 5})]


@pytest.mark.usefixtures("patience")
def test_the_console_has_as_many_lines_as_were_asked_for(api: seeds.Api, does: Does, server: str) -> None:
    """As Nova counts: the newline at the end begins one."""
    worker = _end_console_jobs(api, state="succeeded", result={"console": {server: "one\ntwo\nthree\n"}})
    assert does({routes_actions.CONSOLE: {"length": 3}}) == (200, {"output": "two\nthree\n"})
    worker.join()


@pytest.mark.usefixtures("patience")
def test_a_console_that_cannot_be_read(api: seeds.Api, does: Does) -> None:
    worker = _end_console_jobs(api, state="failed", message="hv1 is down")
    status, message = does({"os-getConsoleOutput": {}})
    worker.join()
    assert status == 409 and "hv1 is down" in message


def test_a_console_that_takes_long_is_asked_for_once(api: seeds.Api, does: Does) -> None:
    for _time in range(2):
        status, message = does({"os-getConsoleOutput": None})
        assert status == 409 and "ask again" in message
    assert len(jobs(api)) == 1


def test_a_server_without_a_host_has_no_console(api: seeds.Api, does: Does) -> None:
    uuid = api.instance("demo", "new", vm_state="building")
    assert does({"os-getConsoleOutput": {}}, uuid=uuid) == (409, f"Instance {uuid} is not ready")


# --- metadata and tags


def test_metadata(api: seeds.Api, server: str, client_as: ClientAs) -> None:
    client, url = client_as("demo"), f"{SERVERS}/{server}/metadata"
    assert client.get(url).get_json() == {"metadata": {}}
    assert client.post(url, json={"metadata": {"a": "1", "b": "2"}}).get_json() == {"metadata": {"a": "1", "b": "2"}}
    assert client.post(url, json={"metadata": {"b": "3"}}).get_json() == {"metadata": {"a": "1", "b": "3"}}
    assert client.put(url, json={"metadata": {"c": "4"}}).get_json() == {"metadata": {"c": "4"}}
    assert client.get(f"{url}/c").get_json() == {"meta": {"c": "4"}}
    assert client.put(f"{url}/d", json={"meta": {"d": "5"}}).get_json() == {"meta": {"d": "5"}}
    assert client.put(f"{url}/d", json={"meta": {"e": "5"}}).status_code == 400
    assert client.delete(f"{url}/c").status_code == 204
    assert client.delete(f"{url}/c").status_code == client.get(f"{url}/c").status_code == 404
    assert row(api, server).metadata == {"d": "5"}
    many = {str(number): "" for number in range(129)}
    answer = client.post(url, json={"metadata": many})
    assert answer.status_code == 403 and "128" in answer.get_json()["forbidden"]["message"]
    for bad in ({}, {"metadata": None}, {"metadata": {"": "x"}}, {"metadata": {"a": 1}}, {"metadata": {"a/b": ""}}):
        assert client.post(url, json=bad).status_code == 400
    assert client_as("alt").post(url, json={"metadata": {}}).status_code == 404
    assert client_as("reader").post(url, json={"metadata": {}}).status_code == 403


def test_tags(api: seeds.Api, server: str, client_as: ClientAs) -> None:
    client, url = client_as("demo"), f"{SERVERS}/{server}/tags"
    assert client.get(url).status_code == 404  # before 2.26
    new = at("2.26")
    assert client.put(url, json={"tags": ["b", "a", "b"]}, headers=new).get_json() == {"tags": ["a", "b"]}
    answer = client.put(f"{url}/c", headers=new)
    assert (answer.status_code, answer.headers["Location"]) == (201, f"http://localhost{url}/c")
    assert client.put(f"{url}/c", headers=new).status_code == 204
    assert client.get(f"{url}/c", headers=new).status_code == 204
    assert client.delete(f"{url}/c", headers=new).status_code == 204
    assert client.delete(f"{url}/c", headers=new).status_code == client.get(f"{url}/c", headers=new).status_code == 404
    for bad in (["a,b"], ["x" * 61], [""], [1], [str(number) for number in range(51)]):
        assert client.put(url, json={"tags": bad}, headers=new).status_code == 400
    assert client.put(url, json={"tags": [str(number) for number in range(50)]}, headers=new).status_code == 200
    assert client.put(f"{url}/one-more", headers=new).status_code == 400
    assert client.delete(url, headers=new).status_code == 204
    assert client.get(url, headers=new).get_json() == {"tags": []}


# --- what was done


def test_what_was_done_is_listed_and_shown(api: seeds.Api, does: Does, server: str, client_as: ClientAs) -> None:
    assert does({"os-stop": None})[0] == 202
    client, url = client_as("demo"), f"{SERVERS}/{server}/os-instance-actions"
    (action,) = client.get(url).get_json()["instanceActions"]
    assert set(action) == {"action", "instance_uuid", "request_id", "user_id", "project_id", "start_time", "message"}
    assert (action["action"], action["instance_uuid"]) == ("stop", server)
    (action,) = client.get(url, headers=at("2.84")).get_json()["instanceActions"]
    assert "updated_at" in action
    number = api.rows(sa.select(tables.instance_action.c.id))[0].id
    api.insert(
        tables.instance_action_event,
        action_id=number,
        event="stop_on_host",
        host="hv1",
        started_at=1,
        finished_at=2,
        result="Error",
    )
    api.write(sa.update(tables.instance_action).values(message="it would not"))
    shown = client.get(f"{url}/{action['request_id']}").get_json()["instanceAction"]
    assert shown["message"] == "Error" and "events" not in shown
    (event,) = client.get(f"{url}/{action['request_id']}", headers=at("2.84")).get_json()["instanceAction"]["events"]
    assert event == {
        "event": "stop_on_host",
        "start_time": "1970-01-01T00:00:01.000000",
        "finish_time": "1970-01-01T00:00:02.000000",
        "result": "Error",
        "hostId": event["hostId"],
        "details": "it would not",
    }
    shown = client_as("admin").get(f"{url}/{action['request_id']}", headers=at("2.62")).get_json()["instanceAction"]
    (event,) = shown["events"]
    assert (event["host"], event["traceback"]) == ("hv1", None)
    assert client.get(f"{url}/req-nosuch").status_code == 404
    assert client_as("alt").get(url).status_code == 404


def test_what_was_done_comes_in_pages(api: seeds.Api, server: str, client_as: ClientAs) -> None:
    for number in range(5):
        api.insert(
            tables.instance_action,
            instance_uuid=server,
            action="reboot",
            request_id=f"req-{number}",
            started_at=number,
            details={},
        )
    url, request_ids = f"{SERVERS}/{server}/os-instance-actions?limit=2", []
    while url:
        body = client_as("demo").get(url, headers=at("2.58")).get_json()
        request_ids += [action["request_id"] for action in body["instanceActions"]]
        url = body["links"][0]["href"] if "links" in body else ""
    assert request_ids == [f"req-{number}" for number in (4, 3, 2, 1, 0)]
    url = f"{SERVERS}/{server}/os-instance-actions"
    changed = client_as("demo").get(f"{url}?changes-since=1970-01-01T00:00:03Z", headers=at("2.66")).get_json()
    assert len(changed["instanceActions"]) == 2
    assert client_as("demo").get(f"{url}?marker=nosuch", headers=at("2.58")).status_code == 400


# --- the rest


def test_addresses_and_interfaces(api: seeds.Api, server: str, client_as: ClientAs) -> None:
    from tests.api.compute.test_servers_shown import nic

    port, client = nic(api, server, "10.20.0.7", "fd00::7"), client_as("demo")
    addresses = [{"version": 4, "addr": "10.20.0.7"}, {"version": 6, "addr": "fd00::7"}]
    assert client.get(f"{SERVERS}/{server}/ips").get_json() == {"addresses": {"private": addresses}}
    assert client.get(f"{SERVERS}/{server}/ips/private").get_json() == {"private": addresses}
    assert client.get(f"{SERVERS}/{server}/ips/nosuch").status_code == 404
    url = f"{SERVERS}/{server}/os-interface"
    (interface,) = client.get(url).get_json()["interfaceAttachments"]
    assert (interface["port_id"], interface["port_state"], interface["mac_addr"]) == (
        port,
        "ACTIVE",
        "fa:16:3e:00:00:01",
    )
    assert [fixed["ip_address"] for fixed in interface["fixed_ips"]] == ["10.20.0.7", "fd00::7"]
    assert client.get(f"{url}/{port}").get_json() == {"interfaceAttachment": interface}
    assert client.get(f"{url}/nosuch").status_code == client.delete(f"{url}/nosuch").status_code == 404
    assert client.delete(f"{url}/{port}").status_code == 202


def test_what_little_else_there_is(server: str, client_as: ClientAs) -> None:
    client, admin = client_as("demo"), client_as("admin")
    url = f"{SERVERS}/{server}"
    assert client.get(f"{url}/os-server-password").get_json() == {"password": ""}
    assert client.delete(f"{url}/os-server-password").status_code == 204
    assert client.get(f"{url}/os-volume_attachments").get_json() == {"volumeAttachments": []}
    assert client.get(f"{url}/os-volume_attachments/x").status_code == 404
    assert client.get(f"{url}/diagnostics").status_code == 403
    assert admin.get(f"{url}/diagnostics", headers=at("2.48")).get_json()["num_cpus"] == 1
    assert client.post(f"{url}/remote-consoles", json={}).status_code == 404
    assert client.post(f"{url}/remote-consoles", json={}, headers=at("2.6")).status_code == 400


def test_limits(api: seeds.Api, server: str, client_as: ClientAs) -> None:
    url = "/compute/v2.1/limits"
    absolute = client_as("demo").get(f"{url}?reserved=True").get_json()["limits"]["absolute"]
    assert (absolute["maxTotalInstances"], absolute["totalInstancesUsed"]) == (10, 1)
    assert (absolute["totalCoresUsed"], absolute["totalRAMUsed"]) == (1, 512)
    assert "maxSecurityGroups" in absolute and "maxPersonality" in absolute
    latest = client_as("demo").get(url, headers=at("2.96")).get_json()["limits"]["absolute"]
    assert not {"maxSecurityGroups", "maxPersonality", "maxImageMeta", "totalFloatingIpsUsed"} & set(latest)
    assert client_as("demo").get(f"{url}?tenant_id={api.projects['alt']}").status_code == 403
    other = client_as("admin").get(f"{url}?tenant_id={api.projects['alt']}").get_json()["limits"]["absolute"]
    assert other["totalInstancesUsed"] == 0
