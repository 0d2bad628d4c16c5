// A session's page: one chunk of text at a time, answers that survive a reload, files put into a workspace that just
// woke, and a sign of life while the page is looked at. `codehub.js` sends the forms and puts in what changed; without
// both files all chunks stand below each other, and everything works by loading pages.

const region = document.querySelector("[data-live]");
const HEARTBEAT = 60_000; // ms
const OLD = 30 * 86_400_000; // ms: what was kept longer than this is of a run that is long over
const PREFIX = "codehub:run:";
let shown = null; // the step that was last made ready

const step = () => region.querySelector("[data-step]");
const place = (section, what) => `${PREFIX}${section.dataset.run}:${section.dataset.step}:${what}`;

// --- what this browser remembers -------------------------------------------------------------------------------------

function recall(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null; // none, or not allowed: then nothing is remembered
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify({ ...value, at: Date.now() }));
  } catch {
    // Full, or not allowed.
  }
}

/** A step that is done: its answers are saved with it. */
function forget(section) {
  try {
    localStorage.removeItem(place(section, "answers"));
  } catch {
    // Not allowed.
  }
}

function forgetOld() {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX) && !(Date.now() - recall(key)?.at < OLD)) localStorage.removeItem(key);
    }
  } catch {
    // Not allowed.
  }
}

// --- chunks ----------------------------------------------------------------------------------------------------------

function page(section) {
  const column = section.querySelector("[data-chunks]");
  section.querySelector(".chunks")?.classList.add("ready");
  if (!column) return;
  const chunks = [...column.children];
  const [back, next, said, last] = ["[data-back]", "[data-next]", "[data-place]", "[data-last]"].map((s) => section.querySelector(s));
  const show = (n, moved) => {
    chunks.forEach((chunk, i) => (chunk.hidden = i !== n));
    back.hidden = n === 0;
    next.hidden = n === chunks.length - 1;
    if (last) last.hidden = n !== chunks.length - 1;
    said.textContent = column.dataset.chunks.replace("{n}", n + 1).replace("{total}", chunks.length);
    section.dataset.chunk = n;
    if (!moved) return;
    remember(place(section, "chunk"), { n });
    chunks[n].focus({ preventScroll: true });
    section.scrollIntoView({ block: "start" });
  };
  back.onclick = () => show(Number(section.dataset.chunk) - 1, true);
  next.onclick = () => show(Number(section.dataset.chunk) + 1, true);
  show(Math.min(recall(place(section, "chunk"))?.n ?? 0, chunks.length - 1), false);
}

// --- answers that were not sent yet ----------------------------------------------------------------------------------

const inputs = (form) => [...form.querySelectorAll("input:not([type=hidden])")];
/** As the server sent it: what was typed counts only on top of the same. */
const given = (form) => inputs(form).map((i) => (i.type === "text" ? i.defaultValue : i.defaultChecked));
const typed = (form) => inputs(form).map((i) => (i.type === "text" ? i.value : i.checked));

function draft(section) {
  const form = section.querySelector("[data-draft]");
  if (!form) return;
  const kept = recall(place(section, "answers"));
  if (kept && JSON.stringify(kept.given) === JSON.stringify(given(form))) {
    inputs(form).forEach((input, i) => {
      if (input.type === "text") input.value = kept.typed[i];
      else input.checked = kept.typed[i];
    });
  }
  form.oninput = () => remember(place(section, "answers"), { given: given(form), typed: typed(form) });
}

// --- a workspace that just woke --------------------------------------------------------------------------------------

let asked = null; // for which files were asked: once, the button stays for another time

function putFiles(section) {
  const form = section.querySelector("[data-auto]");
  if (!form || document.hidden || asked === section.dataset.key) return;
  asked = section.dataset.key;
  setTimeout(() => form.requestSubmit());
}

// --- beginning -------------------------------------------------------------------------------------------------------

function ready() {
  const section = step();
  if (!section) return;
  if (section !== shown) {
    page(section);
    draft(section);
    if (shown && shown.dataset.key !== section.dataset.key) {
      forget(shown);
      scrollTo(0, 0);
      section.focus({ preventScroll: true });
    } else if (shown?.classList.contains("asking")) {
      // Its form was sent and did not do: what is said of it may be far above the button.
      setTimeout(() => region.querySelector("[role=alert]")?.scrollIntoView({ block: "center" }));
    }
    shown = section;
  }
  putFiles(section);
}

async function beat() {
  const section = step();
  if (!section?.dataset.fence || document.hidden) return;
  const fence = Number(section.dataset.fence);
  try {
    await fetch(`/api/v1/runs/${section.dataset.run}/activity`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ fence }),
    });
  } catch {
    // The page itself says when there is no connection.
  }
}

if (region) {
  forgetOld();
  ready();
  region.addEventListener("updated", ready);
  document.addEventListener("visibilitychange", ready);
  setInterval(beat, HEARTBEAT);
}
