// Menus that open below a button of the bar, for the mouse and for the keyboard alone.

import { button, h } from "./dom.js";

export class Menu {
  constructor(title, parts, properties = {}) {
    const { label, ...others } = properties;
    this.summary = h("summary", { "aria-label": label, title: label }, title);
    this.body = h("div", { class: "menu-body" }, parts);
    this.element = h("details", { class: "menu", ...others }, this.summary, this.body);
    this.element.addEventListener("keydown", (e) => this.key(e));
    this.element.addEventListener("toggle", () => this.element.open && this.keepInside());
  }

  toggle() {
    const open = !this.element.open;
    closeMenus(null);
    this.element.open = open;
    if (open) this.summary.focus();
  }

  // Leaves a menu for what it led to.
  leave() {
    this.element.open = false;
    this.summary.focus();
  }

  // Moves the opened part into the window where it would stick out.
  keepInside() {
    this.body.style.left = "";
    const { left, right } = this.body.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const by = right > width - 6 ? width - 6 - right : Math.max(6 - left, 0);
    if (by) this.body.style.left = `${this.body.offsetLeft + by}px`;
  }

  key(event) {
    if (!this.element.open) return;
    const entries = [this.summary, ...this.body.querySelectorAll("button")];
    const at = entries.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 1, End: entries.length - 1 }[event.key];
    if (event.key === "Escape") this.leave();
    else if (to !== undefined) entries[Math.min(Math.max(to, 0), entries.length - 1)].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// An entry that does something and closes the menu; `key` is what does the same.
export function entry(text, key, act) {
  const made = button("", text, (e) => {
    const menu = e.currentTarget.closest("details");
    menu.open = false;
    menu.querySelector("summary").focus();
    act();
  });
  made.append(h("span", {}, text), h("kbd", {}, key));
  return made;
}

// An entry that is on or off, and leaves the menu open.
export function check(text, key, isOn, act) {
  const made = button("", text, act, { role: "menuitemcheckbox", "aria-checked": String(isOn) });
  made.append(h("span", {}, text), h("kbd", {}, key));
  return made;
}

// Closes all menus but the one that an element is in; whether any was open.
export function closeMenus(element) {
  const open = [...document.querySelectorAll("details.menu[open]")];
  const others = open.filter((menu) => !menu.contains(element));
  for (const menu of others) menu.open = false;
  return others.length > 0;
}
