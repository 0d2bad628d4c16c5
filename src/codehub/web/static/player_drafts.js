// Answers that were not sent yet. Each tab keeps its own; where another tab or device answered otherwise meanwhile, both
// are offered, and what was typed here comes first.

import { forget, place, recall, remember } from "./player_memory.js";

const tab = () => sessionStorage;
const inputs = (form) => [...form.querySelectorAll("input:not([type=hidden])")];
/** As the server sent it. */
const given = (form) => inputs(form).map((i) => (i.type === "text" ? i.defaultValue : i.defaultChecked));
const typed = (form) => inputs(form).map((i) => (i.type === "text" ? i.value : i.checked));
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function put(form, values) {
  inputs(form).forEach((input, i) => {
    if (input.type === "text") input.value = values[i] ?? "";
    else input.checked = values[i] ?? false;
  });
}

function keep(section, form) {
  const value = { given: given(form), typed: typed(form) };
  remember(place(section, "answers"), value);
  remember(place(section, "answers"), value, tab);
}

/** What was typed is put back; where other answers are known, they can be looked at, too. */
function restore(section, form) {
  const mine = recall(place(section, "answers"), tab);
  const shared = recall(place(section, "answers"));
  const sent = given(form);
  if (mine) {
    put(form, mine.typed);
    if (!same(mine.given, sent) && !same(mine.typed, sent)) return sent;
    return shared && same(shared.given, sent) && !same(shared.typed, mine.typed) ? shared.typed : null;
  }
  if (shared && same(shared.given, sent)) put(form, shared.typed); // on top of the same only
  return null;
}

function offer(section, form, theirs) {
  const box = section.querySelector("[data-other]");
  if (!box) return;
  const mine = typed(form);
  box.hidden = false;
  const swap = (values, shown) => {
    put(form, values);
    keep(section, form);
    for (const line of box.children) line.hidden = line !== shown;
  };
  const [here, there] = box.children;
  here.querySelector("button").onclick = () => swap(theirs, there);
  there.querySelector("button").onclick = () => swap(mine, here);
}

/** `isNew`: the page came to this step, as opposed to what is said around the same inputs. */
export function draft(section, isNew) {
  const form = section.querySelector("[data-draft]");
  if (!form) return;
  const theirs = isNew ? restore(section, form) : null;
  if (theirs) offer(section, form, theirs);
  form.oninput = () => keep(section, form);
}

/** They were sent: the platform has them. */
export const dropDraft = (section) => forget(place(section, "answers"));
