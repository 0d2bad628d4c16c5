// In the frame, where this browser did not keep the pass: the page around it opens the workspace in a tab of its own.
for (const origin of document.querySelector("script[data-origins]").dataset.origins.split(" ")) {
  parent.postMessage("codehub:no-pass", origin);
}
