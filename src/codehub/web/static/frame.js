// The page around an IDE. `codehub.js` keeps the bar true; this file looks after the frame: who has the keyboard, what is
// out of reach while something lies over it, and what to do where the browser keeps no pass in frames.

const ide = document.getElementById("ide");
const region = document.querySelector("[data-live]");
const coverOf = () => region.querySelector("[data-cover]");
let kind = coverOf()?.dataset.cover;

function follow() {
  const cover = coverOf();
  if (!cover && kind) return location.reload(); // it was woken elsewhere: what is in the frame is of before
  if (ide) ide.inert = Boolean(cover);
  if (cover?.dataset.cover !== kind) (cover.querySelector("a") ?? document.querySelector(".brand")).focus();
  kind = cover?.dataset.cover;
}

region.addEventListener("updated", follow);
if (ide) {
  ide.addEventListener("load", () => { if (document.activeElement === document.body) ide.focus(); });
  addEventListener("message", (event) => {
    if (event.source === ide.contentWindow && event.data === "codehub:no-pass") location.replace(ide.dataset.tab);
  });
}
// Coming back by the back button shows the page as it was left: ask anew.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
