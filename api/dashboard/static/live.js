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

function row(one, start, withHost) {
  const made = element("tr", "", one.event);
  const cell = (label) => {
    const found = made.appendChild(document.createElement("td"));
    found.dataset.label = label;
    return found;
  };
  cell("Time").textContent = since(start, one.created_at);
  const task = cell("Task");
  task.append(element("bdi", one.task || one.play || one.event));
  if (one.text) task.append(" ", element("span", one.text, "note"));
  if (withHost) cell("Host").append(element("bdi", one.host || ""));
  const result = cell("Result");
  if (one.status) result.append(badge(one.status));
  return made;
}

function follow(body) {
  const source = new EventSource(body.dataset.stream);
  const begun = document.getElementById("job-started");
  let start = begun ? Number(begun.dataset.seconds) : null;
  let seen = 0;
  source.addEventListener("event", (message) => {
    const one = JSON.parse(message.data);
    if (one.seq <= seen) return; // it came again after the connection broke
    seen = one.seq;
    if (start === null) start = Date.parse(one.created_at) / 1000;
    for (const empty of body.querySelectorAll(".empty, .task")) empty.remove();
    body.append(row(one, start, "hosts" in body.dataset));
  });
  source.addEventListener("job", (message) => {
    const job = JSON.parse(message.data);
    const told = document.getElementById("job-message");
    document.getElementById("job-state").replaceChildren(badge(job.state));
    told.hidden = !job.message;
    told.replaceChildren(element("bdi", job.message || ""));
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
  const found = main && [...main.children].find((one) => one.tagName === "DIV" && one.className === "");
  if (!found) return location.reload();
  part.replaceWith(document.adoptNode(found));
  if (found.dataset.refresh) return refresh(found);
}

for (const body of document.querySelectorAll("[data-stream]")) follow(body);
for (const part of document.querySelectorAll("[data-refresh]")) refresh(part);
