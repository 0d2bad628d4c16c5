// A session's page beside the IDE: what leads elsewhere leads the whole page there, and Escape hides it.
const isHere = (url) => new URL(url, location.href).pathname.includes(location.pathname.split("/")[2]);

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (link && !link.target && !isHere(link.href)) link.target = "_top";
});
document.addEventListener("submit", (event) => { if (!isHere(event.target.action)) event.target.target = "_top"; }, true);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.target.closest("input, textarea, select, details[open]")) parent.postMessage("codehub:hide-panel", location.origin);
});
