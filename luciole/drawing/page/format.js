// Numbers for people.

export function number(x, digits = 4) {
  if (x === null || x === undefined) return "";
  if (!Number.isFinite(x)) return String(x);
  if (Number.isInteger(x) && Math.abs(x) < 1e6) return String(x);
  const text = x.toPrecision(digits);
  return text.includes("e")
    ? text.replace(/\.?0+e/, "e")
    : text.includes(".")
      ? text.replace(/\.?0+$/, "")
      : text;
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes}\u00a0B`;
  return bytes < 1e6
    ? `${(bytes / 1000).toFixed(1)}\u00a0KB`
    : `${(bytes / 1e6).toFixed(2)}\u00a0MB`;
}

export function percent(share) {
  const value = 100 * share;
  return `${value >= 10 || value === 0 ? value.toFixed(1) : value.toPrecision(2)}\u00a0%`;
}

export function measured(measure, value) {
  if (value === undefined || value === null) return "";
  if (measure.unit === "B") return size(value);
  return `${number(value, measure.key === "cosine" ? 7 : 4)}${measure.unit ? `\u00a0${measure.unit}` : ""}`;
}

export function typed(tensor) {
  return `${tensor.dtype}${tensor.text ? ` ${tensor.text}` : ""}`;
}

export function counted(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
