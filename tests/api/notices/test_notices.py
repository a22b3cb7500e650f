# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notices of what needs attention: once when it appears, once when it is over, to real servers that may be dead."""

from __future__ import annotations

import hashlib
import hmac
import pathlib
import socket
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.notices import delivery, telling
from api.notices.__main__ import main
from api.notices.matters import HOST, SERVER, Matter
from api.notices.receivers import Webhook, receivers
from tests.api import seeds
from tests.api.notices.listeners import Hook, Post, serving

DOWN = Matter(HOST, "hv1", "hv1", "down", "no answer over ssh")
ERROR = Matter(SERVER, "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11", "web", "error", "No valid host was found")


@pytest.fixture
def hook() -> t.Iterator[Hook]:
    with serving(Hook()) as server:
        yield server


@pytest.fixture
def post() -> t.Iterator[Post]:
    with serving(Post()) as server:
        yield server


@pytest.fixture
def tell(tmp_path: pathlib.Path) -> t.Callable[..., list[str]]:
    """Tell of these matters as the environment says."""

    def tell_all(now: list[Matter], render: telling.Render | None = None, **environment: str) -> list[str]:
        named = receivers({f"NOVALITE_NOTIFY_{name.upper()}": value for name, value in environment.items()})
        return telling.tell(now, str(tmp_path), named, render or telling.Render())

    return tell_all


def abouts(entries: list[dict[str, t.Any]]) -> list[tuple[str, str]]:
    return [(entry["about"], entry["state"]) for entry in entries]


def test_each_is_told_when_it_appears_and_when_it_is_over(tell: t.Callable[..., list[str]], hook: Hook) -> None:
    later = DOWN._replace(problem="no answer for an hour")  # the same matter, in other words
    for now in ([DOWN], [later], [later, ERROR], [ERROR], [], []):
        assert tell(now, webhook=hook.url) == []
    assert [(abouts(body["appeared"]), abouts(body["gone"])) for body in hook.bodies] == [
        ([("hv1", "down")], []),
        ([("web", "error")], []),
        ([], [("hv1", "down")]),
        ([], [("web", "error")]),
    ]
    assert "host hv1 (down): no answer over ssh" in hook.bodies[0]["text"]
    assert hook.bodies[0]["appeared"][0]["problem"] == "no answer over ssh"
    assert len({body["id"] for body in hook.bodies}) == 4


def test_the_same_matter_that_comes_back_is_another_message(tell: t.Callable[..., list[str]], hook: Hook) -> None:
    for now in ([DOWN], [], [DOWN]):
        tell(now, webhook=hook.url)
    assert len({body["id"] for body in hook.bodies}) == 3


def test_mail_goes_to_all_and_says_the_same(tell: t.Callable[..., list[str]], post: Post) -> None:
    assert tell([DOWN, ERROR], mail=post.url) == [] and tell([DOWN, ERROR], mail=post.url) == []
    ((sender, recipients, letter),) = post.got
    assert "cloud@example.org" in sender and [line[9:-1] for line in recipients] == ["a@example.org", "b@example.org"]
    assert letter["Subject"] == "novalite: 2 new" and letter["Auto-Submitted"] == "auto-generated"
    text = letter.get_payload(decode=True)
    assert isinstance(text, bytes) and b"server web (error): No valid host was found" in text


def test_a_receiver_that_is_dead_is_told_later_and_keeps_no_other_from_it(
    tell: t.Callable[..., list[str]], hook: Hook, post: Post
) -> None:
    hook.status = 503
    (failure,) = tell([DOWN], webhook=hook.url, mail=post.url)
    assert failure == f"webhook {hook.url.rpartition('/hooks')[0]} answered 503" and len(post.got) == 1
    hook.status = 204
    assert tell([DOWN, ERROR], webhook=hook.url, mail=post.url) == []
    assert abouts(hook.bodies[-1]["appeared"]) == [("hv1", "down"), ("web", "error")]
    assert [letter["Subject"] for _sender, _to, letter in post.got] == ["novalite: 1 new", "novalite: 1 new"]
    post.refuses = True
    (failure,) = tell([], webhook=hook.url, mail=post.url)
    assert failure.startswith("mail 127.0.0.1:") and abouts(hook.bodies[-1]["gone"])
    post.refuses = False
    assert tell([], webhook=hook.url, mail=post.url) == [] and len(post.got) == 3


def test_nobody_listens_or_somebody_hangs(
    tell: t.Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, post: Post
) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection, and says nothing
        port = silent.getsockname()[1]
        began = time.monotonic()
        (failure,) = tell([DOWN], webhook=f"http://127.0.0.1:{port}/x", mail=post.url)
        assert failure == f"webhook http://127.0.0.1:{port}: timed out" and len(post.got) == 1
    (failure,) = tell([DOWN], webhook=f"http://127.0.0.1:{port}/x", mail=post.url)
    assert "refused" in failure and time.monotonic() - began < 10


def test_a_receiver_that_never_ends_its_answer_is_given_up(
    tell: t.Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, hook: Hook
) -> None:
    monkeypatch.setattr(telling, "PATIENCE", 0.3)
    slow = telling.Render()
    monkeypatch.setattr(telling, "deliver", lambda message, receiver: time.sleep(1))
    (failure,) = tell([DOWN], slow, webhook=hook.url)
    assert failure.endswith("it did not take the message within 0.3 s")
    time.sleep(1)  # the thread ends in this test


def test_a_redirection_is_not_followed(tell: t.Callable[..., list[str]], hook: Hook) -> None:
    hook.status = 302
    (failure,) = tell([DOWN], webhook=hook.url)
    assert failure.endswith("answered 302") and len(hook.got) == 1


def test_the_body_is_signed_with_the_secret_of_a_file(
    tell: t.Callable[..., list[str]], hook: Hook, tmp_path: pathlib.Path
) -> None:
    secret = tmp_path / "hook.secret"
    secret.write_text("kept\n")
    secret.chmod(0o644)
    (failure,) = tell([DOWN], webhook=hook.url, webhook_secret_file=str(secret))
    assert failure == f"the secret {secret} is open to others: chmod 600 it" and not hook.got
    secret.chmod(0o600)
    assert tell([DOWN], webhook=hook.url, webhook_secret_file=str(secret)) == []
    ((headers, body),) = hook.got
    assert headers["X-Novalite-Signature"] == f"sha256={hmac.new(b'kept', body, hashlib.sha256).hexdigest()}"


def test_failures_do_not_repeat_what_may_be_secret(tell: t.Callable[..., list[str]], hook: Hook) -> None:
    hook.status = 500
    (failure,) = tell([DOWN], webhook=hook.url)
    assert "s3cr3t" not in failure
    with pytest.raises(NovaliteError) as refusal:
        receivers({"NOVALITE_NOTIFY_WEBHOOK": "ftp://h/s3cr3t"})
    assert "s3cr3t" not in str(refusal.value)


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({"WEBHOOK": "file:///etc/passwd"}, "write https://"),
        ({"WEBHOOK": "gopher://h/x"}, "write https://"),
        ({"WEBHOOK": "https:///path"}, "write https://"),
        ({"WEBHOOK": "https://me:pw@h/"}, "write https://"),
        ({"WEBHOOK": "https://h:port/"}, "is not an address"),
        ({"WEBHOOK": "https://h/\nX-Other: 1"}, "is not an address"),
        ({"MAIL": "mail.example.org"}, "write smtp"),
        ({"MAIL": "smtp://h?from=a@b&to=c@d&cc=e@f"}, "write smtp"),
        ({"MAIL": "smtp://h?from=a@b"}, "nobody"),
        ({"MAIL": "smtp://h?from=a@b&to=c%0Ad@e"}, "is not a mail address"),
        ({"MAIL": "smtps://me@h?from=a@b&to=c@d"}, "PASSWORD_FILE"),
        ({"MAIL": "smtps://me:pw@h?from=a@b&to=c@d"}, "belongs into the file"),
    ],
)
def test_what_cannot_be_a_receiver_is_refused(environment: dict[str, str], complaint: str) -> None:
    with pytest.raises(NovaliteError, match=complaint):
        receivers({f"NOVALITE_NOTIFY_{name}": value for name, value in environment.items()})


def test_a_password_is_not_sent_in_the_clear(
    tell: t.Callable[..., list[str]], post: Post, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "pw").write_text("pass")
    (tmp_path / "pw").chmod(0o600)
    url = post.url.replace("smtp://", "smtp://me@")
    (failure,) = tell([DOWN], mail=url, mail_password_file=str(tmp_path / "pw"))
    assert "offers no STARTTLS" in failure and not [line for line in post.lines if "AUTH" in line]


def test_another_receiver_is_told_everything(tell: t.Callable[..., list[str]], hook: Hook) -> None:
    tell([DOWN], webhook=hook.url)
    tell([DOWN], webhook=f"{hook.url}/new")
    assert len(hook.got) == 2


def test_a_template_of_ones_own(tell: t.Callable[..., list[str]], hook: Hook, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "own.j2"
    path.write_text("{% for matter in appeared %}{{ matter.about }}: {{ matter.url }}{% endfor %}")
    tell([DOWN, ERROR], telling.Render(str(path), "https://cloud.example.org/"), webhook=hook.url)
    assert hook.bodies[0]["text"] == (
        f"hv1: https://cloud.example.org/hosts/hv1web: https://cloud.example.org/instances/{ERROR.id}"
    )
    path.write_text("{{ nothing.here }}")
    (failure,) = tell([], telling.Render(str(path)), webhook=hook.url)
    assert str(path) in failure and len(hook.got) == 1
    with pytest.raises(NovaliteError, match="cannot be used"):
        telling.Render(str(tmp_path / "missing"))


def test_many_matters_make_one_message_that_can_be_read(tell: t.Callable[..., list[str]], hook: Hook) -> None:
    many = [ERROR._replace(id=str(number), problem="a\nb") for number in range(2000)]
    tell(many, webhook=hook.url)
    ((_headers, body),) = hook.got
    assert hook.bodies[0]["left_out"] == 1950 and "And 1950 more." in hook.bodies[0]["text"] and len(body) < 40000
    assert hook.bodies[0]["appeared"][0]["problem"] == "a?b"
    tell([], webhook=hook.url)
    assert hook.bodies[1]["left_out"] == 1950


def test_two_processes_at_once_tell_once(tell: t.Callable[..., list[str]], hook: Hook, tmp_path: pathlib.Path) -> None:
    inner: list[list[str]] = []
    render = telling.Render()

    def meanwhile(*words: t.Any) -> delivery.Message:
        inner.append(tell([DOWN], webhook=hook.url))
        return render(*words)

    assert tell([DOWN], t.cast(telling.Render, meanwhile), webhook=hook.url) == []
    assert inner == [[]] and len(hook.got) == 1


def test_the_command_tells_what_the_ledger_has(
    api: seeds.Api, hook: Hook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOVALITE_HOME", str(api.app.extensions["settings"].home))
    assert main([]) == 1 and "set NOVALITE_NOTIFY_WEBHOOK or NOVALITE_NOTIFY_MAIL" in capsys.readouterr().err
    monkeypatch.setenv("NOVALITE_NOTIFY_WEBHOOK", hook.url)
    assert main(["--test"]) == 0 and hook.bodies[0]["appeared"] == []
    quiet = api.instance(
        "demo", "quiet", vm_state="building", task_state="networking", updated_at=int(time.time()) - 2000
    )
    assert main([]) == 0
    assert (quiet, "networking") in [(entry["id"], entry["state"]) for entry in hook.bodies[1]["appeared"]]
    api.write(
        sa.update(tables.instance).where(tables.instance.c.uuid == quiet).values(vm_state="active", task_state=None)
    )
    api.change_host("hv1", up=False, down_reason="no answer")
    assert main([]) == 0
    assert [entry["id"] for entry in hook.bodies[2]["gone"]] == [quiet]
    assert abouts(hook.bodies[2]["appeared"]) == [("hv1", "down")]
    hook.status = 500
    api.change_host("hv1", up=True)
    assert main([]) == 1 and "answered 500" in capsys.readouterr().err


def test_the_address_of_a_webhook_is_shown_without_its_path() -> None:
    assert Webhook("https://hooks.example.org:8443/s3cr3t?token=1").shown == "https://hooks.example.org:8443"
