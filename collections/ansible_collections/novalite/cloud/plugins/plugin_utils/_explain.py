# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch told in the steps of "OpenStack Nova internals of instance launching", with its real values.

Pure: results of tasks go in, lines of text come out. What can be secret (passwords, user data, files' contents) is in
no line: of what is injected, the paths are told, and public keys.
"""

from __future__ import annotations

import collections.abc as c
import json

from ..module_utils._graph.launch_steps import BY_OPERATION, REQUEST, LaunchStep
from ..module_utils._json import Json, JsonMapping, JsonObject
from ..module_utils._model.plain_text import without_controls

SHOWN = 4  # instances, hosts or entries that are named; more of them are counted
WIDEST = 400  # characters of a value
_KEYS = "/root/.ssh/authorized_keys"

Lines = list[str]


def story(events: c.Iterable[JsonMapping]) -> Lines:
    """The lines for a whole run, which is recorded as `operation`, `host`, `seconds` and `result` of each task."""
    launch_story, lines, now = Story(0.0), [], 0.0  # type: Story, Lines, float
    for event in events:
        now += event["seconds"]
        lines += launch_story.task_lines(event["operation"], event["host"], event["result"], event["seconds"], now)
    return lines


class Story:
    """The story of one run: what it has come to know of the instances' plans, to tell what hosts do with them."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.plans: JsonObject = {}
        self.names: dict[str, str] = {}

    def task_lines(self, operation: str, host: str, result: JsonMapping, seconds: float, now: float) -> Lines:
        """The lines for what a task of `operation` returned on `host`."""
        if operation == "host_steps":
            return self.built(host, result) if "steps" in result else self.hidden(host, seconds)
        if operation == "server":
            return self.requested(result, seconds)
        if operation == "launch_plan":
            return self.planned(result, seconds)
        return self.recorded(result, seconds, now)

    def requested(self, result: JsonMapping, seconds: float) -> Lines:
        """Steps 1 to 4, from what module `server` returned."""
        instances = result.get("to_build") or []
        if not instances:
            return []
        self.names.update((instance["uuid"], instance["name"]) for instance in instances)
        lines = _step_head(REQUEST, 1, "playbooks/launch.yml")
        lines += _each(instances, _request)
        lines += _step_head("server", 2, "module server", seconds)
        lines += _once(instances, _needs)
        lines += _step_head("server", 3, "the same transaction")
        lines += _each(
            instances,
            lambda instance: (
                f"{instance['domain_name']} = {instance['uuid']}, vm_state {instance['vm_state']}, "
                f"task_state {instance['task_state']}"
            ),
        )
        lines += _step_head("job", 4, "the next task of the same run; a job, where the API was asked")
        uuids = [instance["uuid"] for instance in instances]
        message: JsonObject = {"method": "run_instance", "args": {"topic": "compute", "instance_uuids": uuids[:SHOWN]}}
        message["args"].update(request_id=result.get("request_id"), project=instances[0]["project"]["name"])
        return [*lines, f"     {json.dumps(message)}{_more(len(uuids))}"]

    def planned(self, result: JsonMapping, seconds: float) -> Lines:
        """Steps 5 to 10, and 13, from what step `launch_plan` or `launch_record` returned."""
        self.plans = result.get("hosts") or {}
        instances = [instance for instance in result.get("instances") or [] if instance["host"] and _is_new(instance)]
        took = {call["operation"]: call["seconds"] for call in (result.get("launch") or {}).get("calls") or ()}
        explained = {explanation["uuid"]: explanation for explanation in result.get("explanations") or ()}
        lines: Lines = []
        if explained:
            lines += _step_head("scheduler", 5, "step launch_plan", took.get("scheduler", seconds))
            lines += _each(list(explained.values()), _verdict)
        for unplaced in result.get("unplaced") or ():
            lines.append(f"     {unplaced['message']}")
        if refused := result.get("refused"):
            lines.append(f"     refused, and nothing of it is kept: {refused}")
        if not instances:
            return lines
        lines += _step_head("scheduler", 6, "a claim, in the transaction that chose")
        lines += _each(instances, _claim)
        lines += _step_head("scheduler", 7, "journalctl -t novalite")
        lines += _each(
            instances, lambda instance: f"Casting to compute {instance['host']} for run_instance of {instance['uuid']}"
        )
        lines += _step_head("fixed_ip", 8, "step launch_plan")
        lines += _each(instances, lambda instance: f"{instance['name']}: task_state {instance['task_state']}")
        lines += _step_head("fixed_ip", 9, "step launch_plan", took.get("fixed_ip"))
        lines += _each(instances, _interfaces)
        lines += _step_head("fixed_ip", 10, "guarded writes to the pools")
        lines += _each(instances, _pools)
        lines += _step_head("server_plan", 13, "step launch_plan, on the controller", took.get("server_plan"))
        return lines + self._xml(instances)

    def _xml(self, instances: c.Sequence[JsonMapping]) -> Lines:
        xml = {
            domain["uuid"]: domain["xml"]
            for plans in self.plans.values()
            for domain in (plans.get("build") or {}).get("domains") or ()
        }
        shown = next((instance for instance in instances if instance["uuid"] in xml), None)
        if shown is None:
            return []
        lines = [f"     {line}" for line in xml[shown["uuid"]].splitlines()]
        others = len(xml) - 1
        if others:
            lines.append(f"     and {others} more like it, with names, MACs, addresses and paths of their own")
        return lines

    def built(self, host: str, result: JsonMapping) -> Lines:
        """List what a host did, step by step, from what module `host_steps` returned."""
        trip = result.get("trip") or {}
        steps = [step for step in result.get("steps") or () if step["module"] in BY_OPERATION]
        if not steps:
            return []
        own = sum(step["seconds"] for step in steps)
        lines = [f"---- {host}: one trip over ssh, {trip.get('seconds', own):.3f} s, of which its steps {own:.3f} s"]
        build = ((self.plans.get(host) or {}).get("build")) or {}
        for step in steps:
            launch_steps = BY_OPERATION[step["module"]]
            for place, launch_step in enumerate(launch_steps):
                seconds = step["seconds"] if not place else None
                lines += _head(launch_step, f"module {step['module']} on {host}", seconds)
                outcome = step["result"]
                if outcome.get("failed"):
                    lines.append(f"     failed: {_cut(outcome.get('msg', 'no message'))}")
                    break
                lines += [f"     {line}" for line in _values(launch_step, step["module"], outcome, build)]
        return lines

    def hidden(self, host: str, seconds: float) -> Lines:
        """List what can be told of a trip whose result may be shown to nobody."""
        return [
            f"---- {host}: one trip over ssh, {seconds:.3f} s; what it carried is secret: a password, user data, files"
        ]

    def recorded(self, result: JsonMapping, seconds: float, now: float) -> Lines:
        """Step 21, from what step `launch_record` returned, and what it planned anew."""
        instances = result.get("instances") or []
        lines = _step_head("launch_record", 21, "step launch_record", seconds) if instances else []
        lines += _each(instances, _state)
        lines += self.planned(result, seconds)
        if not self.plans and instances:
            lines.append(f"---- {now - self.began:.3f} s in all")
        return lines


def _head(step: LaunchStep, here: str, seconds: float | None = None) -> Lines:
    took = "" if seconds is None else f", {seconds:.3f} s"
    return [f"[{step.label:>2}] {step.component} {step.method} -> {here}{took}"]


def _step_head(operation: str, number: int, here: str, seconds: float | None = None) -> Lines:
    (step,) = (step for step in BY_OPERATION[operation] if step.number == number)
    return _head(step, here, seconds)


def _more(count: int) -> str:
    return f" and {count - SHOWN} more" if count > SHOWN else ""


def _each(values: c.Sequence[JsonMapping], line: c.Callable[[JsonMapping], str | Lines]) -> Lines:
    """The lines for the first values, and how many more there are."""
    lines: Lines = []
    for value in values[:SHOWN]:
        text = line(value)
        lines += [f"     {part}" for part in ([text] if isinstance(text, str) else text)]
    return [*lines, f"     {_more(len(values)).strip()}"] if len(values) > SHOWN else lines


def _once(instances: c.Sequence[JsonMapping], line: c.Callable[[JsonMapping], str]) -> Lines:
    """The different lines that there are for the instances."""
    return _each([{"line": text} for text in dict.fromkeys(map(line, instances))], lambda value: str(value["line"]))


def _cut(value: object) -> str:
    text = without_controls(str(value), " ")
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _is_new(instance: JsonMapping) -> bool:
    return instance.get("vm_state") == "building"


def _request(instance: JsonMapping) -> str:
    key = (instance.get("key") or {}).get("name")
    networks = ", ".join(nic["network"]["name"] for nic in instance["nics"])
    groups = ", ".join(group["name"] for group in instance["security_groups"])
    image = (instance.get("image") or {}).get("name") or "none (a volume)"
    return _cut(
        f"{instance['name']}: flavor {instance['flavor']['name']}, image {image}, key {key or 'none'}, "
        f"networks {networks or 'none'}, security groups {groups or 'none'}"
    )


def _needs(instance: JsonMapping) -> str:
    flavor, image = instance["flavor"], instance.get("image") or {}
    disk = f"{flavor['root_gb']} GiB" if flavor["root_gb"] else "the image's size"
    text = f"{flavor['name']} is {flavor['vcpus']} vCPU, {flavor['memory_mb']} MiB of memory, a disk of {disk}"
    if image:
        text += f"; {image['name']} is {image['disk_format']}, {image['size']} bytes, {image['checksum'][:19]}…"
    return _cut(f"{text}; the quota has room")


def _verdict(explained: JsonMapping) -> Lines:
    lines = [_cut(f"{explained['name']}: {explained['message']}")]
    steps = explained.get("filters") or ()
    if steps:
        removed = [step for step in steps if step["removed"]]
        names = ", ".join(step["filter"] for step in steps)
        lines.append(_cut(f"  {steps[0]['start']} hosts in, {steps[-1]['end']} out of the filters {names}"))
        lines += [
            _cut(f"  {step['filter']} removed {host}: {why}")
            for step in removed
            for host, why in step["removed"].items()
        ][:SHOWN]
    return lines + [_cut(f"  {line}") for line in (explained.get("lines") or ())[:SHOWN] if explained.get("weights")]


def _claim(instance: JsonMapping) -> str:
    flavor = instance["flavor"]
    return (
        f"{instance['name']}: {flavor['vcpus']} vCPU, {flavor['memory_mb']} MiB, "
        f"{flavor['root_gb'] + flavor['ephemeral_gb']} GiB of {instance['host']}"
    )


def _interfaces(instance: JsonMapping) -> Lines:
    return [
        f"{instance['name']}: {nic['mac']} on {nic['network']['name']}, "
        + (", ".join(filter(None, (nic["ip"], nic["ipv6"]))) or "no address")
        for nic in instance["nics"]
    ]


def _pools(instance: JsonMapping) -> Lines:
    return [
        f"{instance['name']}: {nic['ip'] or nic['ipv6']} of {nic['network']['cidr'] or nic['network']['cidr_v6']}"
        + (f", whose DHCP server on {instance['host']} is {nic['dhcp_server']}" if nic["dhcp_server"] else "")
        for nic in instance["nics"]
        if nic["ip"] or nic["ipv6"]
    ]


def _state(instance: JsonMapping) -> str:
    if instance["vm_state"] == "active":
        return f"{instance['name']}: vm_state active on {instance['host']}, launched_at {instance['launched_at']}"
    fault = (instance.get("fault") or {}).get("message")
    return _cut(f"{instance['name']}: vm_state {instance['vm_state']}" + (f": {fault}" if fault else ""))


# --- what hosts did ---


def _values(step: LaunchStep, module: str, outcome: JsonMapping, plan: JsonMapping) -> Lines:
    """The values of one step of a host: what it changed, or that there was nothing to change."""
    tell = _TELL.get((module, step.number)) or _TELL.get((module, None)) or _differences
    lines, room = tell(outcome, plan), _ROOM.get(module, 12)
    if not lines and not outcome.get("changed"):
        return ["there already"]
    return lines if len(lines) <= room else [*lines[:room], f"and {len(lines) - room} more lines"]


def _after(outcome: JsonMapping) -> JsonMapping:
    """The state after the step, where its difference was asked for."""
    diff = outcome.get("diff") or {}
    first = diff[0] if isinstance(diff, list) and diff else diff
    after = first.get("after") if isinstance(first, dict) else None
    return after if isinstance(after, dict) else {}


def _differences(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [_cut(f"{name}: {_plain(value)}") for name, value in _after(outcome).items()]


def _plain(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(_plain, value)) or "none"
    return str(value)


def _images(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{image['path']}: {image['status']}" for image in outcome.get("images") or ()]


def _disks(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    lines = _differences(outcome, plan)
    return lines or [f"{disk['path']}: {', '.join(disk['created']) or 'kept'}" for disk in outcome.get("disks") or ()]


def _injected(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    lines = [f"by {outcome['backend']}"] if outcome.get("backend") and outcome.get("instances") else []
    return lines + [
        f"{guest['uuid']}: {', '.join(guest['written']) or 'nothing to write'}"
        for guest in outcome.get("instances") or ()
    ]


def _key(_outcome: JsonMapping, plan: JsonMapping) -> Lines:
    keys = dict.fromkeys(key for guest in plan.get("injections") or () for key in guest["keys"])
    return [_cut(f"{_KEYS}: {key}") for key in keys] or ["no key was asked for"]


def _dhcp(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    entries = [
        f"{network['bridge']}/hosts: {','.join(filter(None, (host['mac'], host['hostname'], host['ip'])))}"
        for network in plan.get("dhcp_networks") or ()
        for host in network["hosts"]
    ]
    lines = [
        f"{bridge}/hosts: {line}" for bridge, state in _after(outcome).items() for line in state.get("hosts") or ()
    ]
    running = [f"{bridge}: dnsmasq runs" for bridge, state in _after(outcome).items() if state.get("running")]
    return (lines or entries) + running


def _filters(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [
        line.rstrip()
        for name, xml in _after(outcome).items()
        if name != "nova-base" or len(_after(outcome)) == 1
        for line in str(xml).splitlines()
    ]


def _chains(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    after = _after(outcome)
    lines = []
    for family in ("IPv4", "IPv6"):
        chains = after.get(family) or {}
        instances = [name for name in chains if name.startswith("nova-inst-")]
        shown = dict.fromkeys(name for name in ("nova-local", "nova-tap", *instances[:1]) if name in chains)
        shown.update(dict.fromkeys(name for name in chains if name.startswith(("nova-sg-", "nova-ipv"))))
        lines += [f"{family}: {rule}" for name in shown for rule in chains[name]]
        if len(instances) > 1:
            lines.append(f"{family}: and {len(instances) - 1} more chains like {instances[0]}")
    return lines


def _config_drives(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    return [f"{drive['uuid']}/disk.config" for drive in plan.get("config_drives") or () if outcome.get("changed")]


def _proxies(outcome: JsonMapping, plan: JsonMapping) -> Lines:
    networks = plan.get("metadata_networks") or ()
    return [f"169.254.169.254 on {network['bridge']}" for network in networks if outcome.get("changed")]


def _domains(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{domain['name']}: {domain['action'] or 'runs already'}" for domain in outcome.get("domains") or ()]


def _running(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{domain['name']}: {domain['state']}" for domain in outcome.get("domains") or ()]


def _room(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    facts = outcome.get("compute_host")
    if not facts:
        return []
    hypervisor = f"{facts['hypervisor_type']} {facts['hypervisor_version']}, libvirt {facts['libvirt_version']}"
    return [f"{facts['vcpus']} vCPU, {facts['memory_mb']} MiB, {facts['disk_gb']} GiB; {hypervisor}"]


def _answered(outcome: JsonMapping, _plan: JsonMapping) -> Lines:
    return [f"{name}: after {seconds} s" for name, seconds in (outcome.get("answered") or {}).items()]


_TELL: dict[tuple[str, int | None], c.Callable[[JsonMapping, JsonMapping], Lines]] = {
    ("compute_host", None): _room,
    ("image_cache", None): _images,
    ("disk", None): _disks,
    ("nbd_inject", 16): _injected,
    ("nbd_inject", 17): _key,
    ("dhcp", None): _dhcp,
    ("nwfilter", None): _filters,
    ("firewall", None): _chains,
    ("config_drive", None): _config_drives,
    ("metadata_proxy", None): _proxies,
    ("domain", 19): _domains,
    ("domain", 20): _running,
    ("server_wait", None): _answered,
}
_ROOM = {"firewall": 40, "nwfilter": 24, "router": 8}
