// Run inside a page, in three parts around presses of Tab: what should get the focus, what got it, what did not.
(() => {
  const called = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""}.${e.className.baseVal ?? e.className} "${(e.textContent || e.name || "").trim().slice(0, 40)}"`;
  const visible = (e) => e.checkVisibility({ checkVisibilityCSS: true });
  const group = (e) => [...document.querySelectorAll("input[type=radio]")].filter((one) => one.name === e.name && one.form === e.form && !one.disabled);
  const reachable = (e) => {
    if (!visible(e) || e.matches(":disabled, [tabindex='-1']") || e.closest("[inert]")) return false;
    if (e.matches("summary")) return e.parentElement?.firstElementChild === e;
    if (e.matches("input[type=radio]")) return (group(e).find((one) => one.checked) ?? group(e)[0]) === e; // arrows go on from there
    return true;
  };
  const shown = (e) => {
    for (const one of [e, e.closest("label")]) {
      const style = one && getComputedStyle(one);
      if (style && (style.outlineStyle === "auto" || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2))) return true;
    }
    return false;
  };
  const hidden = (e) => {
    const box = e.getClientRects()[0];
    if (!box || box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth) return "is off the screen";
    const inside = (low, high, most) => (Math.max(low, 0) + Math.min(high, most)) / 2;
    const top = document.elementFromPoint(inside(box.left, box.right, innerWidth - 1), inside(box.top, box.bottom, innerHeight - 1));
    return top && !e.contains(top) && !top.contains(e) && !e.closest("label")?.contains(top) ? `is covered by ${called(top)}` : "";
  };
  window.__keyboard ??= {
    begin() {
      this.got = [];
      this.wrong = [];
      this.menus = [...document.querySelectorAll("details.menu[open]")]; // close when the focus leaves them
      this.wanted = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")].filter(reachable);
      this.start = document.createElement("span"); // where Tab goes on from; it stays: an IDE takes the focus that nobody has
      this.start.tabIndex = -1;
      this.start.style.position = "fixed";
      document.body.prepend(this.start);
      this.start.focus();
      scrollTo(0, 0);
      if (!this.listens) addEventListener("keyup", () => this.note(), true);
      this.listens = true;
      // Boxes that scroll get the focus as well, and a date has it for day, month, year and calendar.
      const scrolls = [...document.querySelectorAll("body *")].filter((e) => /auto|scroll/.test(getComputedStyle(e).overflow) && (e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight));
      return this.wanted.length + scrolls.length + 4 * document.querySelectorAll("input[type=date]").length + 1;
    },
    note() {
      const e = document.activeElement;
      if (!e || e === document.body || e === this.start || this.got.includes(e)) return;
      this.got.push(e);
      if (e.matches("iframe")) return;
      if (!shown(e)) this.wrong.push(`the focus is not seen: ${called(e)}`);
      const why = hidden(e);
      if (why) this.wrong.push(`has the focus and ${why}: ${called(e)}`);
    },
    end() {
      this.start.remove();
      const missed = this.wanted.filter((e) => e.isConnected && reachable(e) && !this.got.includes(e)).map((e) => `does not get the focus: ${called(e)}`);
      const order = this.got.filter((e) => this.wanted.includes(e));
      const astray = order.filter((e, at) => at && order[at - 1].compareDocumentPosition(e) & Node.DOCUMENT_POSITION_PRECEDING).map((e) => `out of order: ${called(e)}`);
      for (const menu of this.menus) menu.open = true; // as the test left it
      return [...this.wrong, ...missed, ...astray];
    },
  };
  return window.__keyboard;
})()
