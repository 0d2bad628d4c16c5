// Run inside a page: what a person with a small screen, a screen reader or tired eyes would trip over.
() => {
  const complaints = [];
  const visible = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const called = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""}.${e.className.baseVal ?? e.className} "${(e.textContent ?? "").trim().slice(0, 40)}"`;

  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll("body *")].find((e) => visible(e) && e.getBoundingClientRect().right > innerWidth + 1);
    complaints.push(`sticks out to the right: ${wide && called(wide)}`);
  }

  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) complaints.push(`two elements have the id ${id}`);

  for (const e of document.querySelectorAll("a[href], button, summary, input:not([type=hidden])")) {
    if (e.closest("[hidden]")) continue; // not there yet: a script says what it is when it shows it
    const labels = [...(e.labels ?? [])].map((l) => l.textContent).join(" ");
    if (!`${e.getAttribute("aria-label") ?? ""}${labels}${e.textContent}`.trim()) complaints.push(`has no name: ${called(e)}`);
    const box = e.getBoundingClientRect();
    const inText = e.matches("p a, dd a, td a, code a, li a, h2 a, summary");
    if (visible(e) && !inText && box.width && (box.width < 24 || box.height < 24) && !e.matches(".skip, .unseen, input")) complaints.push(`too small to hit: ${called(e)}`);
  }

  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = Number(h.tagName[1]);
    if (next > level + 1) complaints.push(`heading skips a level: ${called(h)}`);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1) complaints.push("not exactly one h1");

  // Contrast, as painted: a canvas turns any colour notation into red, green and blue.
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); return [...paint.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !visible(e) || seen.has(e)) continue;
    seen.add(e);
    const [front, back] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    const body = e.matches("p, li, dd, dt, label, span.soft, h1, h2, h3, .now, .next span, .lead, .soft");
    if (ratio < (body ? 7 : 4.5)) complaints.push(`contrast ${ratio.toFixed(1)}: ${called(e)}`);
  }
  return complaints;
}
