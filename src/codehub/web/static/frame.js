// The page around an IDE. `codehub.js` keeps the bar true; this file looks after the frame: who has the keyboard, what is
// out of reach while something lies over it, what is said and seen in full screen, and what to do where the browser
// keeps no pass in frames.

let ide = document.getElementById("ide");
const region = document.querySelector("[data-live]");
const announce = document.getElementById("announce");
const coverOf = () => region.querySelector("[data-cover]");
const main = document.getElementById("content");
const ANSWER_WITHIN = 20_000; // ms
const ONE_AT_A_TIME = "(max-width: 760px)"; // as in `frame.css`
const noteOf = () => region.querySelector(".frame-note");
const panel = document.getElementById("panel"); // a session's instructions
let kind = coverOf()?.dataset.cover;
// Does the frame wait for the IDE, at the front door? Then there is nothing to do when it runs. Not so when something came
// into the frame before it did (an error of the browser's, or a page of ours after a minute), or when we were cut off.
let held = ide !== null && "held" in ide.dataset;
let loaded = false;
let warned = false;
let renewing = false;

/** An IDE with unsaved work asks before it is left. It is not to ask when we leave: its server is gone, or another one. */
const leave = () => ide?.remove();

function follow() {
  if (renewing) return;
  const cover = coverOf();
  if (cover && (loaded || cover.dataset.cover !== "rising")) held = false;
  if (!cover && kind && !held) return renew(location.href); // it was woken elsewhere: what is in the frame is of before
  if (ide) ide.inert = Boolean(cover);
  if (!cover) held = false; // from here on it is as any other that runs
  if (!cover && kind && document.activeElement === document.body) ide.focus();
  if (cover && cover.dataset.cover !== kind) showCover(cover);
  kind = cover?.dataset.cover;
  warn();
}

/** Said once, when it appears: what is put into a page is read to nobody by itself. */
function warn() {
  const text = region.querySelector(".frame-note[data-say]")?.dataset.say;
  if (text && !warned) announce.textContent = text;
  warned = Boolean(text);
  raise();
}

/** The IDE begins anew, as this page does. Instructions beside it stay as they are: somebody may be reading them, or
 * their checks may be on the way. */
async function renew(address) {
  leave();
  if (!panel) return location.assign(address);
  renewing = true;
  try {
    const answer = await fetch(address, { headers: { accept: "text/html", "x-requested-with": "visit" }, signal: AbortSignal.timeout(ANSWER_WITHIN) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("ide");
    if (!fresh) return location.assign(address); // it does not wake just so: that page says why
    ide = document.adoptNode(fresh);
    held = "held" in ide.dataset;
    loaded = false;
    kind = page.querySelector("[data-cover]")?.dataset.cover;
    if (region.contains(document.activeElement)) document.activeElement.blur(); // what is typed next is for the IDE
    watch();
    main.append(ide);
  } catch {
    for (const link of region.querySelectorAll("[data-was]")) link.textContent = link.dataset.was; // not reached: it can be tried again
  } finally {
    renewing = false;
    region.dispatchEvent(new Event("look"));
  }
}

function showCover(cover) {
  announce.textContent = cover.dataset.say;
  if (document.fullscreenElement) document.exitFullscreen(); // the IDE has the whole screen: nothing of ours is seen
  if (document.activeElement?.closest("#panel, #splitter, #panel-toggle")) return; // who reads the instructions goes on
  (cover.querySelector("a") ?? document.querySelector(".brand")).focus();
}

/** A warning is seen above an IDE in full screen, too; it takes no key from it, and its button is in the bar below. */
function raise() {
  const note = noteOf();
  if (!note?.showPopover) return;
  if (document.fullscreenElement) {
    note.popover = "manual";
    if (!note.matches(":popover-open")) note.showPopover();
  } else note.removeAttribute("popover");
}

/** A frame that is new in the page. */
function watch() {
  ide.inert = Boolean(kind);
  ide.addEventListener("load", () => {
    enter();
    if (!held || !kind) return;
    loaded = true;
    region.dispatchEvent(new Event("look")); // if it does not run even now, that was not the IDE
  });
}

const enter = () => { if (document.activeElement === document.body) ide.focus(); };

warn();
region.addEventListener("updated", follow);
region.addEventListener("unanswered", () => { if (kind) held = false; });
region.addEventListener("leaving", leave);
region.addEventListener("click", (event) => {
  const stays = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey; // in another tab
  const link = event.target.closest("[data-cover] a");
  if (stays || !link) return;
  wake(link, event);
});

function wake(link, event) {
  link.dataset.was ??= link.textContent;
  link.textContent = link.dataset.busy;
  if (!panel) return leave();
  event.preventDefault();
  if (matchMedia(ONE_AT_A_TIME).matches) show(false); // who wakes it wants to see it
  if (!renewing) renew(link.href);
}

document.addEventListener("fullscreenchange", raise);
if (ide) {
  watch();
  if (!kind) enter(); // what is typed at once is for the IDE
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    ide.focus();
  });
  addEventListener("message", (event) => {
    if (event.source !== ide.contentWindow) return;
    if (event.data === "codehub:no-pass") location.replace(ide.dataset.tab);
    if (event.data === "codehub:to-bar") document.querySelector(".brand").focus();
  });
}
// Coming back by the back button shows the page as it was left: ask anew.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  leave();
  location.reload();
});

// --- a session's instructions beside it ------------------------------------------------------------------------------

const toggle = document.getElementById("panel-toggle");
const splitter = document.getElementById("splitter");
const KEY = "codehub:panel"; // its width, in percent of the page
const remembered = () => { try { return Number(localStorage.getItem(KEY)) || 34; } catch { return 34; } };

function width(percent) {
  const value = Math.round(Math.min(70, Math.max(20, percent)));
  document.body.style.setProperty("--panel", `${value}%`);
  splitter.setAttribute("aria-valuenow", value);
  try { localStorage.setItem(KEY, value); } catch { /* not allowed: it is as wide as ever next time */ }
}

function show(yes) {
  main.classList.toggle("alone", !yes);
  toggle.setAttribute("aria-expanded", yes);
  if (!yes) ide.focus();
}

if (toggle && splitter && ide) {
  toggle.hidden = false;
  toggle.addEventListener("click", () => show(main.classList.contains("alone")));
  width(remembered());
  splitter.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (step) width(Number(splitter.getAttribute("aria-valuenow")) + step);
    if (event.key === "Escape") show(false);
  });
  splitter.addEventListener("pointerdown", (event) => {
    splitter.setPointerCapture(event.pointerId);
    main.classList.add("moving"); // else the frames would take what the pointer does
  });
  splitter.addEventListener("pointermove", (event) => {
    if (splitter.hasPointerCapture(event.pointerId)) width((100 * event.clientX) / innerWidth);
  });
  for (const end of ["pointerup", "pointercancel"]) splitter.addEventListener(end, () => main.classList.remove("moving"));
  addEventListener("message", (event) => { if (event.origin === location.origin && event.data === "codehub:hide-panel") show(false); });
}
