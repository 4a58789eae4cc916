// Keeps the marked parts of a page up to date. Everything works without it.
//
//   data-live="URL"      on an element with an id: it is taken anew from the page at URL when something has changed
//   data-until="TIME"    the time that is left until then is counted down in the element
//   data-estimate="URL"  on a form: after a change of it, the element that data-into names is taken from URL with the form's fields
//   data-slides="NAMES"  on a slider of a form: it is one value with these fields; a date and a time count from data-from
"use strict";

const POLL_MS = 5000;
const TYPING_MS = 350;
const MINUTE_MS = 60000;
// What belongs to one form alone, or cannot be in an address.
const KEPT_BACK = ["csrf", "once"];

// Makes one node like another. What is the same stays, with its focus, its scroll position, and what was typed or unfolded.
function liken(node, wanted) {
  const isElement = node.nodeType === Node.ELEMENT_NODE;
  if (node.nodeName !== wanted.nodeName || (!isElement && node.data !== wanted.data)) node.replaceWith(wanted);
  else if (isElement) likenElement(node, wanted);
}

function likenElement(node, wanted) {
  for (const { name } of [...node.attributes]) {
    if (!wanted.hasAttribute(name) && name !== "open") node.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (node.getAttribute(name) !== value && name !== "autofocus") node.setAttribute(name, value);
  }
  const children = [...wanted.childNodes];
  children.forEach((child, index) => {
    const at = node.childNodes[index] ?? null;
    const now = child.id ? [...node.children].find((one) => one.id === child.id) : at;
    if (!now || (now.id && !child.id)) node.insertBefore(child, at);
    else {
      if (now !== at) node.insertBefore(now, at);
      liken(now, child);
    }
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
let [loading, again] = [false, false];

async function refresh() {
  again = loading;
  if (loading) return;
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
  if (again) refresh();
}

let [events, polling] = [null, null];

function follow() {
  if (events || polling || !live().length) return;
  events = new EventSource("/portal/events");
  let known = false;
  events.onopen = () => {
    // What changed while there was no stream.
    if (known) refresh();
    known = true;
  };
  events.onmessage = () => refresh().then(() => live().length || rest());
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
  if (document.hidden) return rest();
  if (live().length) refresh();
  return follow();
});

// ---- Countdowns

function left(seconds) {
  const part = (unit, most) => Math.floor(seconds / unit) % most;
  const parts = [[part(86400, Infinity), "d"], [part(3600, 24), "h"], [part(60, 60), "min"], [part(1, 60), "s"]];
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

// ---- Estimates, and sliders of the form

function estimate(form) {
  let [waiting, running] = [null, null];
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      running?.abort();
      running = new AbortController();
      const url = new URL(form.dataset.estimate, location.href);
      for (const [name, value] of new FormData(form)) {
        if (typeof value === "string" && !KEPT_BACK.includes(name)) url.searchParams.append(name, value);
      }
      // The next change asks again where this fails.
      await load(url, running.signal).then((page) => take(form.dataset.into, page), () => {});
    }, TYPING_MS);
  });
}

// How a slider reads and writes one field with a number, two with a date and a time, or three with a duration.
const SLIDES = [
  [([number]) => Number(number), (number) => [number]],
  [
    ([day, time], from) => (Date.parse(`${day}T${time}Z`) - from) / MINUTE_MS,
    (minutes, from) => new Date(from + minutes * MINUTE_MS).toISOString().slice(0, 16).split("T"),
  ],
  [([h, min, s]) => h * 60 + min * 1 + s / 60, (minutes) => [Math.floor(minutes / 60), minutes % 60, ""]],
];

function slide(slider) {
  const { form } = slider;
  const values = (names) => names.map((name) => form.elements[name].value);
  const names = slider.dataset.slides.split(" ");
  const [read, write] = SLIDES[names.length - 1];
  const from = () => Date.parse(`${values(["start-date", "start-time"]).join("T")}Z`) || Date.parse(slider.dataset.from);
  const show = () => {
    const value = read(values(names), from());
    slider.value = value || slider.max;
    const said = names.length === 3 ? left(value * 60) : values(names).join(" ");
    slider.ariaValueText = slider.previousElementSibling.textContent = value ? said : "not said";
  };
  slider.addEventListener("input", () => {
    write(Number(slider.value), from()).forEach((value, index) => (form.elements[names[index]].value = value));
  });
  form.addEventListener("input", show);
  show();
}

// ---- A range of cells of the calendar: from the one that is pressed to the one where the mouse is let go

let pressed = null;
const cellOf = (event) => event.target.closest?.(".cells td > a");

document.addEventListener("dragstart", (event) => cellOf(event) && event.preventDefault());
document.addEventListener("pointerdown", (event) => (pressed = event.pointerType === "mouse" ? cellOf(event) : null));
document.addEventListener("pointerup", (event) => {
  const [one, other] = [pressed, cellOf(event)];
  if (!one || !other || one === other || one.closest("table") !== other.closest("table")) return;
  const [first, last] = [one, other].sort((a, b) => a.dataset.until - b.dataset.until);
  const [form, end] = [first, last].map((cell) => new URL(cell.href));
  for (const name of ["deadline-date", "deadline-time"]) form.searchParams.set(name, end.searchParams.get(name));
  // The range is the time that is asked for.
  const length = last.dataset.until - first.dataset.from;
  const parts = { hours: Math.floor(length / 3600), minutes: Math.floor(length / 60) % 60, seconds: length % 60 };
  for (const [name, part] of Object.entries(parts)) form.searchParams.set(name, part || "");
  location.assign(form);
});

// ---- The time zone, once

const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
const isZoneSet = document.cookie.split("; ").some((pair) => pair.startsWith("bespeak_zone="));
if (timeZone && !isZoneSet) document.cookie = `bespeak_zone=${timeZone}; path=/portal; max-age=31536000; samesite=strict`;

document.querySelectorAll("form[data-estimate][data-into]").forEach(estimate);
document.querySelectorAll("[data-slides]").forEach(slide);
document.querySelectorAll(".sliders").forEach((part) => part.removeAttribute("hidden"));
countDown();
setInterval(countDown, 1000);
if (!document.hidden) follow();
