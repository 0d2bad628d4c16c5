// A session's page: one chunk of text at a time, answers that survive a reload, files put into a workspace that just
// woke, and a sign of life while the page is looked at. `codehub.js` sends the forms and puts in what changed; without
// these files all chunks stand below each other, and everything works by loading pages.

import { cameBack, chunks, followHistory, isLeft } from "./player_chunks.js";
import { draft, dropDraft } from "./player_drafts.js";
import { forgetOld } from "./player_memory.js";
import { hold, takeUp } from "./player_tabs.js";

const region = document.querySelector("[data-live]");
const HEARTBEAT = 60_000; // ms
let shown = null; // the step that was last made ready

const step = () => region.querySelector("[data-step]");

// --- questions without an answer -------------------------------------------------------------------------------------

const isOpen = (question) => ![...question.querySelectorAll("input")].some((i) => (i.type === "text" ? i.value.trim() : i.checked));

/** Enter in the first field sends the whole form: one that leaves questions open is not sent, and says which they are. */
function refuseOpen(event) {
  const form = event.target;
  const said = form.querySelector("[data-missing]");
  if (!said) return;
  const questions = [...form.querySelectorAll("[data-question]")];
  const open = questions.filter(isOpen);
  for (const question of questions) question.classList.toggle("is-open", open.includes(question));
  said.hidden = !open.length;
  if (!open.length) return;
  event.preventDefault();
  event.stopPropagation();
  said.textContent = said.dataset.missing.replace("{questions}", open.map((q) => q.dataset.question).join(", "));
  said.scrollIntoView({ block: "nearest" });
  open[0].querySelector("input").focus();
}

function answered(event) {
  const question = event.target.closest(".is-open");
  if (question && !isOpen(question)) question.classList.remove("is-open");
}

// --- a workspace that just woke --------------------------------------------------------------------------------------

const asked = new Set(); // what was asked for by itself: once each, the button stays for another time

/** Starter files, or the checks that were asked for while the workspace slept. */
function goOn(section) {
  const form = section.querySelector("[data-auto]");
  const what = `${section.dataset.key} ${form?.dataset.auto}`;
  if (!form || document.hidden || asked.has(what)) return;
  asked.add(what);
  setTimeout(() => form.requestSubmit());
}

// --- the line for a place --------------------------------------------------------------------------------------------

let line = null; // its file, which is read where there is a line: most pages have none

function followLine() {
  if (!line && !region.querySelector("[data-line]")) return;
  line ??= import("./player_line.js");
  line.then((file) => file.followLine(region));
}

// --- beginning -------------------------------------------------------------------------------------------------------

function ready() {
  const section = step();
  followLine();
  takeUp(region, cameBack());
  if (!section) return hold();
  hold(section.dataset.run, section.dataset.fence && Number(section.dataset.fence));
  if (section !== shown) {
    const isNew = shown?.dataset.key !== section.dataset.key;
    const answered = shown?.classList.contains("asking"); // its form was sent
    if (!shown && isLeft(section)) return;
    if (answered) dropDraft(shown);
    chunks(section, { isNew, moved: isNew && shown !== null });
    draft(section, isNew);
    if (shown && isNew) {
      dropDraft(shown);
      scrollTo(0, 0);
      section.focus({ preventScroll: true });
    } else if (answered) {
      // It did not do: what is said of it stands at the button, which may have moved.
      setTimeout(() => ["[role=alert]:not([hidden])", ".checks .is-wrong"].forEach((s) => section.querySelector(s)?.scrollIntoView({ block: "nearest" })));
    }
    shown = section;
  }
  goOn(section);
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
  followHistory(step);
  ready();
  region.addEventListener("updated", ready);
  region.addEventListener("submit", refuseOpen, true); // before `codehub.js` sends it
  region.addEventListener("input", answered);
  document.addEventListener("visibilitychange", ready);
  setInterval(beat, HEARTBEAT);
}
