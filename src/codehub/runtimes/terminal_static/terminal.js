"use strict";
const term = new (exported("Terminal"))({ fontFamily: "ui-monospace, Menlo, Consolas, monospace", fontSize: 14, scrollback: 5000 });
const fit = new (exported("FitAddon"))();
const state = document.getElementById("state");
const base = location.pathname.endsWith("/") ? location.pathname : location.pathname + "/";
const name = /^[a-z0-9-]{1,32}$/.test(location.hash.slice(1)) ? location.hash.slice(1) : "main";
let socket = null;
let pause = 250;

function send(...message) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function say(text) {
  state.textContent = text;
  state.hidden = !text;
}

// The shell goes on without us; whoever comes back gets what it printed last. After `exit`, a new one is there.
function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}ws/${name}`);
  socket.onopen = () => {
    pause = 250;
    say("");
    term.reset();
    send("set_size", term.rows, term.cols);
  };
  socket.onmessage = (event) => {
    const [kind, text] = JSON.parse(event.data);
    if (kind === "stdout") term.write(text);
  };
  socket.onclose = () => {
    say("Connecting …");
    setTimeout(connect, pause);
    pause = Math.min(pause * 2, 10000);
  };
}

term.loadAddon(fit);
term.open(document.getElementById("terminal"));
// A terminal takes every key, Tab as well. Inside of another page, this one leads back to that page's bar.
if (parent !== window) {
  term.attachCustomKeyEventHandler((event) => {
    const leaves = event.key === "ArrowUp" && event.ctrlKey && event.shiftKey && !event.altKey && !event.metaKey;
    if (leaves && event.type === "keydown") parent.postMessage("codehub:to-bar", "*");
    return !leaves;
  });
  term.textarea.setAttribute("aria-description", "Ctrl+Shift+Arrow up leads to the bar above the terminal.");
}
term.onData((text) => send("stdin", text));
term.onResize(({ rows, cols }) => send("set_size", rows, cols));
new ResizeObserver(() => fit.fit()).observe(document.getElementById("terminal"));
fit.fit();
connect();
term.focus();
