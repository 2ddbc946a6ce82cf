"""Style the page of a search, by day and by night, on narrow and wide screens."""

STYLE = """
:root {
  color-scheme: light dark;
  --back: light-dark(#f5f6f8, #14181e); --paper: light-dark(#ffffff, #1f252d);
  --ink: light-dark(#1c2530, #e6eaf0); --faint: light-dark(#5a6575, #9aa5b4);
  --rule: light-dark(#dfe3e8, #303842); --accent: light-dark(#1c63c9, #7db1ff);
  --searched: light-dark(#7d8a99, #7f8c9b); --uniform: light-dark(#c0392b, #ff8a7a);
  --greedy: light-dark(#a15c00, #f0b35a); --files: light-dark(#00796b, #4fd1c0);
}
* { box-sizing: border-box; }
body {
  margin: 0; color: var(--ink); background: var(--back);
  font: 15px/1.5 "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif;
}
main { max-width: 1180px; margin: 0 auto; padding: 20px 24px 48px; }
h1 { font-size: 24px; margin: 8px 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 10px; }
p { margin: 0 0 12px; max-width: 70ch; color: var(--faint); }
section {
  margin: 18px 0; padding: 16px 18px; background: var(--paper); border: 1px solid var(--rule);
  border-radius: 10px;
}
.wide { overflow-x: auto; }
a { color: var(--accent); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { text-align: right; font-weight: 600; color: var(--faint); font-size: 13px; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
td { text-align: right; }
th:first-child, td:first-child, .text { text-align: left; }
.text { white-space: normal; min-width: 44ch; font-size: 13px; color: var(--faint); }
.gain { text-align: left; }
.bar { display: inline-block; height: 10px; background: var(--files); border-radius: 2px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--faint); }
.legend i {
  display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 6px;
}
svg { display: block; font: 13px Helvetica, Arial, "Liberation Sans", sans-serif; }
svg.plot { width: 100%; height: auto; min-width: 620px; max-width: 960px; }
svg text { fill: var(--ink); }
svg .faint { fill: var(--faint); }
svg .on { fill: #ffffff; }
svg line { stroke: var(--rule); }
svg polyline { fill: none; stroke: var(--files); stroke-width: 2; }
.searched { fill: var(--searched); opacity: 0.55; background: var(--searched); }
.uniform, .greedy { fill: none; stroke-width: 2; }
.uniform { stroke: var(--uniform); border: 2px solid var(--uniform); }
.greedy { stroke: var(--greedy); border: 2px solid var(--greedy); }
.files { fill: var(--files); background: var(--files); }
@media (max-width: 700px) {
  main { padding: 12px; }
  section { padding: 12px; }
  svg.plot { min-width: 0; font-size: 22px; }
}
"""
