// Run inside a page on a small screen, or a large one at twice the size: nothing is lost.
() => {
  const complaints = [];
  const called = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""}.${e.className.baseVal ?? e.className} "${(e.textContent ?? "").trim().slice(0, 40)}"`;
  const visible = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) complaints.push(`scrolls to the side: ${root.scrollWidth} of ${innerWidth}`);

  // A box that scrolls or that shortens a name with an ellipsis (whole in its title) loses nothing.
  const cuts = (e) => {
    const style = getComputedStyle(e);
    if (e.closest(".unseen, .skip")) return false;
    const shortened = style.textOverflow === "ellipsis" || (style.webkitLineClamp !== "none" && style.webkitLineClamp !== "");
    return !shortened && [style.overflowX, style.overflowY].some((way) => way === "hidden" || way === "clip");
  };
  for (const e of document.querySelectorAll("body *")) {
    if (!visible(e) || !cuts(e) || e.matches("input, progress, svg, svg *, iframe, img")) continue;
    if (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1) complaints.push(`is cut off: ${called(e)}`);
  }

  const reach = (e) => { for (let p = e.parentElement; p; p = p.parentElement) if (["auto", "scroll"].includes(getComputedStyle(p).overflowX)) return true; return false; };
  for (const e of document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea")) {
    const box = e.getBoundingClientRect();
    if (!visible(e) || !box.width || e.matches(".skip, .unseen") || e.closest(".unseen")) continue;
    if ((box.left < -1 || box.right > innerWidth + 1) && !reach(e)) complaints.push(`is out of reach: ${called(e)}`);
  }
  return complaints;
}
