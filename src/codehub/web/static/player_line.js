// The line for a place in the lab, in the bar of a session's page: the number and the minutes follow the stream
// (`waiting-room.js`), also while the page is hidden. When another screen is due the server's page is asked for, by
// `codehub.js`. Nothing here touches the step that one reads or answers.

import { rangeOf, screenOf } from "./waiting.js";
import { KEY, WaitingRoom } from "./waiting-room.js";

const LAB = "lab";
const SAID_EVERY = 60_000; // ms: a screen reader that reads a text is not told every few seconds
const AWAY_AFTER = 2; // failures in a row
const title = document.title;

let region = null;
let room = null;
let said = 0; // when the number was last said
let endsAt = 0; // of the offer, by this page's own clock
let ticking = null;

const bar = () => region.querySelector("[data-line]");
const put = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const stale = () => region.dispatchEvent(new Event("stale"));

/** After each page of the server's: it says whether one waits, and by which token. */
export function followLine(live) {
  region = live;
  const { token, screen, left } = bar()?.dataset ?? {};
  if (screen !== "ready") endsAt = 0;
  else if (left) countDown(Number(left));
  tell(screen === "ready");
  if (!token) return screen === "away" ? undefined : stop();
  if (room?.token === token) return room.status && show(room.status);
  room?.stop();
  room = new WaitingRoom(LAB, { token });
  room.listen({ position: show, gone: over, away: (failures) => failures === AWAY_AFTER && stale(), back: stale });
}

/** The server says that one does not wait. Other tabs are told by what they share. */
function stop() {
  if (!room) return;
  room.stop();
  room = null;
  forget();
}

function over() {
  room = null;
  stale();
}

function forget() {
  try {
    localStorage.removeItem(KEY + LAB);
  } catch {
    // Not allowed: then nothing was kept.
  }
}

function show(status) {
  const here = bar();
  const screen = screenOf(status);
  tell(screen === "ready");
  if (screen !== here?.dataset.screen) return stale();
  if (screen === "ready") return status.offer_sec != null && countDown(status.offer_sec);
  if (!status.position) return;
  const number = fill(here.dataset.sayNumber, { n: status.position });
  const wait = rangeOf(status.eta_low_sec, status.eta_high_sec, here.dataset);
  put(here.querySelector("[data-number]"), number);
  put(here.querySelector("[data-wait]"), wait);
  say(`${number}. ${wait}`);
}

function say(text, now = performance.now()) {
  if (said && now - said < SAID_EVERY) return;
  said = now;
  put(document.getElementById("announce"), text);
}

/** A tab that nobody sees says it, too. */
function tell(ready) {
  document.title = ready ? `${bar()?.dataset.sayTitle ?? ""} ${title}` : title;
}

function countDown(seconds) {
  const ends = performance.now() + 1000 * seconds;
  if (Math.abs(ends - endsAt) > 1500) endsAt = ends; // a difference that small is the way of the answer
  ticking ??= setInterval(tick, 500);
  tick();
}

function tick() {
  const place = region.querySelector("[data-countdown]");
  if (!place || !endsAt) {
    clearInterval(ticking);
    ticking = null;
    return;
  }
  const left = Math.max(0, Math.ceil((endsAt - performance.now()) / 1000));
  put(place, `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
}

// Another tab joined, left or took the place.
addEventListener("storage", (event) => { if (event.key === KEY + LAB && event.newValue !== (room?.token ?? null)) stale(); });
