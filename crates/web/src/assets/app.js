// Keeps a page current by server-sent events, sends commands, and knows the keys of `descartes watch`.
// Text of loops comes as HTML that the server escaped, or is set as text.
"use strict";

const main = document.querySelector("main[data-live]");
const link = document.getElementById("link");
const output = document.getElementById("output");
const answers = document.getElementById("answers");
const KEEP_LINES = 1000;

// Parts of the page

function put(element, html) {
  const open = [...element.querySelectorAll("details[open][id]")].map((one) => one.id);
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  element.innerHTML = html;
  keep(element, open, focused);
}

function replaceRow(id, html) {
  const old = document.getElementById(id);
  if (!old) return;
  const body = document.createElement("tbody");
  body.innerHTML = html;
  const row = body.firstElementChild;
  const open = [...old.querySelectorAll("details[open][id]")].map((one) => one.id);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const link = focused && focused.getAttribute("href");
  old.replaceWith(row);
  keep(row, open, "");
  if (link) row.querySelector(`a[href="${CSS.escape(link).replace(/\\\//g, "/")}"]`)?.focus();
}

function keep(element, open, focused) {
  for (const id of open) {
    const details = element.querySelector("#" + CSS.escape(id));
    if (details) details.open = true;
  }
  if (focused) document.getElementById(focused)?.focus();
}

// Output

let first = output ? Number(output.dataset.from) : 0;

function print(news) {
  if (!output || !news) return;
  const below = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
  if (news.anew || news.from < first || news.from > first + output.children.length) {
    output.replaceChildren();
    first = news.from;
  }
  while (output.children.length > news.from - first) output.lastElementChild.remove();
  for (const [kind, text] of news.lines) {
    const line = document.createElement("div");
    line.className = kind;
    line.textContent = text;
    output.append(line);
  }
  while (output.children.length > KEEP_LINES) {
    output.firstElementChild.remove();
    first += 1;
  }
  if (below) output.scrollTop = output.scrollHeight;
}

// The stream. A browser has six connections to a server: windows that nobody sees need none, and of those
// that are seen four have a stream each. The others ask again and again, by the connections that are left.

const STREAMS = 4;
const POLL_MS = 500;

let at = main ? main.dataset.at : "";
let source = null;
let release = null;
let connecting = false;
let next = 0;
let again = 0;

function say(state, words) {
  link.dataset.state = state;
  link.textContent = words;
}

function take(id, news) {
  at = id;
  if (news.title) document.title = news.title + " – descartes";
  for (const [id, html] of Object.entries(news.parts || {})) {
    const element = document.getElementById(id);
    if (element) put(element, html);
  }
  for (const [id, html] of Object.entries(news.rows || {})) replaceRow(id, html);
  print(news.output);
  for (const id of news.effects || []) effective(id);
  tick();
}

function address(more) {
  const live = main.dataset.live;
  return live + (live.includes("?") ? "&" : "?") + "at=" + encodeURIComponent(at) + more;
}

// One of the places for a stream, as the function that gives it back; null where all are taken.
function place() {
  if (!navigator.locks) return Promise.resolve(() => {});
  return new Promise((resolve) => {
    const ask = (number) => {
      if (number === STREAMS) return resolve(null);
      navigator.locks.request("stream " + number, { ifAvailable: true }, (lock) => {
        if (!lock) return void ask(number + 1);
        return new Promise((free) => resolve(free));
      });
    };
    ask(0);
  });
}

async function connect() {
  if (!main || source || connecting) return;
  clearTimeout(next);
  connecting = true;
  release = await place();
  if (document.hidden) disconnect();
  else if (release) stream();
  else await poll();
  connecting = false;
}

function stream() {
  source = new EventSource(address(""));
  source.addEventListener("open", alive);
  source.addEventListener("view", (event) => take(event.lastEventId, JSON.parse(event.data)));
  source.addEventListener("error", lost);
}

async function poll() {
  try {
    const answer = await fetch(address("&once=true"));
    if (!answer.ok) return lost();
    const told = await answer.json();
    if (told.news) take(told.id, told.news);
    alive();
    if (!document.hidden) next = setTimeout(connect, POLL_MS);
  } catch {
    lost();
  }
}

function alive() {
  again = 0;
  say("live", "live");
}

async function lost() {
  disconnect();
  say("lost", "reconnecting …");
  // A stream says nothing about why it ended: whoever is signed out has to sign in again.
  const answer = await fetch(location.href, { method: "HEAD" }).catch(() => null);
  if (answer && (answer.status === 401 || answer.status === 403)) {
    say("lost", "signed out: load the page again");
    return;
  }
  again = Math.min(again + 1, 5);
  next = setTimeout(() => document.hidden || connect(), 400 * again);
}

function disconnect() {
  clearTimeout(next);
  if (source) source.close();
  if (release) release();
  source = release = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) disconnect();
  else connect();
});
window.addEventListener("online", () => connect());

// Times that pass

function span(ms) {
  let seconds = Math.max(0, Math.floor(ms / 1000));
  const days = Math.floor(seconds / 86400);
  const hours = Math.floor((seconds % 86400) / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  seconds %= 60;
  if (days) return days + "d" + (hours ? hours + "h" : "");
  if (hours) return hours + "h" + (minutes ? minutes + "m" : "");
  if (minutes) return minutes + "m" + (seconds ? seconds + "s" : "");
  return seconds + "s";
}

function tick() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-since], time[data-until]")) {
    const { since, until } = time.dataset;
    const shown = span(since ? now - Number(since) : Number(until) - now);
    if (time.textContent !== shown) time.textContent = shown;
  }
}
setInterval(() => document.hidden || tick(), 1000);

// Steering: both answers are shown, the second when it comes

const waiting = new Map();
const told = new Map();

function tell(tone, words) {
  const line = document.createElement("li");
  line.className = "t-" + tone;
  line.textContent = words;
  answers.prepend(line);
  while (answers.children.length > 6) answers.lastElementChild.remove();
  return line;
}

function effective(id) {
  const verb = waiting.get(id);
  if (!verb) return;
  waiting.delete(id);
  told.set(id, tell("good", verb + ": effective"));
}

async function send(form, button) {
  const address = button?.getAttribute("formaction") || form.getAttribute("action");
  const verb = address.split("/").pop();
  if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) return;
  const asked = tell("dim", verb + ": sent …");
  const body = new URLSearchParams(new FormData(form));
  try {
    const answer = await fetch(address, { method: "POST", body });
    const text = answer.ok ? null : await answer.json();
    asked.remove();
    if (text) {
      tell("bad", verb + ": " + text.error + (text.hint ? " (" + text.hint + ")" : ""));
      return;
    }
    if (form.dataset.clear) form.reset();
    await lines(answer.body, (line) => {
      if (line.answer === "accepted" && line.id !== undefined) waiting.set(line.id, verb);
      const done = line.answer === "effective";
      if (done) waiting.delete(line.id);
      // The stream of the page may have told it already, in fewer words.
      if (done) told.get(line.id)?.remove();
      if (done && form.dataset.then) location.href = "/loops/" + encodeURIComponent(line.loop_id);
      tell(done ? "good" : "work", verb + ": " + (done ? "effective: " : "") + line.message);
    });
  } catch (error) {
    asked.remove();
    tell("bad", verb + ": the server does not answer (" + error.message + ")");
  }
}

async function lines(stream, each) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    held += value || "";
    const all = held.split("\n");
    held = all.pop();
    for (const line of all) if (line) each(JSON.parse(line));
    if (done) return;
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.plain) return;
  event.preventDefault();
  send(form, event.submitter);
});

// Keys: those of the buttons and fields, j and k through lists, Escape out of a field

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing) {
    if (event.key === "Enter" && !event.shiftKey && event.target.id === "say") {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
    return;
  }
  const links = [...document.querySelectorAll("#rows td.name > a, table.history td a")];
  const here = links.indexOf(document.activeElement);
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (step && links.length && (here >= 0 || event.key === "j" || event.key === "k")) {
    event.preventDefault();
    links[Math.max(0, Math.min(links.length - 1, here + step))].focus();
    return;
  }
  if (event.key === "q" || event.key === "Escape") {
    if (location.pathname !== "/") location.href = "/";
    return;
  }
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.matches("button")) target.click();
  else target.focus();
});

// Another folder has settings of its own.
document.getElementById("project")?.addEventListener("change", ({ target }) => {
  const prompt = document.getElementById("prompt");
  if (prompt.value === prompt.defaultValue) location.href = "/start?project=" + encodeURIComponent(target.value);
});

if (output) output.scrollTop = output.scrollHeight;
for (const select of document.querySelectorAll(".search select")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
if (!document.hidden) connect();
