// The waiting room's client: one ES module without dependencies, for any page of this origin (docs/waiting-room.md).
//
//   import { WaitingRoom } from "/static/waiting-room.js";
//   const room = new WaitingRoom("workshop");
//   room.listen({ position: (s) => show(s.position), ready: () => offerTheButton(), gone: (why) => explain(why) });
//   await room.join();          // by a click; again after a reload: the same place
//   await room.enter();         // by a click, once it is ready → { reservation_token, expires_at }
//   await room.leave();         // by a click; never because a page was hidden or closed
//
// Being heard of is what keeps the place: by an open stream while the page is seen, by polling when it is hidden, or
// when there is no stream. All tabs of a browser share one place: what is kept is kept per event, in localStorage.

const API = "/api/v1/queue";
const POLL = 2_000; // ms, until the server says otherwise
const HIDDEN = 30_000; // ms: a third of what counts as silent, and browsers let a hidden page ask once a minute
const LONGEST = 30_000; // ms between tries while nothing answers
const ANSWER_WITHIN = 15_000;
const STREAM_AGAIN = 20_000; // ms of polling after a stream that was refused or broke
const GONE = "TOKEN_EXPIRED";
export const KEY = "codehub:wait:";

/** What the API refused: its `code`, its sentence, its `position`; `UNAVAILABLE` where nothing answered. */
export class WaitingRoomError extends Error {
  constructor(status, error, retryAfter) {
    super(error?.message ?? `status ${status}`);
    this.status = status;
    this.code = error?.code ?? "UNAVAILABLE";
    this.position = error?.position ?? null;
    this.retryAfter = retryAfter; // seconds
  }
}

async function ask(method, path, body) {
  const options = { method, headers: { accept: "application/json" }, cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN) };
  if (body) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(`${API}${path}`, options).catch(() => {
    throw new WaitingRoomError(0, { message: "no answer: try again in a moment" }, null);
  });
  const said = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (!answer.ok) throw new WaitingRoomError(answer.status, said?.error, Number(answer.headers.get("retry-after")) || null);
  return said;
}

/** How long to wait before the next try: doubled each time, and never the same for all who lost the server at once. */
export function backoff(failures, random = Math.random()) {
  return Math.min(POLL * 2 ** Math.max(0, failures - 1), LONGEST) * (0.5 + random / 2);
}

/** After an answer: as often as the server says; a page that nobody sees asks less often. */
export function pace(status, hidden) {
  const told = status?.poll_after_ms ?? POLL;
  return hidden ? Math.max(told, HIDDEN) : told;
}

export class WaitingRoom {
  #token = null;
  #handlers = {};
  #timer = null;
  #stream = null;
  #lastId = "";
  #failures = 0;
  #listening = false;
  #noStreamUntil = 0;
  #ready = false;
  #asking = 0; // the number of the newest question: an older answer that comes late is not told

  /** `user`: only for an admin who joins for somebody else. `token`: of a place that is known already. */
  constructor(event, { user = null, token = null } = {}) {
    this.event = event;
    this.user = user;
    this.status = null; // as it was last told
    this.#token = token ?? this.#recall();
    if (token) this.#remember(token);
  }

  get token() {
    return this.#token;
  }

  /** A place in line, or the one that this person has already. Also makes one live again who was passed over. */
  async join() {
    const body = { event_id: this.event, ...(this.user ? { user_id: this.user } : {}) };
    const said = await ask("POST", "/join", body);
    this.#remember(said.waiting_token);
    this.#tell(said);
    this.#begin();
    return said;
  }

  /** `position(status)`, `ready(status)`, `gone(why)` (expired, left, entered), `away(failures)`, `back()`. */
  listen(handlers = {}) {
    this.#handlers = handlers;
    this.#listening = true;
    document.addEventListener("visibilitychange", this.#seen);
    addEventListener("storage", this.#otherTab);
    addEventListener("pagehide", this.#silence); // a place outlives its page: nothing is said to the server
    addEventListener("pageshow", this.#seen);
    addEventListener("online", this.#seen);
    if (this.#token) this.#begin();
    return () => this.stop();
  }

  /** Stop listening. The place stays. */
  stop() {
    this.#listening = false;
    document.removeEventListener("visibilitychange", this.#seen);
    removeEventListener("storage", this.#otherTab);
    removeEventListener("pagehide", this.#silence);
    removeEventListener("pageshow", this.#seen);
    removeEventListener("online", this.#seen);
    this.#silence();
  }

  /** Take the place, when it is one's turn. Throws NOT_YOUR_TURN (with `position`) or TOKEN_EXPIRED otherwise. */
  async enter() {
    if (!this.#token) throw new WaitingRoomError(404, { code: GONE, message: "not in line: join first" }, null);
    try {
      const said = await ask("POST", "/enter", { waiting_token: this.#token });
      this.#over("entered");
      return said;
    } catch (error) {
      if (error.code === GONE) this.#over("expired");
      throw error;
    }
  }

  /** By the person's own act, and only so. By a beacon, which arrives also if the page is left right after. */
  async leave() {
    const token = this.#token;
    if (!token) return;
    this.#over("left");
    const sent = navigator.sendBeacon?.(`${API}/leave`, JSON.stringify({ waiting_token: token }));
    if (!sent) await ask("DELETE", `/leave?token=${encodeURIComponent(token)}`);
  }

  // --- being heard of ------------------------------------------------------------------------------------------------

  #begin() {
    if (!this.#listening || !this.#token) return;
    this.#silence();
    if (!document.hidden && "EventSource" in globalThis && performance.now() >= this.#noStreamUntil) this.#openStream();
    else this.#poll();
  }

  #silence = () => {
    clearTimeout(this.#timer);
    this.#stream?.close();
    this.#stream = this.#timer = null;
    this.#asking += 1;
  };

  #seen = () => {
    this.#failures = 0;
    this.#begin();
  };

  async #poll() {
    const mine = ++this.#asking;
    try {
      const status = await ask("GET", `/status?token=${encodeURIComponent(this.#token)}`);
      if (mine !== this.#asking) return;
      this.#reached();
      this.#tell(status);
      this.#plan(pace(status, document.hidden));
    } catch (error) {
      if (mine !== this.#asking) return;
      if (error.code === GONE) return this.#over("expired");
      this.#failed();
      this.#plan(Math.max(backoff(this.#failures), 1000 * (error.retryAfter ?? 0)));
    }
  }

  /** The next look; by a stream again, where one may be had. */
  #plan(delay) {
    this.#timer = setTimeout(() => this.#begin(), delay);
  }

  #openStream() {
    const query = new URLSearchParams({ token: this.#token, ...(this.#lastId ? { last_event_id: this.#lastId } : {}) });
    const stream = (this.#stream = new EventSource(`${API}/stream?${query}`));
    const told = (event) => {
      this.#lastId = event.lastEventId || this.#lastId;
      this.#reached();
      this.#tell(JSON.parse(event.data));
    };
    stream.addEventListener("position", told);
    stream.addEventListener("ready", told);
    for (const why of ["entered", "expired", "left"]) stream.addEventListener(why, () => this.#over(why));
    stream.onopen = () => this.#reached();
    stream.onerror = () => {
      // Refused, cut or ended: polling says which, and keeps the place meanwhile.
      stream.close();
      if (this.#stream !== stream) return;
      this.#stream = null;
      this.#noStreamUntil = performance.now() + STREAM_AGAIN;
      this.#timer = setTimeout(() => this.#poll(), backoff(0) * Math.random());
    };
  }

  #reached() {
    if (this.#failures) this.#call("back");
    this.#failures = 0;
  }

  #failed() {
    this.#failures += 1;
    this.#call("away", this.#failures);
  }

  #tell(status) {
    if (status.waiting_token && status.waiting_token !== this.#token) this.#remember(status.waiting_token);
    this.status = status;
    this.#call("position", status);
    if (status.ready_for_entry && !this.#ready) this.#call("ready", status);
    this.#ready = status.ready_for_entry;
  }

  #over(why) {
    this.#silence();
    this.#forget();
    this.#ready = false;
    this.#call("gone", why);
  }

  #call(name, ...said) {
    this.#handlers[name]?.(...said);
  }

  // --- what all tabs share -------------------------------------------------------------------------------------------

  #recall() {
    try {
      return localStorage.getItem(KEY + this.event);
    } catch {
      return null; // not allowed: the place lasts as long as this page
    }
  }

  #remember(token) {
    this.#token = token;
    try {
      localStorage.setItem(KEY + this.event, token);
    } catch {
      // Not allowed, or full.
    }
  }

  #forget() {
    this.#token = null;
    try {
      localStorage.removeItem(KEY + this.event);
    } catch {
      // Not allowed.
    }
  }

  /** Another tab joined: this one is in line, too. That one left or entered is told by the server, with its reason. */
  #otherTab = (event) => {
    if (event.key !== KEY + this.event || event.newValue === this.#token) return;
    if (event.newValue) {
      this.#token = event.newValue;
      this.#begin();
    } else if (this.#token && !this.#stream) {
      this.#silence();
      this.#poll();
    }
  };
}
