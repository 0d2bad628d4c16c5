// The waking page follows its workspace and enters by itself: told by a stream, and by asking where there is none.
// Without this file the page loads itself again instead.

const page = document.getElementById("waking");
const say = page.dataset;
const begun = performance.now() - 1000 * Number(say.elapsed);
const EVERY = 700; // ms between looks while there is no stream; longer while nothing answers
const ANSWER_WITHIN = 10_000;
const SILENT = 12_000; // ms: a stream says something more often than that
let failures = 0;
let leaving = false;
let stream = null;
let asking = null; // the next look
let heard = 0;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const seconds = () => Math.floor((performance.now() - begun) / 1000);
const put = (id, text) => { const e = document.getElementById(id); if (e.textContent !== text) e.textContent = text; };

/** Ask for this page again: the server has the right one for whatever is the case now. */
function enter() {
  leaving = true;
  const url = new URL(location.href);
  url.searchParams.delete("lang"); // a cookie remembers it; the IDE need not see it
  if (url.href === location.href && url.hash) location.reload();
  else location.replace(url.href);
}

/** The same three steps as `entry_pages.steps`. */
function tick({ phase, operation }) {
  const falling = operation === "STOPPING" || operation === "ARCHIVING";
  let now = "files";
  if (phase === "RUNNING" && !falling) now = "open";
  else if (operation === "STARTING" || (phase === "STANDBY" && !falling)) now = "start";
  let how = "done";
  for (const step of page.querySelectorAll("[data-step]")) {
    const here = step.dataset.step === now;
    step.className = here ? "now" : how;
    step.toggleAttribute("aria-current", here);
    if (here) { step.setAttribute("aria-current", "step"); how = "later"; }
  }
}

function show(status) {
  const resting = status.operation === "NONE" && status.desired_state !== "RUNNING" && !status.swapping;
  const over = status.phase === "ERROR" || status.phase === "DELETED";
  if (leaving) return undefined;
  // It has fallen asleep: coming to this page again is what wakes it. Or the place that it waited for did not come.
  if (status.ready || over || (resting && (say.falling || say.swapping))) return enter();
  tick(status);
  const { bytes = 0, total = 0 } = status.progress ?? {};
  const mb = (amount) => Math.floor(amount / 1e6);
  put("progress", total >= 1e6 ? fill(say.sayProgress, { done: mb(bytes), total: mb(total) }) : "");
  const behind = status.position > 0 ? fill(say.sayPosition, { n: status.position }) : say.sayNext;
  put("position", status.position == null ? "" : behind);
  const copying = status.operation === "RESTORING" || status.operation === "ARCHIVING"; // as long as there are files
  const slow = seconds() > Number(say.slowAfter) && !copying;
  const again = status.failures > 1 ? fill(say.sayAgain, { n: status.failures }) : status.failures ? say.sayAgainOnce : "";
  note(resting ? say.sayPaused : again || (slow ? say.saySlow : ""));
}

function note(text) {
  const place = document.getElementById("note");
  if (place.textContent !== text) {
    const line = document.createElement("p");
    line.className = "note";
    line.textContent = text;
    place.replaceChildren(...(text ? [line] : []));
  }
  document.getElementById("retry").hidden = !text;
}

/** One stream, which the browser opens again when it breaks. While it is not open, we ask. */
function listen() {
  heard = performance.now();
  stream = new EventSource(`/_codehub/news/${say.id}`);
  stream.onmessage = (event) => {
    heard = performance.now();
    failures = 0;
    clearTimeout(asking);
    show(JSON.parse(event.data));
  };
  stream.onerror = () => {
    plan(EVERY); // also when it is refused for good: too many are open, or it is no longer ours to see
  };
}

/** A connection that leads nowhere any more does not say so. */
function mistrust() {
  stream?.close();
  stream = null;
  plan(0);
}

function plan(delay) {
  clearTimeout(asking);
  if (!leaving) asking = setTimeout(look, delay);
}

async function look() {
  if (stream?.readyState === EventSource.OPEN) return undefined;
  try {
    const answer = await fetch(`/_codehub/status/${say.id}`, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN) });
    if ([401, 403, 404].includes(answer.status)) return enter(); // logged out, or no longer ours to see
    if (!answer.ok) throw new Error(answer.status);
    failures = 0;
    show(await answer.json());
    if (!stream && !leaving) listen(); // it answers: let it tell
  } catch {
    failures += 1;
    if (failures >= 3) note(say.sayLost);
  }
  return plan(Math.min(EVERY * 1.6 ** failures, 10_000));
}

// Called off: the page that follows says how it stands, and must not be overtaken by the IDE.
document.getElementById("cancel")?.addEventListener("submit", () => { leaving = true; });
setInterval(() => put("so-far", fill(say.saySoFar, { n: seconds() })), 250);
setInterval(() => { if (stream && performance.now() - heard > SILENT) mistrust(); }, SILENT / 4);
addEventListener("offline", mistrust);
addEventListener("pagehide", () => stream?.close()); // the IDE's page needs the connection
listen();
plan(ANSWER_WITHIN); // unless the stream has opened by then
// Coming back by the back button shows the page as it was left: ask anew.
addEventListener("pageshow", (event) => { if (event.persisted) enter(); });
