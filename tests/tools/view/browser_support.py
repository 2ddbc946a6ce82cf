"""Programs for a page that say what overlaps."""

from __future__ import annotations

OVERLAPS = """() => {
  const items = app.view().scene.items.filter(i => i.type !== 'frame');
  const bad = [];
  for (const a of items) for (const b of items) {
    if (a.key < b.key && a.x < b.x + b.width - 1e-6 && b.x < a.x + a.width - 1e-6
      && a.y < b.y + b.height - 1e-6 && b.y < a.y + a.height - 1e-6) bad.push([a.key, b.key]);
  }
  return bad;
}"""


OUTSIDE = """() => {
  const { items } = app.view().scene;
  const frames = items.filter(i => i.type === 'frame');
  const inside = (a, f) => a.x >= f.x && a.y >= f.y && a.x + a.width <= f.x + f.width + 1e-6
    && a.y + a.height <= f.y + f.height + 1e-6;
  return frames.filter(f => app.view().graph.groups[f.reference].nodes.some(n => {
    const item = app.view().scene.byKey.get('n' + n);
    return item && !inside(item, f);
  })).length;
}"""
