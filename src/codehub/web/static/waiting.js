// The waiting page, live: the number, the minutes and the dots follow the stream (`waiting-room.js`). When another
// screen is due (your turn, a pause, a place that is gone) the server's page for it is put in: it is rendered there
// only. Without this file the page loads itself again every few seconds.

import { backoff, KEY, WaitingRoom } from "./waiting-room.js";

const MINUTE = 60, HOUR = 3600; // s
const DRAWN = 18, FRONT = 8, NEAR = 6; // as `waiting_presentation.dots`
const WIDE = 10; // as `waiting_presentation.wait`
const SAID_EVERY = 20_000; // ms: a screen reader is not told every two seconds
const AWAY_AFTER = 2; // failures in a row
const ICON = new URL("mark.svg", import.meta.url).href;

let page = document.getElementById("waiting");
let room = null;
let saidAt = -SAID_EVERY;
let endsAt = 0; // of the offer, by this page's own clock
let opens = null; // when, as it was last told
let swapping = false;
let retry = null; // the timer of the next try, while the server has nothing to show
let tries = 0;

const say = () => page.dataset;
const put = (id, text) => { const e = document.getElementById(id); if (e && e.textContent !== text) e.textContent = text; };
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

// --- the same rules as `web/waiting_presentation.py` -----------------------------------------------------------------

export function screenOf(status, now = Date.now()) {
  if (status.ready_for_entry) return "ready";
  if (status.opens_at && Date.parse(status.opens_at) > now) return "before";
  if (status.paused) return "paused";
  return status.passed ? "passed" : "waiting";
}

export function rangeOf(low, high, texts) {
  if (high == null) return texts.sayUnknown;
  if (high < MINUTE) return texts.sayLess;
  const hours = low >= 2 * HOUR;
  const unit = hours ? HOUR : MINUTE;
  const least = Math.max(1, Math.floor(low / unit)), most = Math.max(1, Math.ceil(high / unit));
  if (high >= HOUR && high > WIDE * Math.max(low, MINUTE)) return least === 1 ? texts.sayUnknown : fill(hours ? texts.sayHoursLeast : texts.sayLeast, { n: least });
  if (least < most) return fill(hours ? texts.sayHoursBetween : texts.sayBetween, { low: least, high: most });
  if (hours) return fill(texts.sayHoursAbout, { n: most });
  return most === 1 ? texts.sayOne : fill(texts.sayAbout, { n: most });
}

export function dotsOf(position) {
  const ahead = position - 1;
  return ahead <= DRAWN ? { front: 0, hidden: 0, near: ahead } : { front: FRONT, hidden: ahead - FRONT - NEAR, near: NEAR };
}

// --- showing ---------------------------------------------------------------------------------------------------------

function show(status) {
  const screen = screenOf(status);
  const rescheduled = screen === "before" && opens && opens !== status.opens_at;
  opens = status.opens_at;
  if (screen !== say().screen || rescheduled) return swap();
  noteMoves(status);
  if (screen === "ready") countDown(status.offer_sec);
  else if (status.position) {
    put("position", String(status.position));
    put("wait", rangeOf(status.eta_low_sec, status.eta_high_sec, say()));
    draw(status.position);
  }
  title(status);
  announce(status);
  say().position = status.position ?? "";
}

/** `changes` says why one moved, since it was last told; without a stream only the number says that one did. */
function noteMoves(status) {
  const { entered = 0, left = 0, expired = 0 } = status.changes ?? {};
  say().entered = Number(say().entered) + entered;
  say().gone = Number(say().gone) + left + expired;
  if (Number(say().entered) || Number(say().gone)) put("since", fill(say().saySince, { entered: say().entered, left: say().gone }));
  const rose = say().position && status.position > Number(say().position);
  const note = document.getElementById("reordered");
  if (rose && note) {
    note.textContent = say().sayReordered;
    note.hidden = false;
  }
}

function draw(position) {
  const line = document.getElementById("dots");
  if (!line) return;
  const { front, hidden, near } = dotsOf(position);
  const more = line.querySelector(".more");
  const ahead = [...line.querySelectorAll("i")];
  if (!more && !hidden) {
    // Those at the door go in or leave; the others move up.
    for (const dot of ahead.slice(0, Math.max(0, ahead.length - near))) dot.classList.add("going");
    setTimeout(() => { for (const dot of line.querySelectorAll(".going")) dot.remove(); }, 200);
    const you = line.querySelector(".you");
    for (let n = ahead.length; n < near; n += 1) you.before(document.createElement("i"));
    return;
  }
  const people = (count) => Array.from({ length: count }, () => document.createElement("i"));
  const rest = Object.assign(document.createElement("span"), { className: "more", textContent: fill(say().sayMore, { n: hidden }) });
  line.replaceChildren(line.querySelector(".door"), ...people(front), ...(hidden ? [rest] : []), ...people(near), line.querySelector(".you"));
}

function title(status) {
  const ready = status.ready_for_entry;
  const number = status.position && !ready ? `${status.position} · ` : "";
  document.title = `${number}${ready ? say().sayTitleReady : say().sayTitle} · CodeHub`;
  icon(ready ? "!" : status.position ? (status.position > 99 ? "99+" : String(status.position)) : "");
}

/** The tab's picture shows the number, too. */
function icon(text) {
  const size = text.length > 2 ? 15 : 20;
  const fillColour = text === "!" ? "#137333" : "#4b3fc4";
  const drawn = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${fillColour}"/><text x="16" y="23" font-family="sans-serif" font-weight="700" font-size="${size}" text-anchor="middle" fill="#fff">${text}</text></svg>`;
  document.querySelector("link[rel=icon]").href = text ? `data:image/svg+xml,${encodeURIComponent(drawn)}` : ICON;
}

function announce(status, now = performance.now()) {
  const text = status.ready_for_entry ? say().sayReady
    : status.position ? `${fill(say().sayNumber, { n: status.position })}. ${rangeOf(status.eta_low_sec, status.eta_high_sec, say())}` : "";
  if (!text || (!status.ready_for_entry && now - saidAt < SAID_EVERY)) return;
  saidAt = now;
  put("announce", text);
}

function countDown(seconds) {
  if (seconds == null) return;
  const ends = performance.now() + 1000 * seconds;
  if (Math.abs(ends - endsAt) > 1500) endsAt = ends; // a difference that small is the way of the answer
  tick();
}

function tick() {
  const place = document.getElementById("countdown");
  if (!place || !endsAt) return;
  const left = Math.max(0, Math.ceil((endsAt - performance.now()) / 1000));
  put("countdown", `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
}

// --- another screen --------------------------------------------------------------------------------------------------

/** The server's page for what is the case now. */
async function swap() {
  if (swapping) return;
  swapping = true;
  clearTimeout(retry);
  retry = null;
  try {
    const answer = await fetch(location.pathname, { headers: { accept: "text/html" }, cache: "no-store" });
    if (answer.status >= 500) throw new Error(`status ${answer.status}`); // restarting: another try may tell
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = fresh.getElementById("waiting");
    if (!next) return location.reload(); // logged out, or the event is no more
    page.replaceWith(next);
    page = next;
    document.title = fresh.title;
    offline(false);
    if (next.dataset.screen !== "away") tries = 0;
    begin();
    if (next.dataset.screen === "ready") next.querySelector("button")?.focus();
    else put("announce", (next.querySelector(".note:not([hidden]), [role=alert] span") ?? next.querySelector("h1")).textContent.trim());
  } catch {
    offline(true);
    later();
  } finally {
    swapping = false;
  }
}

/** Ask again, less and less often: the page says that it does so by itself. */
function later() {
  tries += 1;
  retry = setTimeout(swap, backoff(tries));
}

function offline(yes) {
  document.getElementById("offline").hidden = !yes;
}

function begin() {
  const { event, token, left, screen } = say();
  endsAt = 0;
  if (screen === "ready") {
    countDown(Number(left));
    put("announce", say().sayReady);
    icon("!");
  } else if (say().position) icon(Number(say().position) > 99 ? "99+" : say().position);
  if (screen === "away") later();
  if (!token) {
    room?.stop();
    room = null;
    if (["gone", "held", "opened"].includes(screen)) localStorage.removeItem(KEY + event);
    return;
  }
  if (room?.token === token) return;
  room?.stop();
  room = new WaitingRoom(event, { token });
  room.listen({
    position: show,
    gone: swap,
    away: (failures) => offline(failures >= AWAY_AFTER),
    back: () => offline(false),
  });
}

if (page) {
  begin();
  setInterval(tick, 250);
  addEventListener("storage", (event) => { if (event.key === KEY + say().event && !say().token && event.newValue) swap(); });
  addEventListener("pageshow", (event) => { if (event.persisted) swap(); });
  addEventListener("online", () => { if (retry) swap(); });
  document.addEventListener("submit", (event) => {
    // The person's own act: other tabs need not wait for the server to hear of it.
    if (["leave", "enter"].includes(event.target.dataset.verb)) room?.stop();
    // Nor is the place of who logs out for the next one at this computer.
    const over = event.target.dataset.verb === "leave" || event.target.getAttribute("action") === "/logout";
    if (over) localStorage.removeItem(KEY + say().event);
  });
}
