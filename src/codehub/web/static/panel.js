// A session's page beside the IDE: what leads elsewhere leads the whole page there, and Escape hides it. What concerns
// the person is said in the bar above both, once.
const isHere = (url) => new URL(url, location.href).pathname.includes(location.pathname.split("/")[2]);

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (link && !link.target && !isHere(link.href)) link.target = "_top";
});
document.addEventListener("submit", (event) => {
  if (!isHere(event.target.action)) event.target.target = "_top";
  // The page around this one wakes the workspace in its place, and leaves these instructions where they are.
  const wake = event.target.matches(".opens") && parent.document.querySelector("[data-cover=asleep] a");
  if (!wake) return;
  event.preventDefault();
  event.stopPropagation();
  wake.click();
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.target.closest("input, textarea, select, details[open]")) parent.postMessage("codehub:hide-panel", location.origin);
});
// That nothing answers is said in the bar, too: it finds out by itself.
document.querySelector("[data-live]").addEventListener("unanswered", () => {
  parent.document.querySelector("[data-live]")?.dispatchEvent(new parent.Event("look"));
});
