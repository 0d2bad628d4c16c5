// On every page: a form that leads to another page shows at once that it was sent, and a second click sends nothing.
// What `codehub.js` and the other files send by themselves, they show themselves.

const AGAIN_AFTER = 8_000; // ms: where the answer is a file no page comes, and it may be wanted again

const buttonOf = (form, submitter) => submitter ?? form.querySelector("button:not([type=button])");

function settle(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}

addEventListener("submit", (event) => { // of the window: after all others
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || form.target) return;
  if ("sent" in form.dataset) return event.preventDefault();
  form.dataset.sent = "";
  if (!form.dataset.busy) buttonOf(form, event.submitter)?.setAttribute("aria-busy", "true"); // else it says what it does
  setTimeout(settle, AGAIN_AFTER, form);
});
// Coming back by the back button shows the page as it was left.
addEventListener("pageshow", (event) => {
  if (event.persisted) for (const form of document.querySelectorAll("form[data-sent]")) settle(form);
});
