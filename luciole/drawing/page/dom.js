// Elements are made here and nowhere else: texts become text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";

// An HTML element. Properties beginning with "on" are listeners, the others attributes.
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

// An SVG element.
export function s(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function replaceContent(element, ...children) {
  element.replaceChildren(
    ...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false),
  );
}

export function button(text, title, onclick, properties = {}) {
  return h("button", { type: "button", title, onclick, ...properties }, text);
}

// Gives the user a file.
export function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Tells people who listen to the page.
export function announce(text) {
  document.getElementById("live").textContent = text;
}
