// One chunk of a text at a time, each with an entry in the browser's history: Back is the chunk before, and what comes
// before a step is the step that was done, to be looked at again.

import { place, recall, remember } from "./player_memory.js";

let show = null; // of the text on the page

/** Was the page come to by the back or forward button? */
export const cameBack = () => performance.getEntriesByType("navigation")[0]?.type === "back_forward";

function note(section, chunk, how) {
  const url = new URL(location.href);
  url.hash = chunk === null ? "" : `part-${chunk + 1}`;
  history[how]({ step: Number(section.dataset.step), chunk }, "", url);
}

function first(section, count) {
  const at = history.state?.step === Number(section.dataset.step) ? history.state.chunk : null;
  const named = Number(/^#part-(\d+)$/.exec(location.hash)?.[1]) - 1;
  const isDone = section.dataset.key.endsWith("-done"); // what is read again is read from its beginning
  const known = at ?? (named >= 0 ? named : isDone ? 0 : recall(place(section, "chunk"))?.n) ?? 0;
  return Math.max(0, Math.min(known, count - 1));
}

/** `isNew`: as opposed to the same step with something said around it; `moved`: from the step before, on this very page. */
export function chunks(section, { isNew, moved }) {
  const column = section.querySelector("[data-chunks]");
  section.querySelector(".chunks")?.classList.add("ready");
  show = null;
  if (!column) return isNew && note(section, null, moved ? "pushState" : "replaceState");
  const parts = [...column.children];
  const [back, next, said, last] = ["[data-back]", "[data-next]", "[data-place]", "[data-last]"].map((s) => section.querySelector(s));
  show = (n) => {
    parts.forEach((part, i) => (part.hidden = i !== n));
    back.hidden = n === 0;
    next.hidden = n === parts.length - 1;
    if (last) last.hidden = n !== parts.length - 1;
    said.textContent = column.dataset.chunks.replace("{n}", n + 1).replace("{total}", parts.length);
    section.dataset.chunk = n;
  };
  const go = (by) => {
    const n = Number(section.dataset.chunk) + by;
    show(n);
    note(section, n, "pushState");
    turned(section, n);
  };
  back.onclick = () => go(-1);
  next.onclick = () => go(1);
  const n = moved ? 0 : first(section, parts.length);
  show(n);
  note(section, n, moved ? "pushState" : "replaceState");
}

function turned(section, n) {
  remember(place(section, "chunk"), { n });
  section.querySelector("[data-chunks]").children[n].focus({ preventScroll: true });
  section.scrollIntoView({ block: "start" });
}

function lookBackAt(step) {
  const url = new URL(location.href);
  url.searchParams.set("step", step);
  location.replace(url);
}

/** The page was opened again by the back button, and the step of that entry is done meanwhile. True: it is being left. */
export function isLeft(section) {
  const then = history.state?.step;
  const before = cameBack() && then < Number(section.dataset.step) && !new URL(location.href).searchParams.has("step");
  if (before) lookBackAt(then);
  return before;
}

export function followHistory(section) {
  addEventListener("popstate", ({ state }) => {
    const now = section();
    if (!now || !state || !("step" in state)) return; // a link within the page
    if (state.step < Number(now.dataset.step)) return lookBackAt(state.step);
    if (state.step > Number(now.dataset.step)) return location.reload();
    if (!show || state.chunk === null) return;
    show(state.chunk);
    turned(now, state.chunk);
  });
}
