# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Horizon in a browser: all panels, and an instance's life; no error, and no page that asks the API without end.

Each step leaves a picture in $NOVALITE_HOME/horizon.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
import secrets
import tempfile
import time
import typing as t

from playwright.sync_api import Error, Locator, Response, expect

from .cloud import Cloud, said
from .horizon_site import PATIENCE, Call, Site, site
from .report import Report

PART = "horizon"
OF_A_PAGE = 45  # requests to the API at most
A_SECOND = 10  # and more of them while a table is refreshed
HOST = 240.0  # seconds for what hosts do
ERRORS = ".alert-danger"
SIDEBAR = "[...document.querySelectorAll('nav a')].map(link => link.getAttribute('href'))"
ROW = "?action=row_update&"  # 404 is how a table learns that an object is gone
NO_PANELS = re.compile(r"/(auth|settings)/|.*/openrc/$|/(home/|identity/)?$")
# What the API refuses Horizon, and rightly
REFUSED = {
    r"POST /identity/v3/auth/tokens: 401\b": "a token for the domain, in which nobody has a role",
    r"GET /volume/v3/\w+/volumes/[\w-]+: 404\b": "a volume that is gone, which is how its row learns of it",
}


def run(report: Report, cloud: Cloud) -> None:
    shots = cloud.home / "horizon"
    shots.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE * 1000)
    member, admin = cloud.environment(), cloud.environment("openrc-admin")
    with (
        tempfile.TemporaryDirectory(prefix="novalite-horizon-") as directory,
        site(member["OS_AUTH_URL"], pathlib.Path(directory)) as opened,
    ):
        walk = Walk(report, opened, shots)
        walk.log_in(member)
        walk.panels()
        Life(walk, f"hz-{secrets.token_hex(2)}", cloud, _floating_ips(cloud)).run()
        walk.log_out()
        walk.log_in(admin)
        walk.panels()


def _floating_ips(cloud: Cloud) -> bool:
    """Tell whether there are floating IPs: over the lab, they are made."""
    if not (cloud.home / "lab/hypervisors/subnet").exists():
        return False
    command = ["ansible-playbook", "-i", "inventories/lab", "tests/clients/horizon.yml"]
    done = said(command, HOST, {**cloud.environment(), "NOVALITE_HOME": str(cloud.home)})
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return True


class Walk:
    """Somebody at a browser."""

    def __init__(self, report: Report, opened: Site, shots: pathlib.Path) -> None:
        self.report, self.page, self.url, self.calls = report, opened.page, opened.url, opened.calls
        self.shots = shots
        self.failures: list[str] = []
        self.steps = 0
        self.page.on("response", self._answered)
        self.page.on("pageerror", lambda error: self.failures.append(f"a script: {error}"))

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and not (response.status == 404 and ROW in response.url):
            self.failures.append(f"{response.request.method} {response.url}: {response.status}")

    @contextlib.contextmanager
    def step(self, name: str, pages: int = 1) -> t.Iterator[None]:
        """What is done on `pages` pages: ends with a picture, no error there, and no more requests than allowed."""
        self.failures.clear()
        first, began = len(self.calls), time.monotonic()
        self.steps += 1
        picture = self.shots / f"{self.steps:03d}-{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}.png"
        with self.report.step(PART, name):
            failed: list[str] = []
            try:
                yield
                self.settle()
            except (Error, AssertionError) as error:
                failed = [str(error)]
            self.page.screenshot(path=picture)
            made = self.calls[first:]
            shown = [text for text in self.page.locator(ERRORS).all_inner_texts() if text.strip()]
            refused = [str(call) for call in made if _is_wrong(call)]
            wrong = [*failed, *shown, *self.failures, *refused]
            assert not wrong, "\n".join(wrong)
            most = OF_A_PAGE * pages + A_SECOND * (time.monotonic() - began if pages > 1 else 0)
            assert len(made) <= most, f"{len(made)} requests to the API: {[call.path for call in made[-10:]]}"

    def settle(self) -> None:
        """Wait until the page has loaded what it asked for."""
        self.page.wait_for_load_state("networkidle")

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)
        self.settle()

    def log_in(self, login: t.Mapping[str, str]) -> None:
        with self.step(f"log in as {login['OS_USERNAME']}", pages=2):
            self.go("/auth/login/")
            self.page.locator("#id_username").fill(login["OS_USERNAME"])
            self.page.locator("#id_password").fill(login["OS_PASSWORD"])
            self.page.locator("#loginBtn").click()
            self.page.wait_for_url(re.compile("/project/|/admin/|/identity/"))

    def log_out(self) -> None:
        with self.step("log out", pages=2):
            self.go("/auth/logout/")

    def panels(self) -> None:
        """Look at each panel that the menu has."""
        links = {link for link in self.page.evaluate(SIDEBAR) if link and link.startswith("/")}
        paths = sorted(link for link in links if not NO_PANELS.match(link))
        with self.report.step(PART, f"the menu has {len(paths)} panels"):
            assert len(paths) >= 15, paths
        for path in paths:
            with self.step(path):
                self.go(path)
                expect(self.page.locator("h1").first).to_be_visible()

    # --- tables and forms

    def row(self, table: str, name: str) -> Locator:
        return self.page.locator(f"#{table} tbody tr", has_text=name)

    def act(self, table: str, name: str, action: str) -> None:
        """Choose an action in the menu of a row."""
        row = self.row(table, name)
        row.locator("[data-toggle=dropdown]").first.click()
        row.locator(".dropdown-menu").get_by_text(action, exact=True).click()

    @property
    def dialog(self) -> Locator:
        return self.page.locator(".modal-dialog").last

    def choose(self, field: str, **option: t.Any) -> None:
        """Choose in a list, which the theme hides behind one of its own."""
        self.dialog.locator(field).select_option(**option, force=True)

    def submit(self) -> None:
        """Send the form, or confirm, and wait for the page that comes then."""
        self.page.evaluate("window.isBefore = true")
        self.dialog.locator(".modal-footer").locator(".btn-primary, .btn-danger").last.click()
        self.page.wait_for_function("window.isBefore === undefined && document.readyState === 'complete'")
        self.settle()

    def await_text(self, table: str, name: str, text: str) -> None:
        expect(self.row(table, name)).to_contain_text(text, timeout=HOST * 1000)

    def await_gone(self, table: str, name: str) -> None:
        expect(self.row(table, name)).to_have_count(0, timeout=HOST * 1000)


def _is_wrong(call: Call) -> bool:
    return call.status >= 400 and not any(re.match(pattern, str(call)) for pattern in REFUSED)


@dataclasses.dataclass
class Life:
    """An instance from its launch to its deletion, and what is given to it."""

    walk: Walk
    name: str
    cloud: Cloud
    floating: bool

    def run(self) -> None:
        self.group()
        self.launch()
        self.look()
        if self.floating:
            self.associate()
        self.volume()
        self.resize()
        self.remove()

    def group(self) -> None:
        walk = self.walk
        with walk.step("create a security group", pages=2):
            walk.go("/project/security_groups/")
            walk.page.get_by_role("link", name="Create Security Group").click()
            walk.dialog.locator("#id_name").fill(self.name)
            walk.submit()
        for menu, fields, shown in (
            ("ssh", {}, "22 (SSH)"),
            ("tcp", {"#id_port": "8000"}, "8000"),
            ("all_tcp", {}, "1 - 65535"),
            ("icmp", {"#id_icmp_type": "8", "#id_icmp_code": "0"}, "8 - 0"),
        ):
            with walk.step(f"add the rule {menu}", pages=3):
                walk.page.get_by_role("link", name="Add Rule").click()
                walk.choose("#id_rule_menu", value=menu)
                for field, text in fields.items():
                    walk.dialog.locator(field).fill(text)
                walk.submit()
                expect(walk.page.locator("#rules tbody")).to_contain_text(shown)
        with walk.step("delete a rule", pages=2):
            walk.row("rules", "8000").get_by_text("Delete Rule").click()
            walk.submit()
            expect(walk.row("rules", "8000")).to_have_count(0)

    def launch(self) -> None:
        walk = self.walk
        with walk.step("launch an instance", pages=4):
            walk.go("/project/instances/")
            walk.page.locator("#instances__action_launch-ng").click()
            walk.dialog.locator("#name").fill(self.name)
            self._turn_to("Source")
            walk.dialog.locator("label#vol-create", has_text="No").click()
            self._allocate("ami-tiny")
            self._turn_to("Flavor")
            self._allocate("m1.nano")
            self._turn_to("Networks")
            if not walk.dialog.locator(".transfer-allocated:visible tr", has_text="private").count():
                self._allocate("private")
            self._turn_to("Security Groups")
            self._allocate(self.name)
            self._turn_to("Key Pair")
            if not walk.dialog.locator(".transfer-allocated:visible tr", has_text="test").count():
                self._allocate("test")
            walk.dialog.get_by_role("button", name="Launch Instance").click()
            expect(walk.page.locator(".modal-dialog")).to_have_count(0)
            walk.await_text("instances", self.name, "Active")

    def _turn_to(self, title: str) -> None:
        """Turn to a step of the wizard."""
        self.walk.dialog.get_by_text(title, exact=True).first.click()
        expect(self.walk.dialog.locator(".transfer-available:visible")).to_have_count(1)

    def _allocate(self, name: str) -> None:
        table = self.walk.dialog.locator(".transfer-available:visible tr", has_text=name)
        table.locator("button.fa-arrow-up").first.click()

    def look(self) -> None:
        walk = self.walk
        with walk.step("the instance's page", pages=2):
            walk.go("/project/instances/")
            walk.row("instances", self.name).get_by_role("link", name=self.name).click()
            expect(walk.page.locator(".tab-pane.active")).to_contain_text("ami-tiny")
        for tab, shown in (("Interfaces", "private"), ("Log", "Freeing unused kernel"), ("Action Log", "Create")):
            with walk.step(f"its tab {tab}", pages=2):
                walk.page.locator("ul.nav-tabs a", has_text=re.compile(rf"^\s*{tab}\s*$")).click()
                expect(walk.page.locator(".tab-pane.active")).to_contain_text(shown)

    def associate(self) -> None:
        walk = self.walk
        with walk.step("allocate a floating IP and lead it to the instance", pages=6):
            walk.go("/project/floating_ips/")
            walk.page.get_by_role("link", name="Allocate IP To Project").click()
            walk.choose("#id_pool", label="public")
            walk.submit()
            walk.go("/project/instances/")
            walk.act("instances", self.name, "Associate Floating IP")
            walk.choose("#id_ip_id", index=1)
            port = walk.dialog.locator("#id_port_id option", has_text=self.name).get_attribute("value")
            walk.choose("#id_port_id", value=port)
            walk.submit()
            walk.go("/project/floating_ips/")
            walk.await_text("floating_ips", self.name, "Active")
        with walk.step("take the floating IP back", pages=4):
            walk.row("floating_ips", self.name).get_by_text("Disassociate").click()
            walk.submit()
            walk.act("floating_ips", "public", "Release Floating IP")
            walk.submit()

    def volume(self) -> None:
        walk = self.walk
        with walk.step("create a volume", pages=3):
            walk.go("/project/volumes/")
            walk.page.get_by_role("link", name="Create Volume").click()
            walk.dialog.locator("#id_name").fill(self.name)
            walk.submit()
            walk.await_text("volumes", self.name, "Available")
        with walk.step("attach it", pages=4):
            walk.act("volumes", self.name, "Manage Attachments")
            value = walk.dialog.locator("#id_instance option", has_text=self.name).get_attribute("value")
            walk.choose("#id_instance", value=value)
            walk.submit()
            walk.await_text("volumes", self.name, "In-use")
        with walk.step("detach it", pages=4):
            walk.act("volumes", self.name, "Manage Attachments")
            walk.dialog.locator("tbody").get_by_text("Detach Volume", exact=True).click()
            walk.submit()
            walk.await_text("volumes", self.name, "Available")
        with walk.step("delete it", pages=3):
            walk.act("volumes", self.name, "Delete Volume")
            walk.submit()
            walk.await_gone("volumes", self.name)

    def resize(self) -> None:
        walk = self.walk
        with walk.step("resize the instance", pages=4):
            walk.go("/project/instances/")
            walk.act("instances", self.name, "Resize Instance")
            walk.choose("#id_flavor", label="m1.tiny")
            walk.submit()
            walk.await_text("instances", self.name, "Confirm or Revert Resize/Migrate")
        with walk.step("confirm it", pages=3):
            walk.row("instances", self.name).get_by_text("Confirm Resize/Migrate").first.click()
            walk.await_text("instances", self.name, "Active")
            walk.await_text("instances", self.name, "m1.tiny")

    def _await_end(self) -> None:
        """Wait until the instance is gone: Horizon shows none that is being deleted."""
        deadline = time.monotonic() + HOST
        with contextlib.closing(self.cloud.connect()) as sdk:
            while list(sdk.compute.servers(name=self.name)):
                assert time.monotonic() < deadline, f"{self.name} is still there"
                time.sleep(1)

    def remove(self) -> None:
        walk = self.walk
        with walk.step("delete the instance", pages=3):
            walk.act("instances", self.name, "Delete Instance")
            walk.submit()
            walk.await_gone("instances", self.name)
            self._await_end()
        with walk.step("delete the security group", pages=3):
            walk.go("/project/security_groups/")
            walk.act("security_groups", self.name, "Delete Security Group")
            walk.submit()
            walk.await_gone("security_groups", self.name)
