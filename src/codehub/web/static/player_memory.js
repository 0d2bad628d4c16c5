// What a session's page remembers in this browser: where one is in a text, answers that were not sent, which run it has.
// `localStorage` is shared by all tabs; `sessionStorage` is a tab's own, and outlives its reloads.

const PREFIX = "codehub:run:"; // what `codehub.js` forgets when a person logs out
const OLD = 30 * 86_400_000; // ms: what was kept longer than this is of a run that is long over

export const place = (section, what) => `${PREFIX}${section.dataset.run}:${section.dataset.step}:${what}`;
export const ofRun = (run, what) => `${PREFIX}${run}:${what}`;

export function recall(key, storage = () => localStorage) {
  try {
    return JSON.parse(storage().getItem(key));
  } catch {
    return null; // none, or not allowed: then nothing is remembered
  }
}

export function remember(key, value, storage = () => localStorage) {
  try {
    storage().setItem(key, JSON.stringify({ ...value, at: Date.now() }));
  } catch {
    // Full, or not allowed.
  }
}

export function forget(key) {
  try {
    localStorage.removeItem(key);
    sessionStorage.removeItem(key);
  } catch {
    // Not allowed.
  }
}

export function forgetOld() {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX) && !(Date.now() - recall(key)?.at < OLD)) localStorage.removeItem(key);
    }
  } catch {
    // Not allowed.
  }
}
