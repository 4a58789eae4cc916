// Keeps the marked parts of a page up to date. Everything works without it.
//
//   data-live="URL"      on an element with an id: it is taken anew from the page at URL when something has changed
//   data-until="TIME"    the time that is left until then is counted down in the element
//   data-estimate="URL"  on a form: after a change of it, the element that data-into names is taken from URL with the form's fields
"use strict";

const POLL_MS = 5000;
const TYPING_MS = 350;
// What belongs to one form alone, or cannot be in an address.
const KEPT_BACK = ["csrf", "once"];

// Makes one node like another. What is the same stays, with its focus, its scroll position, and what was typed or unfolded.
function liken(node, wanted) {
  if (node.nodeType !== wanted.nodeType || node.nodeName !== wanted.nodeName) {
    node.replaceWith(wanted);
    return;
  }
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.data !== wanted.data) node.data = wanted.data;
    return;
  }
  for (const { name } of [...node.attributes]) {
    if (!wanted.hasAttribute(name) && name !== "open") node.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (node.getAttribute(name) !== value && name !== "autofocus") node.setAttribute(name, value);
  }
  const children = [...wanted.childNodes];
  children.forEach((child, index) => {
    let now = node.childNodes[index];
    if (child.id) {
      const same = [...node.children].find((one) => one.id === child.id);
      if (!same) {
        node.insertBefore(child, now ?? null);
        return;
      }
      if (same !== now) node.insertBefore(same, now ?? null);
      now = same;
    }
    if (!now || (now.id && !child.id)) node.insertBefore(child, now ?? null);
    else liken(now, child);
  });
  while (node.childNodes.length > children.length) node.lastChild.remove();
}

async function load(url, signal) {
  const answer = await fetch(url, { signal, credentials: "same-origin", headers: { Accept: "text/html" } });
  if (!answer.ok || answer.redirected) throw new Error(`${url}: ${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function take(id, page) {
  const [node, wanted] = [document.getElementById(id), page.getElementById(id)];
  if (node && wanted) liken(node, wanted);
  countDown();
}

// ---- Parts that follow what happens

const live = () => [...document.querySelectorAll("[data-live][id]")];
let loading = false;
let again = false;

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  try {
    for (const url of new Set(live().map((part) => part.dataset.live))) {
      const ids = live().filter((part) => part.dataset.live === url).map((part) => part.id);
      const page = await load(url);
      ids.forEach((id) => take(id, page));
    }
  } catch {
    // The next change or the next visit asks again.
  }
  loading = false;
  if (again) {
    again = false;
    refresh();
  }
}

let events = null;
let polling = null;

function follow() {
  if (events || polling || !live().length) return;
  events = new EventSource("/portal/events");
  let known = false;
  events.onopen = () => {
    // What changed while there was no stream.
    if (known) refresh();
    known = true;
  };
  events.onmessage = () => {
    refresh();
    if (!live().length) rest();
  };
  events.onerror = () => {
    if (events?.readyState !== EventSource.CLOSED) return;
    events = null;
    polling = setInterval(refresh, POLL_MS);
  };
}

function rest() {
  events?.close();
  clearInterval(polling);
  events = polling = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    rest();
  } else if (live().length) {
    refresh();
    follow();
  }
});

// ---- Countdowns

function left(seconds) {
  const parts = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  return parts.filter(([amount]) => amount).slice(0, 2).map((part) => part.join(" ")).join(" ") || "0 s";
}

function countDown() {
  for (const part of document.querySelectorAll("[data-until]")) {
    const seconds = Math.round((Date.parse(part.dataset.until) - Date.now()) / 1000);
    if (Number.isNaN(seconds)) continue;
    part.textContent = seconds > 0 ? left(seconds) : "over";
    if (seconds === 0) refresh();
  }
}

// ---- Estimates

function estimate(form) {
  let waiting = null;
  let running = null;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      running?.abort();
      running = new AbortController();
      const fields = [...new FormData(form)].filter(([name, value]) => typeof value === "string" && !KEPT_BACK.includes(name));
      const url = new URL(form.dataset.estimate, location.href);
      fields.forEach(([name, value]) => url.searchParams.append(name, value));
      try {
        take(form.dataset.into, await load(url, running.signal));
      } catch {
        // The next change asks again.
      }
    }, TYPING_MS);
  });
}

// ---- The time zone, once

if (!document.cookie.split("; ").some((pair) => pair.startsWith("bespeak_zone="))) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) document.cookie = `bespeak_zone=${zone}; path=/portal; max-age=31536000; samesite=strict`;
}

document.querySelectorAll("form[data-estimate][data-into]").forEach(estimate);
countDown();
setInterval(countDown, 1000);
if (!document.hidden) follow();
