// Keeps the dashboard live. The server renders every page; this file asks for the page again when something happened,
// and puts in what changed. Forms marked `data-quiet` are sent from here, and their answer is such a page too.
// Without this file everything still works, by loading pages.

const region = document.querySelector("[data-live]");
const announce = document.getElementById("announce");
const EVERY = Number(region?.dataset.every) || 30_000; // ms: also without news, since times pass; lines move without any
const WITHOUT_STREAM = 3_000;
const CALM = Number(region?.dataset.calm) || 0; // ms after it was asked for: until then the page is not looked at again
const TOGETHER = 120; // ms: several news in a row make one look
const SPREAD = 3_000; // ms: news for a whole class; hundreds of pages that look in the same moment would all wait
const ALL_USERS = 2_000; // the same for an admin who watches all users' workspaces
const ANSWER_WITHIN = 20_000;
const JUST = 60_000; // ms: so long has somebody "just" come in; the history has it for good
const BUSY_FOR = 300_000; // ms that a form waits for what is under way on its workspace; each of its requests waits for some of it
const ELSEWHERE = [1_500, 6_000, 15_000]; // ms after a form opened another tab: what it did there is seen here
const ONCE = ["at", "problem", "done", "who", "name", "display_name", "title", "valid", "max_uses", "capacity", "id", "course_id", "starts_on", "template", "git_url", "git_branch", "since", "waking"]; // what an address says only once

let address = location.href; // the page that is looked at, with what its last form had to say
let stream = null;
let planned = null;
let due = 0; // when
let latest = 0; // the number of the newest look: an older answer that comes late is not shown
let ended = false;
let visit = null; // the timer that takes the last one away
let since = document.querySelector("meta[name=events]")?.content; // what this page knows of; the first stream goes on from there

// --- looking ---------------------------------------------------------------------------------------------------------

async function ask(url, options = {}, within = ANSWER_WITHIN, sending = null, until = performance.now() + BUSY_FOR) {
  const mine = ++latest;
  const answer = await fetch(url, { ...options, headers: { accept: "text/html", "x-requested-with": "fetch" }, signal: AbortSignal.timeout(within) });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  connected(true);
  const news = page.querySelector("[data-live]");
  if (page.querySelector("[data-logged-out]")) return end();
  if (answer.status === 404) { // what this page is about is gone: say so
    region.dispatchEvent(new Event("leaving"));
    return location.reload();
  }
  if (!news) throw new Error(`status ${answer.status}`);
  // A page that is over leads to another one, whose parts are not put in here.
  if (!options.method && "follows" in region.dataset && answer.redirected) return location.replace(answer.url);
  if (options.method && isBusy(answer.url) && performance.now() < until) {
    if (sending) sending.dataset.sending = "";
    return ask(url, options, within, sending, until);
  }
  if (options.method) {
    // Deleting leads from a workspace's own page to the dashboard.
    if (new URL(answer.url).pathname !== location.pathname) return location.assign(answer.url);
    address = answer.url;
    latest += 1; // looks under way do not know of it yet
    delete sending?.dataset.sending; // only of the form that is answered: another one's may still be under way
  }
  if (options.method || mine === latest) update(news, Boolean(options.method));
  if (options.method) region.querySelector("[autofocus]")?.focus(); // as a browser does that loads the page
}

const isBusy = (url) => new URL(url).searchParams.get("problem") === "OPERATION_IN_PROGRESS";

async function look() {
  clearTimeout(planned);
  planned = null;
  if (ended || document.hidden) return;
  try {
    await ask(address);
  } catch {
    connected(false);
    region.dispatchEvent(new Event("unanswered"));
  }
  plan(stream?.readyState === EventSource.OPEN ? EVERY : WITHOUT_STREAM);
}

/** Look after so many ms, or sooner if that is planned already: news in a row must not put it off for ever. */
function plan(delay) {
  const at = Math.max(performance.now() + delay, CALM);
  if (ended || (planned && due <= at)) return;
  clearTimeout(planned);
  due = at;
  planned = setTimeout(look, at - performance.now());
}

function listen() {
  if (ended || stream) return;
  stream = new EventSource(since ? `/api/v1/events?last_event_id=${since}` : "/api/v1/events");
  const news = (event) => {
    const { id, owner } = JSON.parse(event.data);
    const watched = region.dataset.owner;
    if (!watched) plan(ALL_USERS);
    else if (owner === watched || region.querySelector(`[data-key="${CSS.escape(id)}"]`)) plan(TOGETHER);
  };
  const learning = (event) => {
    const { plan_id } = JSON.parse(event.data);
    if ("plans" in region.dataset && (region.dataset.plan ?? plan_id) === plan_id) plan(TOGETHER + (event.type === "plan_updated" ? Math.random() * SPREAD : 0));
  };
  // A class of hundreds changes all the time: its board says how often it looks.
  const teaching = (event) => {
    if (region.dataset.class && JSON.parse(event.data).class_id === region.dataset.class) plan(Number(region.dataset.together) || TOGETHER);
  };
  // What a page names by itself: courses, drafts, backups.
  const heard = (event) => {
    if (region.dataset.hears?.split(" ").includes(event.type)) plan(TOGETHER);
  };
  // A class that one teaches, on the start page: only who asks for help there.
  const asked = (event) => {
    if (region.dataset.hands?.split(" ").includes(JSON.parse(event.data).class_id)) plan(TOGETHER);
  };
  const anew = () => plan(TOGETHER);
  for (const kind of ["plan_updated", "session_updated", "run_updated", "hand_updated"]) stream.addEventListener(kind, learning);
  for (const kind of ["class_updated", "progress_updated", "hand_updated"]) stream.addEventListener(kind, teaching);
  for (const kind of ["course_updated", "draft_updated", "backup_updated", "class_updated"]) stream.addEventListener(kind, heard);
  stream.addEventListener("hand_updated", asked);
  stream.addEventListener("workspace_updated", news);
  stream.addEventListener("workspace_deleted", news);
  stream.addEventListener("workspace_joined", anew); // another's, which is now shared; or no more
  stream.addEventListener("workspace_left", anew);
  stream.addEventListener("queue_ready", (event) => turn(JSON.parse(event.data).event_id));
  stream.addEventListener("workspace_visited", (event) => visited(JSON.parse(event.data)));
  stream.addEventListener("queue_entered", () => turn(null));
  stream.addEventListener("reset", anew); // events are missing: the page itself says how it is
  stream.addEventListener("heartbeat", () => connected(true));
  stream.onopen = () => {
    plan(since ? EVERY : TOGETHER); // whatever was missed: the first stream tells it
    since = null;
  };
  stream.onerror = () => {
    // A refusal ends it for good: the look that follows finds out why.
    if (stream.readyState === EventSource.CLOSED) silence();
    plan(WITHOUT_STREAM);
    setTimeout(listen, WITHOUT_STREAM);
  };
}

function silence() {
  stream?.close();
  stream = null;
}

/** Whatever page one is on: it is one's turn in that line. */
function turn(event) {
  const banner = document.getElementById("turn");
  if (region.querySelector("[data-line]")) return plan(TOGETHER); // a session's page says it by itself
  if (!banner) return;
  banner.hidden = event === null;
  if (event !== null) banner.querySelector("a").href = `/wait/${encodeURIComponent(event)}`;
}

/** Somebody came into one's workspace, or took its files, who needs no leave: it is said at once. */
function visited({ workspace, workspace_id, by, what }) {
  const banner = document.getElementById("visited");
  if (!banner) return;
  const link = banner.querySelector("a");
  link.href = `/workspaces/${encodeURIComponent(workspace_id)}`;
  link.textContent = workspace;
  banner.querySelector("span").textContent = banner.dataset[what].replace("{by}", by);
  banner.hidden = false;
  clearTimeout(visit);
  visit = setTimeout(() => { banner.hidden = true; }, JUST);
}

/** The instructions beside an IDE have no such lines: the page around them says it. */
function tell(id, yes) {
  const line = document.getElementById(id);
  if (line) line.hidden = !yes;
}

const connected = (yes) => tell("offline", !yes);

function end() {
  ended = true;
  silence();
  tell("ended", true);
  for (const card of document.querySelectorAll(".asking")) settle(card);
}

// --- putting in what changed -----------------------------------------------------------------------------------------

const sources = new WeakMap(); // element → the HTML it was made from: what people opened or typed does not count

let answers = false; // what is put in answers a form of this page

function update(news, isAnswer) {
  answers = isAnswer;
  region.dataset.owner = news.dataset.owner;
  if (news.dataset.hands) region.dataset.hands = news.dataset.hands;
  const focused = document.activeElement?.closest("[data-live]") ? document.activeElement : null;
  merge(region, news);
  region.dispatchEvent(new Event("updated")); // `player.js` puts into what is new how far one had read
  if (focused && !focused.isConnected) refocus(focused);
}

/** The HTML an element comes from, but for the keys of its forms: they differ each time and mean nothing. */
const source = (element) => element.outerHTML.replaceAll(/ name="(key|once)" value="[^"]*"/g, "");

/** Makes the keyed children of `old` those of `fresh`, touching only what differs. */
function merge(old, fresh) {
  const before = new Map([...old.children].map((child) => [child.dataset.key, child]));
  let place = old.firstElementChild;
  for (const child of [...fresh.children]) {
    const known = before.get(child.dataset.key);
    before.delete(child.dataset.key);
    const inPlace = known !== undefined && known === place;
    if (!known) sources.set(child, source(child));
    const kept = known ? replace(known, child) : child;
    if (inPlace) place = kept.nextElementSibling;
    else old.insertBefore(kept, place);
  }
  for (const gone of before.values()) {
    gone.remove();
    carryOver(gone);
  }
}

/** A name half typed into a form that went goes on in the one that took its place. */
function carryOver(gone) {
  const [typed, place] = [gone, region].map((e) => e.querySelector("#new-name"));
  if (!typed || !place || typed.value === typed.defaultValue) return;
  place.value = typed.value;
  place.closest("details").open = true;
}

const isTicked = (field) => ["radio", "checkbox"].includes(field.type);
const isChanged = (field) => (field.options ? [...field.options].some((o) => o.selected !== o.defaultSelected) : field.value !== field.defaultValue);

/** What was typed or chosen in a form stays, whatever is said around it. */
function keepTyped(known, child) {
  const before = [...known.querySelectorAll("input, select, textarea")];
  for (const field of child.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    const same = before.find((old) => old.name === field.name && (!isTicked(field) || old.value === field.value));
    if (!same) continue;
    if (isTicked(field)) field.checked = same.checked;
    else if (isChanged(same)) field.value = same.value;
  }
}

/** A half-typed syllable would be torn from its keyboard: what says `later` is put in when nobody types in it. */
const isTypedIn = (element) => element.contains(document.activeElement) && document.activeElement.matches("input, textarea") && isChanged(document.activeElement);

function replace(known, child) {
  const lists = "list" in child.dataset && "list" in known.dataset;
  if (lists) merge(known, child);
  const made = source(child);
  const asking = known.classList.contains("asking");
  if (lists || "keep" in known.dataset || (sources.get(known) === made && !asking)) return known;
  if ("sending" in known.dataset) return known; // its own answer is on the way, and may take minutes
  if (child.dataset.typed === "later" && !answers && isTypedIn(known)) return known;
  sources.set(child, made);
  if ("typed" in child.dataset) keepTyped(known, child);
  for (const open of known.querySelectorAll("details[open]")) {
    const same = open.id && child.querySelector(`#${CSS.escape(open.id)}`);
    if (same) same.open = true;
  }
  if (known.matches("details[open]")) child.open = true;
  if (known.dataset.say !== child.dataset.say) announce.textContent = child.dataset.say ?? "";
  known.replaceWith(child);
  return child;
}

/** The button one stood on was replaced: stand on the same one, or on what took its place. */
function refocus(lost) {
  // A whole part, in which somebody reads: it is where they are, and not its first button.
  const part = lost.dataset.key && region.querySelector(`[data-key="${CSS.escape(lost.dataset.key)}"]`);
  if (part) return part.focus({ preventScroll: true });
  const same = lost.id && document.getElementById(lost.id);
  const id = lost.id?.split("-")[0];
  const key = lost.closest("[data-key]")?.dataset.key;
  const there = key && region.querySelector(`[data-key="${CSS.escape(key)}"]`)?.querySelector("button, a.button"); // in what took its place
  const next = lost.closest("[data-typed]") && region.querySelector("[data-list] > [data-typed] input:not([type=hidden])"); // of a list of questions
  const heading = document.querySelector("h1");
  if (heading) heading.tabIndex = -1; // else it takes no focus
  (same || document.getElementById("undo") || document.getElementById(`${id}-primary`) || there || next || heading)?.focus();
}

// --- asking ----------------------------------------------------------------------------------------------------------

const cardOf = (form) => form.closest("[data-key]");

/** A click shows at once what was asked for, and that it is not done yet. */
function showAsking(form) {
  const card = cardOf(form);
  card?.classList.add("asking");
  card?.setAttribute("aria-busy", "true");
  for (const menu of card?.querySelectorAll("details.menu[open]") ?? []) menu.open = false;
  const line = card?.querySelector(".now");
  if (line) { line.dataset.was ??= line.textContent; line.textContent = form.dataset.busy; }
  const button = form.querySelector("button");
  if (!line && button) { button.dataset.was ??= button.textContent; button.textContent = form.dataset.busy; }
}

/** It is as it was before the click. */
function settle(card) {
  card.classList.remove("asking");
  card.removeAttribute("aria-busy");
  for (const changed of card.querySelectorAll("[data-was]")) { changed.textContent = changed.dataset.was; delete changed.dataset.was; }
}

async function send(form, submitter) {
  const body = new URLSearchParams(new FormData(form, submitter));
  showAsking(form);
  const sending = cardOf(form);
  if (sending && form.dataset.wait) sending.dataset.sending = "";
  try {
    await ask(form.action, { method: "POST", body }, 1000 * form.dataset.wait || ANSWER_WITHIN, sending);
  } catch {
    connected(false);
    // Whether it arrived is not known: what the next look shows is the truth.
    if (cardOf(form)) settle(cardOf(form));
    delete sending?.dataset.sending;
  }
  plan(TOGETHER);
}

/** What the pages of sessions and lines remember in this browser is not for who uses it next. */
function forgetPerson() {
  try {
    for (const storage of [localStorage, sessionStorage]) {
      for (const key of Object.keys(storage)) if (/^codehub:(run:|wait:|panel$)/.test(key)) storage.removeItem(key);
    }
  } catch {
    // Not allowed: then nothing was kept.
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.getAttribute("action") === "/logout") forgetPerson();
  if (cardOf(form)?.classList.contains("asking")) return event.preventDefault(); // a double click
  if (ended) return event.preventDefault();
  if (!("quiet" in form.dataset)) {
    if (form.target) for (const delay of ELSEWHERE) setTimeout(plan, delay, 0);
    if (form.dataset.busy) setTimeout(() => showAsking(form)); // after the browser has read the form
    return;
  }
  event.preventDefault();
  send(form, event.submitter);
});

// --- fields ----------------------------------------------------------------------------------------------------------

/** A file that is too large is said so before it is sent. */
document.addEventListener("change", (event) => {
  const { files, dataset } = event.target;
  if (dataset?.most) event.target.setCustomValidity(files[0]?.size > Number(dataset.most) ? dataset.sayMost : "");
});

/** What is shown to be copied is chosen as a whole. */
const choose = (field) => field?.matches?.("input.copy") && field.select();
document.addEventListener("focusin", (event) => choose(event.target));
choose(document.activeElement);

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) print();
});

// --- menus -----------------------------------------------------------------------------------------------------------

const openMenus = () => document.querySelectorAll("details.menu[open]");

document.addEventListener("click", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target) || event.target.closest("a.item")) menu.open = false;
  // On a small screen a menu opens, or grows, below what is seen.
  const list = event.target.closest("details.menu summary")?.closest("details.menu").querySelector(".menu-list");
  if (list) requestAnimationFrame(() => list.scrollIntoView({ block: "nearest" }));
});
document.addEventListener("keydown", (event) => {
  for (const menu of openMenus()) {
    const items = [...menu.querySelectorAll(".item")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); }
    else if (step && menu.contains(document.activeElement)) {
      event.preventDefault();
      items[(items.indexOf(document.activeElement) + step + items.length) % items.length]?.focus();
    }
  }
});

// It would cover what has the focus then.
document.addEventListener("focusin", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
});

// --- beginning, leaving, coming back ---------------------------------------------------------------------------------

/** Times are written by the server, for this browser's time zone. */
function rememberZone() {
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone ?? "");
  if (!zone || document.cookie.split("; ").includes(`codehub_zone=${zone}`)) return false;
  document.cookie = `codehub_zone=${zone}; path=/; max-age=31536000; samesite=lax`;
  return true;
}

/** What the address says once is not said again after a reload. */
function clean() {
  const url = new URL(location.href);
  for (const name of ONCE) url.searchParams.delete(name);
  if (url.href !== location.href) history.replaceState(null, "", url);
}

function comeBack() {
  for (const card of document.querySelectorAll(".asking")) settle(card);
  listen();
  look();
}

if (region) {
  for (const child of region.querySelectorAll("[data-key]")) sources.set(child, source(child));
  const newZone = rememberZone();
  clean();
  listen();
  region.addEventListener("stale", () => plan(0)); // another file of ours knows that something changed
  region.addEventListener("look", look); // the same, and what is being asked now is too old
  if (newZone) look();
  else plan(EVERY);
  // A browser keeps few connections to one server: hidden pages give theirs back.
  document.addEventListener("visibilitychange", () => (document.hidden ? silence() : comeBack()));
  addEventListener("pagehide", silence);
  addEventListener("pageshow", (event) => { if (event.persisted) comeBack(); });
  addEventListener("online", comeBack);
  addEventListener("offline", () => connected(false));
}
