# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status page in a browser: headless Chromium, Debian's, over the application on a port of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
import typing as t

import pytest
import sqlalchemy as sa
from werkzeug.serving import make_server

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job as job_table
from api.v1 import streams
from tests.api import measured, scenes, seeds
from tests.support.browser import chromium, listening, network_namespace

if t.TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize

PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 800}

Scheme = t.Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
SIGHTS: tuple[tuple[ViewportSize, Scheme], ...] = ((DESK, "light"), (PHONE, "dark"))  # each size and scheme once

# Of every text: how far its colour stands out from what is behind it (WCAG 2.2, 1.4.3)
CONTRAST = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(one).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.data.trim());
    if (!own || !node.checkVisibility() || node.tagName === "NOSCRIPT") continue;
    const [one, other] = [light(channels(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) poor.push(`${node.tagName}.${node.className} ${ratio.toFixed(2)}: ${node.textContent.trim()}`);
  }
  return poor;
}"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
SMALL = """() => [...document.querySelectorAll(".button, button, header a, input:not([type=hidden])")]
  .filter((one) => one.getBoundingClientRect().height < 24).map((one) => one.outerHTML)"""


def expect(seen: t.Any) -> t.Any:
    """Playwright's assertions, which wait."""
    from playwright.sync_api import expect

    return expect(seen)


class Site:
    """The application on a port, and what browsers had to complain about."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        self.url = url
        self.complaints: list[str] = []
        self.contexts: list[BrowserContext] = []

    def visit(self, user: str | None = "demo", path: str = "/", **options: t.Any) -> Page:
        """A page of a browser of its own, logged in through the form."""
        context = self.browser.new_context(**{"viewport": DESK, **options})
        self.contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))
        page.goto(self.url + path)
        if user is not None:
            page.get_by_label("User").fill(user)
            page.get_by_label("Password").fill(seeds.password(user))
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(self.url + path)
        return page

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@pytest.fixture(scope="module")
def namespace() -> t.Iterator[str | None]:
    """A network namespace for browser and server."""
    with network_namespace(f"pages-{os.getpid()}") as path:
        yield path


@pytest.fixture(scope="module")
def browser(namespace: str | None, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Browser]:
    with chromium(namespace, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def site(api: seeds.Api, browser: Browser, namespace: str | None, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Site]:
    monkeypatch.setattr(streams, "PAUSE", 0.05)
    with contextlib.closing(listening(namespace)) as listener:
        port = listener.getsockname()[1]
        server = make_server("127.0.0.1", port, api.app, threaded=True, fd=listener.fileno())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    opened = Site(browser, f"http://127.0.0.1:{port}")
    yield opened
    for context in opened.contexts:
        context.close()
    monkeypatch.setattr(streams, "LONGEST", 0.0)  # streams that nobody reads any more end
    server.shutdown()
    thread.join()
    server.server_close()
    assert opened.complaints == []


def paths_of(scene: scenes.Scene) -> list[str]:
    """Pages to which no link leads, or several with one address but an id."""
    return [
        "/",
        "/instances?q=web&status=active&sort=name",
        *(f"/instances/{uuid}" for uuid in (scene.web, scene.stopped, scene.building, scene.failed)),
        *(f"/jobs/{number}" for number in (scene.launched, scene.going, scene.broken)),
        "/jobs/nosuch",
    ]


def kind_of(path: str) -> str:
    """Return the path with something in the place of ids, which is the same for pages that look alike."""
    return re.sub(r"(?<=/)([0-9a-f-]{32,36}|[0-9]+|hv[0-9]+)(?=/|$)", "id", path.partition("?")[0])


def walk(page: Page, url: str, begin: t.Sequence[str]) -> t.Iterator[str]:
    """Visit `begin`, and of each kind of page to which links lead from there the first; yields the paths."""
    todo, seen = list(begin), {kind_of(path) for path in begin}
    while todo:
        path = todo.pop(0)
        page.goto(url + path)
        for link in page.locator("a[href^='/']").evaluate_all("links => links.map((one) => one.getAttribute('href'))"):
            if kind_of(link) not in seen and not link.endswith(".svg"):
                seen.add(kind_of(link))
                todo.append(link)
        yield path


def has_axe(user: str, number: int, size: ViewportSize, scheme: str, thorough: bool) -> bool:
    """Tell whether axe, which takes its time, looks at a page: at each of the administrator's, of which who may less
    sees parts, in one size and scheme or (thorough) two; at the others' (thorough) in one."""
    if user == "admin":
        return (size, scheme) in (SIGHTS if thorough else [SIGHTS[number % 2]])
    return thorough and (size, scheme) == (DESK, "dark")


@pytest.mark.parametrize(("user", "least"), [("admin", 50), ("demo", 30), ("reader", 14)])
def test_every_page_fits_and_keeps_nobody_out(
    site: Site, api: seeds.Api, scene: scenes.Scene, user: str, least: int, pytestconfig: pytest.Config
) -> None:
    thorough = pytestconfig.getoption("--thorough")
    scenes.add_things(api)
    measured.measure(api.app, "hv1", scene.web)
    page = site.visit(user, "/quotas", viewport=DESK, has_touch=True)
    walked = []
    for path in walk(page, site.url, paths_of(scene)):
        walked.append(path)
        assert page.title().endswith(" · novalite")
        for size, scheme in itertools.product((DESK, PHONE), SCHEMES) if thorough else SIGHTS:
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            where = (path, size["width"], scheme)
            assert page.evaluate(OVERFLOW) <= 0, where
            assert page.evaluate(CONTRAST) == [], where
            assert page.evaluate(SMALL) == [], where
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(246, 247, 249)") == (scheme == "light"), where
            if has_axe(user, len(walked), size, scheme, thorough):
                assert defects(page) == [], where
    assert len(walked) >= least, walked
    # the browser reports the status of what it loaded, which is right
    site.complaints = [complaint for complaint in site.complaints if "404" not in complaint]


def defects(page: Page) -> list[str]:
    """Return what axe finds that is serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    result = Axe().run(page, options={"resultTypes": ["violations"]})
    return [
        f"{each['impact']} {each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in result.response["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def test_the_login_fits_too_and_says_what_was_wrong(site: Site, scene: scenes.Scene) -> None:
    page = site.visit(None, viewport=PHONE)
    expect(page.get_by_label("User")).to_be_focused()
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(CONTRAST) == []
    page.get_by_label("User").fill("demo")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("Wrong user, password or project.")
    expect(page.get_by_label("User")).to_have_value("demo")
    expect(page.get_by_label("Password")).to_be_focused()
    # the browser reports the status of what it loaded, which is right
    site.complaints = [complaint for complaint in site.complaints if "401" not in complaint]


def test_one_logs_in_looks_acts_and_logs_out(site: Site, api: seeds.Api, scene: scenes.Scene) -> None:
    page = site.visit("demo", "/instances")
    page.get_by_role("link", name="web-1").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("web-1")
    expect(page.get_by_role("main")).to_contain_text("10.20.0.5")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("powering-off")
    assert page.get_by_role("button", name="Stop", exact=True).count() == 0
    # the host is done: the page shows it by itself
    api.write(
        sa.update(tables.instance)
        .where(tables.instance.c.uuid == scene.web)
        .values(vm_state="stopped", task_state=None, power_state=4)
    )
    expect(page.get_by_role("heading", level=1)).to_contain_text("stopped")
    expect(page.get_by_role("button", name="Start")).to_be_visible()

    page.get_by_text("More actions").click()
    page.get_by_label("Name of the image").fill("before-the-sale")
    page.get_by_role("button", name="Take a snapshot").click()
    expect(page.get_by_role("row", name="createImage").first).to_be_visible()
    api.write(sa.update(tables.instance).where(tables.instance.c.uuid == scene.web).values(task_state=None))
    page.reload()

    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("terminate")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{site.url}/login")
    page.goto(f"{site.url}/instances")
    page.wait_for_url(re.compile(r"/login\?next=/instances$"))


@pytest.mark.parametrize("script", [True, False])
def test_one_launches_after_a_look_at_the_plan(site: Site, scene: scenes.Scene, script: bool) -> None:
    page = site.visit("demo", "/instances", java_script_enabled=script)
    page.get_by_role("link", name="Launch…").click()
    page.get_by_label("Name").fill("shop")
    page.get_by_label("Flavor").select_option(label="m1.nano: 1 vCPU, 96 MiB, 1 GiB")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Launch shop?")
    expect(page.get_by_role("main")).to_contain_text("10.20.0.")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_label("Name")).to_have_value("shop")
    page.get_by_label("Name").fill("shop-2")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("shop-2 building")


@pytest.mark.parametrize("script", [True, False])
def test_users_are_made_by_forms_and_make_keys(site: Site, api: seeds.Api, script: bool) -> None:
    page = site.visit("admin", "/users", java_script_enabled=script)
    page.get_by_role("link", name="Create a user…").click()
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("Password").fill("the password of ada")
    page.get_by_label("Project").select_option(label="demo")
    page.get_by_role("button", name="Create a user").click()
    expect(page.get_by_role("row", name="ada")).to_contain_text("member in demo")

    other = site.visit("ada", "/keys", java_script_enabled=script)
    other.get_by_role("link", name="Generate a key…").click()
    other.get_by_label("Name").fill("new")
    other.get_by_role("button", name="Generate a key").click()
    expect(other.get_by_role("main")).to_contain_text("BEGIN RSA PRIVATE KEY")
    other.get_by_role("link", name="I have kept it").click()
    other.get_by_role("row", name="new").get_by_role("link", name="Delete…").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Delete the key new?")
    other.get_by_role("button", name="Delete").click()
    expect(other.get_by_role("row", name="new")).to_have_count(0)

    page.get_by_role("row", name="ada").get_by_role("link", name="Delete…").click()
    expect(page.get_by_role("main")).to_contain_text("Its roles: member in demo.")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("row", name="ada")).to_have_count(0)


def test_one_searches(site: Site, scene: scenes.Scene) -> None:
    page = site.visit("demo", "/instances")
    page.get_by_label("Search").fill("10.20.0.6")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".list tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="batch")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    page.get_by_role("link", name="Name", exact=True).click()
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")


def test_a_job_shows_its_progress_as_it_happens(site: Site, api: seeds.Api, scene: scenes.Scene) -> None:
    page = site.visit("admin", f"/jobs/{scene.going}")
    rows = page.locator("#events tr")
    expect(rows).to_have_count(2)
    page.evaluate("window.same = true")
    scenes.add_event(api, scene.going, event="task", task="Make ready")
    expect(rows.last).to_contain_text("Make ready")
    scenes.add_event(api, scene.going, task=f"Start {scenes.SCRIPT}", host="hv2", status="changed", text=scenes.SCRIPT)
    expect(rows).to_have_count(3)
    expect(rows.last).to_contain_text(f"Start {scenes.SCRIPT}")
    expect(rows.last).to_contain_text("hv2")
    api.write(sa.update(job_table).where(job_table.c.id == scene.going).values(message="2 of 3 are there"))
    expect(page.locator("#job-message")).to_have_text("2 of 3 are there")
    assert page.evaluate("window.same") is True  # it was not loaded anew
    scenes.end_job(api, scene.going)
    expect(page.locator("#job-state")).to_have_text("succeeded")
    expect(page.get_by_role("row", name="Ended")).to_be_visible()
    assert page.get_by_role("button", name="Cancel").count() == 0


def test_it_works_without_a_script(site: Site, scene: scenes.Scene) -> None:
    page = site.visit("demo", f"/instances/{scene.stopped}", java_script_enabled=False)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("powering-on")
    assert page.locator("noscript meta[http-equiv=refresh], meta[http-equiv=refresh]").count() == 1
    page.goto(f"{site.url}/jobs/{scene.going}")
    expect(page.locator("#events tr")).to_have_count(2)


def test_it_works_with_a_keyboard(site: Site, scene: scenes.Scene) -> None:
    page = site.visit("demo", "/instances")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Launch an instance")


def test_a_reader_sees_and_cannot_act(site: Site, scene: scenes.Scene) -> None:
    page = site.visit("reader", f"/instances/{scene.web}")
    expect(page.get_by_text("read only")).to_be_visible()
    assert [button.inner_text() for button in page.get_by_role("button").all()] == ["Log out"]
    assert page.get_by_text("Delete…").count() == 0


def test_what_a_guest_or_a_tenant_says_is_not_run(site: Site, scene: scenes.Scene) -> None:
    page = site.visit("demo", f"/instances/{scene.web}/console")
    expect(page.locator("pre.console")).to_contain_text(f"login: {scenes.SCRIPT}")
    for path in (f"/instances/{scene.failed}", f"/instances/{scene.web}", f"/jobs/{scene.broken}"):
        page.goto(site.url + path)
        expect(page.get_by_role("main")).to_contain_text(scenes.SCRIPT)
        assert "broken" not in page.title() or "odd" in page.title()
        assert page.locator("main img, main script").count() == 0
