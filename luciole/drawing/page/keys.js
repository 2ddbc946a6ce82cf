// Keys, Netron's where it has one.

import { savePng, saveSvg } from "./pictures.js";

export const KEYS = [
  ["?", "these keys"],
  ["Ctrl+O", "open another model"],
  ["Ctrl+Shift+O", "compare with another model"],
  ["Ctrl+F", "find"],
  ["arrow keys", "walk along edges"],
  ["E, Shift+E", "edges of the selected box"],
  ["Enter", "open or close a group"],
  ["Escape", "select nothing"],
  ["Ctrl+D", "attributes in the boxes"],
  ["Ctrl+I", "constants in the boxes"],
  ["Ctrl+U", "names in the boxes"],
  ["Ctrl+K", "draw across or down"],
  ["Space", "whole graph"],
  ["Shift+Up, Shift+Down", "zoom"],
  ["Shift+Backspace", "actual size"],
  ["Ctrl+Enter", "model properties"],
  ["Ctrl+B", "hide or show the details"],
  ["Ctrl+M", "the wheel zooms or scrolls"],
  ["Ctrl+Shift+E", "save as PNG"],
  ["Ctrl+Alt+E", "save as SVG"],
];

// Acts on a key; whether it meant something.
export function onKey(app, event) {
  const ctrl = event.ctrlKey || event.metaKey;
  return ctrl
    ? withControl(app, event)
    : event.shiftKey
      ? withShift(app, event.key)
      : plain(app, event);
}

function withControl(app, event) {
  const name = `${event.shiftKey ? "shift+" : ""}${event.altKey ? "alt+" : ""}${event.key.toLowerCase()}`;
  const actions = {
    f: () => app.find.begin(),
    o: () => app.opening.ask(false),
    "shift+o": () => app.opening.ask(true),
    d: () => app.show("attributes"),
    i: () => app.show("constants"),
    u: () => app.show("names"),
    b: () => app.switchSidebar(),
    k: () => app.turn(),
    m: () => app.switchWheel(),
    enter: () => app.showTab("model"),
    "shift+e": () => savePng(app.view()),
    "alt+e": () => saveSvg(app.view()),
  };
  if (!actions[name]) return false;
  actions[name]();
  return true;
}

function withShift(app, key) {
  const view = app.view();
  const actions = {
    "?": () => app.help.toggle(),
    ArrowUp: () => view.zoom(1.25),
    ArrowDown: () => view.zoom(0.8),
    Backspace: () => view.zoom(1 / view.camera.k),
    E: () => view.nextEdge(-1),
  };
  if (!actions[key] || isTyping()) return false;
  actions[key]();
  return true;
}

function plain(app, event) {
  if (isTyping() || event.altKey) return false;
  const view = app.view();
  const inGraph = document.activeElement === view.svg || document.activeElement === document.body;
  if (event.key === "?") app.help.toggle();
  else if (event.key === "Escape") app.escape();
  else if (inGraph && event.key.startsWith("Arrow")) view.walk(event.key);
  else if (inGraph && event.key === "Enter" && view.selected?.startsWith("g"))
    view.toggle(view.selected);
  else if (inGraph && event.key === " ") app.fit();
  else if (inGraph && event.key === "e") view.nextEdge(1);
  else return false;
  return true;
}

function isTyping() {
  return ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName);
}
