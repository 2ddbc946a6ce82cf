// The numbers of a constant as a table, and as a .npy file.

import { button, download, h, replaceContent } from "./dom.js";
import { available, bytesOf, loadBlob, npy } from "./blobs.js";
import { number, size } from "./format.js";

const ROWS = 25;
const COLUMNS = 48;

// The part of a sidebar that shows a tensor's values when it is opened.
export function valuesPart(tensor, title = "Values") {
  const spec = tensor.values;
  if (!spec) return tensor.why ? h("p", { class: "hint" }, `No values: ${tensor.why}.`) : null;
  if (!available(spec)) {
    return h(
      "p",
      { class: "hint leftout" },
      `${title} left out: ${size(spec.bytes)}. circle-view -o takes more with --embed-limit, without -o it shows them all.`,
    );
  }
  const body = h("div", { class: "values" });
  const part = h(
    "details",
    { class: "values-part" },
    h("summary", {}, `${title}, ${size(spec.bytes)}`),
    body,
  );
  part.addEventListener("toggle", () => part.open && !body.firstChild && fill(body, tensor));
  return part;
}

async function fill(body, tensor) {
  const data = await loadBlob(tensor.values);
  const shape = tensor.values.shape.length ? tensor.values.shape : [1];
  const columns = shape.at(-1);
  const rows = data.length / columns;
  const show = (first) => {
    const last = Math.min(first + ROWS, rows);
    const page = [];
    for (let r = first; r < last; r += 1) page.push(line(data, r, columns, shape));
    const place = `rows ${first} to ${last - 1} of ${rows}${columns > COLUMNS ? `, the first ${COLUMNS} of ${columns} columns` : ""}`;
    replaceContent(
      body,
      h(
        "div",
        { class: "row-tools" },
        rows > ROWS
          ? [
              button("‹", "Previous rows", () => show(Math.max(first - ROWS, 0)), {
                disabled: first === 0,
              }),
              button("›", "Next rows", () => show(last), { disabled: last >= rows }),
            ]
          : null,
        h("span", { class: "faint" }, place),
        button("Save .npy", "Save all values as a NumPy file", () => save(tensor)),
      ),
      h("div", { class: "scrolled" }, h("table", { class: "numbers" }, h("tbody", {}, page))),
    );
  };
  show(0);
}

function line(data, row, columns, shape) {
  const cells = [h("th", { scope: "row" }, place(row, shape))];
  for (let c = 0; c < Math.min(columns, COLUMNS); c += 1) {
    const value = data[row * columns + c];
    cells.push(h("td", {}, typeof value === "bigint" ? String(value) : number(value, 5)));
  }
  return h("tr", {}, cells);
}

// The indices of a row over all axes but the last one.
function place(row, shape) {
  const indices = [];
  let rest = row;
  for (const extent of shape.slice(0, -1).reverse()) {
    indices.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return `[${[...indices, ""].join(",")}]`
    .replace(",]", indices.length ? ",:]" : "]")
    .replace("[]", "[:]");
}

async function save(tensor) {
  const file = npy(tensor.values, await bytesOf(tensor.values));
  download(
    `${tensor.name.replace(/[^\w.-]+/g, "_").slice(0, 80) || "tensor"}.npy`,
    file,
    "application/octet-stream",
  );
}
