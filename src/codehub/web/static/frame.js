// The page around an IDE. `codehub.js` keeps the bar true; this file looks after the frame: who has the keyboard, what is
// out of reach while something lies over it, and what to do where the browser keeps no pass in frames.

const ide = document.getElementById("ide");
const region = document.querySelector("[data-live]");
const coverOf = () => region.querySelector("[data-cover]");
let kind = coverOf()?.dataset.cover;
// Does the frame wait for the IDE, at the front door? Then there is nothing to do when it runs. Not so when something came
// into the frame before it did (an error of the browser's, or a page of ours after a minute), or when we were cut off.
let held = ide !== null && "held" in ide.dataset;
let loaded = false;

function follow() {
  const cover = coverOf();
  if (cover && (loaded || cover.dataset.cover !== "rising")) held = false;
  if (!cover && kind && !held) return location.reload(); // what is in the frame is of before
  if (ide) ide.inert = Boolean(cover);
  if (!cover) held = false; // from here on it is as any other that runs
  if (!cover && kind && document.activeElement === document.body) ide.focus();
  if (cover && cover.dataset.cover !== kind) (cover.querySelector("a") ?? document.querySelector(".brand")).focus();
  kind = cover?.dataset.cover;
}

region.addEventListener("updated", follow);
region.addEventListener("unanswered", () => { if (kind) held = false; });
if (ide) {
  ide.addEventListener("load", () => {
    if (!held || !kind) return;
    loaded = true;
    region.dispatchEvent(new Event("look")); // if it does not run even now, that was not the IDE
  });
  ide.addEventListener("load", () => { if (document.activeElement === document.body) ide.focus(); });
  addEventListener("message", (event) => {
    if (event.source === ide.contentWindow && event.data === "codehub:no-pass") location.replace(ide.dataset.tab);
  });
}
// Coming back by the back button shows the page as it was left: ask anew.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

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
