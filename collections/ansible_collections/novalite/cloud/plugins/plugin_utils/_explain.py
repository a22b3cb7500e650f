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
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._screen.host_story import cut, values

SHOWN = 4  # instances, hosts or entries that are named; more of them are counted
LEGEND = (
    "Steps [1] to [21] are numbered here; their methods are those of Nova's releases Diablo to Essex. What follows",
    "`article:` is of the article of 2011: the numbers of its eight arrows, and its functions.",
)

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
        lines = [*LEGEND, *_step_head(REQUEST, 1, "playbooks/launch.yml"), *_each(instances, _request)]
        lines += _step_head("server", 2, "module server", seconds)
        lines += _once(instances, _needs)
        lines += _each(instances, _names)
        there = ", ".join(f"{instance['name']} on {instance['host']}" for instance in result.get("existing") or ())
        lines.append(cut(f"     already running? {there + ', left alone' if there else 'none of these names'}"))
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
        if any(step["module"] == "domain_info" and not step["result"].get("failed") for step in result["steps"]):
            lines.append("     already created? no: the names of the domains are free here")
        build = ((self.plans.get(host) or {}).get("build")) or {}
        for step in steps:
            launch_steps = BY_OPERATION[step["module"]]
            for place, launch_step in enumerate(launch_steps):
                seconds = step["seconds"] if not place else None
                lines += _head(launch_step, f"module {step['module']} on {host}", seconds)
                outcome = step["result"]
                if outcome.get("failed"):
                    lines.append(f"     failed: {cut(outcome.get('msg', 'no message'))}")
                    break
                lines += [f"     {line}" for line in values(launch_step, step["module"], outcome, build)]
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
    names = [f"({','.join(map(str, step.arrows))})"] if step.arrows else []
    article = f"; article: {' '.join([*names, ', '.join(step.article)]).strip()}" if names or step.article else ""
    return [f"[{step.label:>2}] {step.component} {step.method} -> {here}{took}{article}"]


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


def _is_new(instance: JsonMapping) -> bool:
    return instance.get("vm_state") == "building"


def _request(instance: JsonMapping) -> str:
    key = (instance.get("key") or {}).get("name")
    networks = ", ".join(nic["network"]["name"] for nic in instance["nics"])
    groups = ", ".join(group["name"] for group in instance["security_groups"])
    image = (instance.get("image") or {}).get("name") or "none (a volume)"
    return cut(
        f"{instance['name']}: flavor {instance['flavor']['name']}, image {image}, key {key or 'none'}, "
        f"networks {networks or 'none'}, security groups {groups or 'none'}"
    )


def _needs(instance: JsonMapping) -> str:
    flavor, image = instance["flavor"], instance.get("image") or {}
    disk = f"{flavor['root_gb']} GiB" if flavor["root_gb"] else "the image's size"
    text = f"{flavor['name']} is {flavor['vcpus']} vCPU, {flavor['memory_mb']} MiB of memory, a disk of {disk}"
    if image:
        text += f"; {image['name']} is {image['disk_format']}, {image['size']} bytes, {image['checksum'][:19]}…"
    return cut(f"{text}; the quota has room")


def _names(instance: JsonMapping) -> str:
    groups = [group["name"] for group in instance["security_groups"]]
    made = " (made with the first server of a project)" if "default" in groups else ""
    return cut(f"{instance['name']}: host name {instance['hostname']}; groups {', '.join(groups) or 'none'}{made}")


def _verdict(explained: JsonMapping) -> Lines:
    lines = [cut(f"{explained['name']}: {explained['message']}")]
    steps = explained.get("filters") or ()
    if steps:
        removed = [step for step in steps if step["removed"]]
        left = ", ".join(f"{step['filter']} {step['end']}" for step in steps)
        lines.append(cut(f"  {steps[0]['start']} hosts in; left after each filter: {left}"))
        lines += [
            cut(f"  {step['filter']} removed {host}: {why}")
            for step in removed
            for host, why in step["removed"].items()
        ][:SHOWN]
    if explained.get("weights"):
        lines += [cut(f"  {line}") for line in (explained.get("lines") or ())[:SHOWN]]
        lines.append(
            "  a weight is the sum of its parts: 1 for the best of these hosts, 0 for the last, by its multiplier"
        )
    return lines


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
    return cut(f"{instance['name']}: vm_state {instance['vm_state']}" + (f": {fault}" if fault else ""))
