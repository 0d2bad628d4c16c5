// Which tab of this browser has a run. A page that is told that another one has it asks the other tabs: if it was this
// browser, and no tab shows the run any more, it just goes on.

import { ofRun, recall, remember } from "./player_memory.js";

const ANSWER_WITHIN = 400; // ms
let channel = null;
let held = null; // the run that this page has, and by which fence
let waiting = null;

const names = (one, other) => one?.run === other?.run && one?.fence === other?.fence;

function listen() {
  channel ??= new BroadcastChannel("codehub:runs");
  channel.onmessage = ({ data }) => {
    if (data.asks && names(data.asks, held)) channel.postMessage({ has: held });
    else if (data.has && names(data.has, waiting?.about)) waiting.done(true);
  };
}

/** `fence`: undefined where the page does not have it. */
export function hold(run, fence) {
  const now = fence === undefined ? null : { run, fence };
  if (now && !names(now, held)) remember(ofRun(run, "held"), { fence }); // once: a page that is left after logging out says nothing more
  held = now;
}

/** Does another tab of this browser show the run? */
function isShown(run, fence) {
  return new Promise((done) => {
    waiting = { about: { run, fence }, done };
    channel.postMessage({ asks: waiting.about });
    setTimeout(done, ANSWER_WITHIN, false);
  });
}

/** This page lost the run, or does not have it yet. Where this browser has it and no tab shows it, it goes on here. */
export async function takeUp(region, cameBack) {
  const said = region.querySelector("[data-held]");
  const { run, held: fence, here } = said?.dataset ?? {};
  if (!said || said.classList.contains("asks") || recall(ofRun(run, "held"))?.fence !== Number(fence)) return;
  said.classList.add("asks");
  const shown = await isShown(run, Number(fence));
  said.classList.remove("asks");
  if (shown || !said.isConnected) return;
  if (!("taken" in said.dataset) && cameBack) {
    // Who came back to the page before the run is not sent forward again.
    for (const line of said.querySelectorAll("[data-elsewhere], [data-stopped]")) line.hidden = "elsewhere" in line.dataset;
    return;
  }
  location.replace(here);
}

listen();
// A page that is kept for the back button does not show anything.
addEventListener("pagehide", () => { channel.close(); channel = null; });
addEventListener("pageshow", listen);
