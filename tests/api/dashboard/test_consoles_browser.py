# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both consoles of a guest of QEMU's, behind libvirt, in a browser."""

from __future__ import annotations

import functools
import pathlib
import tempfile
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ssh import config
from api.work import consoles
from tests.api import seeds
from tests.api.dashboard.consoles import UUID, libvirt, read, wait
from tests.api.dashboard.test_pages_browser import Site, browser, expect, namespace, site  # noqa: F401 - fixtures

# How many points of noVNC's picture are not black
BRIGHT = """() => {
  const canvas = document.querySelector("#console canvas");
  if (!canvas || !canvas.width) return 0;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const points = copy.getImageData(0, 0, canvas.width, canvas.height).data;
  let bright = 0;
  for (let at = 0; at < points.length; at += 4) if (points[at] + points[at + 1] + points[at + 2] > 200) bright++;
  return bright;
}"""


@pytest.fixture(scope="module")
def guest() -> t.Iterator[tuple[str, pathlib.Path]]:
    # pytest's own directories are closed to others
    with tempfile.TemporaryDirectory(prefix="guest-") as directory, libvirt(pathlib.Path(directory)) as opened:
        yield opened


@pytest.fixture
def serial_log(
    api: seeds.Api, guest: tuple[str, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> t.Iterator[pathlib.Path]:
    uri, log = guest
    monkeypatch.setattr(consoles, "RELAY", functools.partial(config.relay_command, uri=uri))
    pathlib.Path(api.app.extensions["settings"].home, "ssh_config").write_text("# hv1 is this machine\n")
    api.instance("demo", "echo", uuid=UUID, host="hv1", vm_state="active")
    yield log


def test_the_screen_is_seen_and_keys_arrive(site: Site, serial_log: pathlib.Path) -> None:  # noqa: F811
    page = site.visit(path=f"/instances/{UUID}")
    page.get_by_role("button", name="Console", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Connected.")
    assert page.url == f"{site.url}/console/novnc"  # the token is gone
    page.wait_for_function(f"({BRIGHT})() > 50")
    page.keyboard.press("Q")
    wait(lambda: read(serial_log).lower().endswith(b"q"))
    before = page.evaluate(BRIGHT)
    page.get_by_text("Type a text").click()
    page.get_by_label("Text", exact=True).fill("Typed-42")
    page.get_by_role("button", name="Type it").click()
    wait(lambda: read(serial_log).endswith(b"Typed-42"))
    page.wait_for_function(f"({BRIGHT})() > {before}")
    booted = read(serial_log).count(b">")
    page.get_by_role("button", name="Ctrl-Alt-Del").click()
    wait(lambda: read(serial_log).count(b">") > booted)


def test_the_serial_console_echoes_and_its_address_works_once(site: Site, serial_log: pathlib.Path) -> None:  # noqa: F811
    page = site.visit(path=f"/instances/{UUID}")
    addresses: list[str] = []
    page.on("framenavigated", lambda frame: addresses.append(frame.url))
    page.get_by_role("button", name="Serial console").click()
    expect(page.get_by_role("status")).to_contain_text("one user at a time")
    page.keyboard.type("hello")
    wait(lambda: read(serial_log).endswith(b"hello"))
    expect(page.locator(".xterm-rows")).to_contain_text("hello")
    (address,) = [address for address in addresses if "#" in address]
    again = site.visit(user=None, path=address.removeprefix(site.url))
    expect(again.get_by_role("status")).to_contain_text("works once")
    assert any("403" in complaint for complaint in site.complaints)
    site.complaints.clear()
