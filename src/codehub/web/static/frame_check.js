// In the frame, on the way into an IDE whose pages need a service worker. A browser that gives none to a page inside of
// another site's page says so when it is asked for one: then the page around it opens the workspace in a tab of its own.
const { next, origin } = document.querySelector("script[data-next]").dataset;
try {
  await navigator.serviceWorker.getRegistration();
  location.replace(next);
} catch {
  parent.postMessage("codehub:no-pass", origin);
}
