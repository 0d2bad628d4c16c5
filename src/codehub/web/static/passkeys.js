// Passkeys on the page to log in on, on the account's, and on the one to join a class on: asks the server for a question,
// has the browser put it to a passkey, and sends the answer with an ordinary form. What is said is in the page already;
// this file shows what fits.

const BINARY = new Set(["challenge", "id", "rawId"]);
const BEFORE_ITS_END = 30; // seconds: a question that waits in the name field is asked anew in time

for (const area of document.querySelectorAll("[data-passkeys]")) begin(area);

function begin(area) {
  const form = area.querySelector("form");
  const { origin, passkeys: kind } = area.dataset;
  if (!form) return; // there are as many as there may be
  if (kind === "join") return choice(area, form);
  if (origin !== location.origin) return say(area, "elsewhere");
  if (!window.PublicKeyCredential || !navigator.credentials) return say(area, "unsupported");
  form.hidden = false;
  listen(area, form, kind, () => true);
  if (kind === "get") offer(area, form);
}

/** Beside a password, which goes on working where passkeys do not. */
function choice(area, form) {
  if (area.dataset.origin !== location.origin || !window.PublicKeyCredential || !navigator.credentials) return;
  const { way, password } = form.elements;
  const show = () => {
    for (const part of form.querySelectorAll("[data-way]")) part.hidden = part.dataset.way !== (way.value || "password");
    password.disabled = way.value === "passkey"; // else it is asked for before the form is sent
    say(area, null);
  };
  for (const button of form.querySelectorAll("[data-choose]")) {
    button.addEventListener("click", () => {
      way.value = button.dataset.choose;
      show();
      (way.value === "passkey" ? form.querySelector("[data-choose=password]") : password).focus();
    });
  }
  way.value ||= form.dataset.chosen ?? "";
  form.querySelector("[data-offered]").hidden = false;
  addEventListener("pageshow", show); // a browser that comes back may know what was chosen
  listen(area, form, "join", () => way.value === "passkey");
}

function listen(area, form, kind, wanted) {
  form.addEventListener("submit", (event) => {
    if (!wanted() || form.elements.credential.value) return; // answered: it goes to the server
    event.preventDefault();
    if (!("busy" in form.dataset)) answer(area, form, kind);
  });
  // Back from the next page: what was answered is over.
  addEventListener("pageshow", () => {
    form.elements.credential.value = "";
    busy(form, false);
  });
}

/** By the button: the browser asks its person at once. */
async function answer(area, form, kind) {
  busy(form, true);
  say(area, null);
  waiting?.abort();
  try {
    const { options } = await question(area, form);
    const publicKey = decoded(options);
    send(form, await (kind === "get" ? navigator.credentials.get({ publicKey }) : navigator.credentials.create({ publicKey })));
  } catch (error) {
    if (error instanceof Refusal && kind === "join") return form.submit(); // the page says what is wrong, and where
    busy(form, false);
    if (error instanceof Refusal && area.dataset.refused) return location.assign(area.dataset.refused + error.message);
    say(area, { NotAllowedError: "cancelled", AbortError: "cancelled", InvalidStateError: "exists" }[error.name] ?? "failed");
    if (kind === "get") offer(area, form);
  }
}

// --- in the field for the name ---------------------------------------------------------------------------------------

let waiting = null; // ends what waits there

/** Where browsers can, passkeys are offered with the names that one may fill in; nothing is asked unless one is taken. */
async function offer(area, form) {
  if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
  waiting?.abort();
  const mine = (waiting = new AbortController());
  try {
    const { options, expires_in_seconds: seconds } = await question(area);
    if (mine.signal.aborted) return;
    const again = setTimeout(() => waiting === mine && offer(area, form), (seconds - BEFORE_ITS_END) * 1000);
    mine.signal.addEventListener("abort", () => clearTimeout(again));
    const found = await navigator.credentials.get({ publicKey: decoded(options), mediation: "conditional", signal: mine.signal });
    clearTimeout(again);
    busy(form, true);
    send(form, found);
  } catch {
    // The button is there all the same.
  }
}

// --- how -------------------------------------------------------------------------------------------------------------

class Refusal extends Error {}

async function question(area, form) {
  const sent = { method: "POST", headers: { accept: "application/json" } };
  if (area.dataset.code) {
    const typed = (name) => form.elements[name].value.trim();
    sent.headers["content-type"] = "application/json";
    sent.body = JSON.stringify({ code: area.dataset.code, name: typed("name").toLowerCase(), display_name: typed("display_name") });
  }
  const answer = await fetch(area.dataset.question, sent);
  const found = await answer.json();
  if (!answer.ok) throw new Refusal(found.code);
  return found;
}

function send(form, credential) {
  form.elements.credential.value = JSON.stringify(encoded(credential));
  form.submit();
}

/** The button says so: a slow network looks like nothing. */
function busy(form, yes) {
  const button = form.querySelector("[data-waiting]");
  button.dataset.was ??= button.textContent;
  button.textContent = yes ? button.dataset.waiting : button.dataset.was;
  form.toggleAttribute("data-busy", yes);
}

function say(area, what) {
  for (const text of area.querySelectorAll("[data-when]")) text.hidden = text.dataset.when !== what;
  if (what) for (const old of area.querySelectorAll(".problem:not([data-when])")) old.hidden = true;
}

/** The server's JSON as browsers want it: what is binary is base64url in it. */
function decoded(value, key = "") {
  if (typeof value === "string") return BINARY.has(key) ? bytes(value) : value;
  if (Array.isArray(value)) return value.map((each) => decoded(each));
  if (value === null || typeof value !== "object") return value;
  // The name that passkeys belong to is called `id`, too, and is text.
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, name === "rp" ? each : decoded(each, name)]));
}

function encoded(credential) {
  const { response } = credential;
  const found = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (response[name]?.byteLength) found[name] = base64(response[name]);
  }
  if (response.attestationObject) found.transports = response.getTransports?.() ?? [];
  return { id: credential.id, rawId: base64(credential.rawId), type: credential.type, response: found };
}

function bytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

function base64(buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
