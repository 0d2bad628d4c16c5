// The page around an IDE. `codehub.js` keeps the bar true; this file looks after the frame: who has the keyboard, what is
// out of reach while something lies over it, what is said and seen in full screen, and what to do where the browser
// keeps no pass in frames.

const ide = document.getElementById("ide");
const region = document.querySelector("[data-live]");
const announce = document.getElementById("announce");
const coverOf = () => region.querySelector("[data-cover]");
const noteOf = () => region.querySelector(".frame-note");
let kind = coverOf()?.dataset.cover;
// Does the frame wait for the IDE, at the front door? Then there is nothing to do when it runs. Not so when something came
// into the frame before it did (an error of the browser's, or a page of ours after a minute), or when we were cut off.
let held = ide !== null && "held" in ide.dataset;
let loaded = false;
let warned = false;

/** An IDE with unsaved work asks before it is left. It is not to ask when we leave: its server is gone, or another one. */
const leave = () => ide?.remove();

function follow() {
  const cover = coverOf();
  if (cover && (loaded || cover.dataset.cover !== "rising")) held = false;
  if (!cover && kind && !held) {
    leave();
    return location.reload(); // it was woken elsewhere: what is in the frame is of before
  }
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

function showCover(cover) {
  announce.textContent = cover.dataset.say;
  if (document.fullscreenElement) document.exitFullscreen(); // the IDE has the whole screen: nothing of ours is seen
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

warn();
region.addEventListener("updated", follow);
region.addEventListener("unanswered", () => { if (kind) held = false; });
region.addEventListener("leaving", leave);
region.addEventListener("click", (event) => {
  const stays = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey; // in another tab
  if (!stays && event.target.closest("[data-cover] a")) leave();
});
document.addEventListener("fullscreenchange", raise);
if (ide) {
  const enter = () => { if (document.activeElement === document.body) ide.focus(); };
  if (kind) ide.inert = true;
  else enter(); // what is typed at once is for the IDE
  ide.addEventListener("load", () => {
    enter();
    if (!held || !kind) return;
    loaded = true;
    region.dispatchEvent(new Event("look")); // if it does not run even now, that was not the IDE
  });
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

const main = document.getElementById("content");
const toggle = document.getElementById("panel-toggle");
const splitter = document.getElementById("splitter");
const KEY = "codehub:panel"; // its width, in percent of the page
const remembered = () => { try { return Number(localStorage.getItem(KEY)) || 34; } catch { return 34; } };

function width(percent) {
  const value = Math.round(Math.min(70, Math.max(20, percent)));
  main.style.setProperty("--panel", `${value}%`);
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
