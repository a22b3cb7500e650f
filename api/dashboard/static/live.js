// What goes on shows by itself. Every page works without this: it then loads itself anew.
"use strict";

const TONES = {
  succeeded: "good", ok: "good", failed: "bad", unreachable: "bad", queued: "busy", running: "busy", changed: "busy",
};

function element(name, text, className) {
  const made = document.createElement(name);
  if (text) made.textContent = text; // never as HTML
  if (className) made.className = className;
  return made;
}

function badge(word) {
  return element("span", word, `badge ${TONES[word] || "plain"}`);
}

function since(start, moment) {
  const seconds = Math.max(0, Date.parse(moment) / 1000 - start);
  return seconds < 60 ? `${Math.round(seconds)} s` : `${Math.floor(seconds / 60)} min`;
}

function row(event, start, withHost) {
  const made = element("tr", "", event.event);
  const cell = (label) => {
    const td = made.appendChild(document.createElement("td"));
    td.dataset.label = label;
    return td;
  };
  cell("Time").textContent = since(start, event.created_at);
  const task = cell("Task");
  task.append(element("bdi", event.task || event.play || event.event));
  if (event.text) task.append(" ", element("span", event.text, "note"));
  if (withHost) cell("Host").append(element("bdi", event.host || ""));
  const result = cell("Result");
  if (event.status) result.append(badge(event.status));
  return made;
}

function follow(body) {
  const source = new EventSource(body.dataset.stream);
  const begun = document.getElementById("job-started");
  let start = begun ? Number(begun.dataset.seconds) : null;
  let seen = 0;
  source.addEventListener("event", (message) => {
    const event = JSON.parse(message.data);
    if (event.seq <= seen) return; // it came again after the connection broke
    seen = event.seq;
    if (start === null) start = Date.parse(event.created_at) / 1000;
    for (const empty of body.querySelectorAll(".empty, .task")) empty.remove();
    const last = body.lastElementChild; // a heading below which nothing came
    if (event.event === "play" && last && last.className === "play") last.remove();
    const made = row(event, start, "hosts" in body.dataset);
    if (event.event === "step") {
      // how far a step is takes the place of what was said of it before
      made.dataset.step = JSON.stringify([event.host, event.task]);
      const before = [...body.querySelectorAll("[data-running]")].find((line) => line.dataset.step === made.dataset.step);
      if (event.status === "running") made.dataset.running = "";
      if (before) return before.replaceWith(made);
    }
    body.append(made);
  });
  source.addEventListener("job", (message) => {
    const job = JSON.parse(message.data);
    const note = document.getElementById("job-message");
    document.getElementById("job-state").replaceChildren(badge(job.state));
    note.hidden = !job.message;
    note.replaceChildren(element("bdi", job.message || ""));
  });
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
  source.addEventListener("error", () => {
    // refused, not only cut off: too many streams at once, or the session is over
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  });
  addEventListener("pagehide", () => source.close());
}

async function refresh(part) {
  const pause = Number(part.dataset.refresh) * 1000;
  await new Promise((done) => setTimeout(done, pause));
  // whoever is about to press something would miss it, or press another thing
  const busy = document.hidden || part.contains(document.activeElement);
  if (busy) return refresh(part);
  const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" }).catch(() => null);
  if (!answer || !answer.ok) return refresh(part);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const main = fresh.querySelector("main");
  const division = main && [...main.children].find((child) => child.tagName === "DIV" && child.className === "");
  if (!division) return location.reload();
  part.replaceWith(document.adoptNode(division));
  if (division.dataset.refresh) return refresh(division);
}

for (const body of document.querySelectorAll("[data-stream]")) follow(body);
for (const part of document.querySelectorAll("[data-refresh]")) refresh(part);
