"""How the report looks: on paper, on a desk and on a telephone, by day and by night."""

from __future__ import annotations

from densereward_ros.report.timeline import CURVE, FAILURE, GRID, INK, RECOVERY, SHADE, SUCCESS

STYLE = f"""
:root {{
  color-scheme: light dark;
  --paper: #fff; --ink: {INK}; --muted: #5d6873; --grid: {GRID}; --shade: {SHADE};
  --curve: {CURVE}; --failure: {FAILURE}; --caution: {RECOVERY}; --success: {SUCCESS}; --truth: #7b8794;
}}
@media screen and (prefers-color-scheme: dark) {{
  :root {{
    --paper: #11161c; --ink: #e4e9ee; --muted: #9aa6b2; --grid: #2b343e; --shade: #1a2129;
    --curve: #7ea6ff; --failure: #ff7d75; --caution: #eba54a; --success: #5fca8c; --truth: #8895a3;
  }}
}}
""" + """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2.5rem clamp(1rem, 4vw, 2.5rem) 4rem; max-width: 70rem;
  background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word;
}
h1, h2, h3, p, dl, dd, figure, ul { margin: 0; padding: 0; }
h1 { font-size: 1.75rem; line-height: 1.2; letter-spacing: -.015em; font-weight: 680; }
h2 { font-size: 1.15rem; line-height: 1.3; margin: 2.8rem 0 .8rem; font-weight: 650;
  letter-spacing: -.005em; }
h3 { font-size: .8rem; font-weight: 600; color: var(--muted); margin: 0 0 .6rem; }
a { color: var(--curve); text-underline-offset: .15em; text-decoration-thickness: .06em; }
.muted, .lead { color: var(--muted); }
.lead { margin-top: .35rem; }
.bad { color: var(--failure); } .good { color: var(--success); } .warn { color: var(--caution); }
code { font: .86em/1.45 ui-monospace, 'DejaVu Sans Mono', 'Liberation Mono', monospace; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 1px;
  margin-top: 1.6rem; border: 1px solid var(--grid); border-radius: 8px; overflow: hidden; }
.tiles div { box-shadow: 0 0 0 1px var(--grid); padding: .75rem 1rem .8rem; }
.tiles dt { color: var(--muted); font-size: .8rem; }
.tiles dd { font-size: 1.55rem; line-height: 1.25; font-weight: 620; letter-spacing: -.01em; }
.tiles dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--muted);
  letter-spacing: 0; }

table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th { text-align: left; font-weight: 600; color: var(--muted); font-size: .8rem; vertical-align: bottom; }
th, td { padding: .34rem 1.1rem .34rem 0; border-bottom: 1px solid var(--grid); }
td { vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
.n { text-align: right; white-space: nowrap; }
.list { table-layout: fixed; }
.list td { vertical-align: middle; padding-top: .5rem; padding-bottom: .5rem; }
.list th:nth-child(1) { width: 2.6rem; } .list th:nth-child(3) { width: 10rem; }
.list th:nth-child(n+4) { width: 5rem; } .list th:nth-child(8) { width: 8rem; }
.narrow { display: none; }
.list .task { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden;
  color: var(--muted); font-size: .8rem; line-height: 1.35; }
.spark { display: block; width: 8.6rem; height: 2rem; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem 3rem; }

svg path { fill: none; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--grid); stroke-width: 1; }
.curve { stroke: var(--curve); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.truth { stroke: var(--truth); stroke-width: 1.3; stroke-dasharray: 4 3; }
.dot { stroke: var(--curve); stroke-width: 5; stroke-linecap: round; }
.wrong { stroke: var(--failure); stroke-width: 6; stroke-linecap: round; }
.event { stroke: var(--failure); stroke-width: 1.4; }
.drop { stroke-dasharray: 5 3; }
.seam { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 1 3; }
.malformed { stroke: var(--caution); stroke-width: 2.5; }
.spark .curve { stroke-width: 1.5; } .spark .dot { stroke-width: 3; }
.spark .event { stroke-width: 1; opacity: .7; }

.story { padding: 0 .9rem 0 2.9rem; }
.strip { display: grid; grid-template-columns: repeat(var(--count), 1fr); }
.strip figure { display: flex; flex-direction: column; padding: 0 2px; text-align: center;
  font-size: .78rem; color: var(--muted); line-height: 1.5; }
.strip img { display: block; max-width: 100%; max-height: 5.6rem; width: auto; height: auto;
  margin: auto auto .2rem; }
.strip .at img { outline: 2px solid var(--failure); outline-offset: -1px; }
.strip .at { color: var(--failure); font-weight: 600; }
.links { display: block; width: 100%; height: 2.35rem; margin-bottom: -1.25rem; }
.links path { stroke: var(--truth); stroke-width: 1; opacity: .8; }
.links .at { stroke: var(--failure); }
.chart { position: relative; }
.plot { position: relative; height: 11rem; border-bottom: 1px solid var(--truth); }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.y, .x, .flag { position: absolute; font-size: .75rem; line-height: 1; color: var(--muted);
  white-space: nowrap; }
.y { right: 100%; margin-right: .6rem; transform: translateY(-50%); }
.axis { position: relative; height: 1.3rem; }
.x { top: .4rem; transform: translateX(-50%); }
.flags { position: relative; height: 1.25rem; }
.flag { display: inline-flex; gap: .3em; bottom: 0; padding: .2rem .1rem .25rem .2rem; margin-left: -.4rem;
  color: var(--failure); background: var(--paper); }
.flag i { font-style: normal; }
.flag.back-wide { transform: translateX(calc(.8rem - 100%)); flex-direction: row-reverse; }
.known .flag { color: var(--muted); bottom: auto; top: .1rem; background: none; }
.known b { font-size: .6rem; }
.flag.no-wide, .short-wide i { display: none; }
.known .flag.no-wide { display: inline-flex; } .known .no-wide i { display: none; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem 1.2rem; font-size: .78rem;
  color: var(--muted); margin-top: .6rem; }
.legend svg { width: 1.3rem; height: .7rem; margin-right: .4rem; vertical-align: -.03rem; }

.episode { border: 1px solid var(--grid); border-radius: 8px; margin-top: 1rem; content-visibility: auto;
  contain-intrinsic-size: auto 4.5rem; }
.episode[open] { contain-intrinsic-size: auto 40rem; }
.episode > summary { display: grid; grid-template-columns: minmax(0, 1fr) auto; overflow-wrap: anywhere;
  gap: 0 1.5rem; align-items: baseline; padding: .8rem 1.1rem; cursor: pointer; list-style: none; }
.episode > summary::-webkit-details-marker { display: none; }
.episode > summary b { position: relative; padding-left: 1.07em; font-size: 1.02rem; font-weight: 640; }
.episode > summary b::before { content: ''; position: absolute; left: 0; top: .42em;
  width: .42em; height: .42em; border: solid var(--muted); border-width: 0 2px 2px 0;
  transform: rotate(-45deg); }
.episode[open] > summary b::before { transform: translateY(-.1em) rotate(45deg); }
.episode > summary .task { grid-column: 1; color: var(--muted); padding-left: 1.07em; }
.episode > summary .last { grid-row: 1; grid-column: 2; text-align: right; }
.body { padding: .2rem 1.1rem 1.2rem; scroll-margin-top: 5.2rem; }
.facts { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; font-size: .84rem; margin: 0 0 1.2rem; }
.facts div { display: flex; gap: .45em; }
.facts dt { color: var(--muted); } .facts dd { overflow-wrap: anywhere; }
.task { color: var(--muted); }
.metrics .task { display: block; font-size: .8rem; }
.failed td { overflow-wrap: anywhere; }
.rows ul { margin: .4rem 0 0 1.2rem; font-size: .84rem; color: var(--muted); }
main > .rows, main > table + .note { margin-top: .8rem; }
.body > table, .body > details { margin-top: 1rem; }
.events { width: auto; min-width: 65%; } .events th:first-child { width: 2rem; }
.note { font-size: .84rem; color: var(--muted); margin: 0 0 1rem; }
.rows > summary { cursor: pointer; font-size: .875rem; color: var(--muted); }
details.verdicts table { margin-top: .4rem; width: auto; min-width: 60%; font-size: .8rem; }
details.verdicts td { padding-top: .12rem; padding-bottom: .12rem; }
.more { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; font-size: .875rem; margin-top: 1rem; }

.bars { display: grid; grid-template-columns: auto 1fr auto; gap: .4rem .8rem; align-items: center;
  font-size: .875rem; }
.bars span { display: block; height: .85rem; background: var(--curve); border-radius: 2px; min-width: 1px; }
.bars span.f { background: var(--failure); } .bars span.m { background: var(--caution); }
.bars span.g { background: var(--muted); }
.histogram { position: relative; height: 9rem; border-bottom: 1px solid var(--truth); }
.histogram svg { width: 100%; height: 100%; display: block; }
.histogram rect { fill: var(--curve); } .histogram .f { fill: var(--failure); }
.provenance { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.5rem;
  font-size: .875rem; }
.provenance dd { overflow-wrap: anywhere; }
.provenance dt { color: var(--muted); }
a:focus-visible, summary:focus-visible {
  outline: 2px solid var(--curve); outline-offset: 2px; border-radius: 3px; }

@media (max-width: 62rem) {
  .list :is(th, td):is(:nth-child(1), :nth-child(5), :nth-child(6)) { display: none; }
  .list th:nth-child(3) { width: 7rem; } .list th:nth-child(8) { width: 7rem; }
  .spark { width: 6rem; }
}
@media (max-width: 44rem) {
  body { padding-top: 1.4rem; }
  h1 { font-size: 1.4rem; }
  .two { grid-template-columns: 1fr; }
  .list th:nth-child(3) { width: 5.2rem; } .list th:nth-child(7) { width: 4.7rem; }
  .spark { width: 4.6rem; }
  .list :is(th, td):not(:nth-child(2), :nth-child(3), :nth-child(7)) { display: none; }
  .narrow { display: block; font-size: .8rem; }
  th, td { padding-right: .6rem; }
  .metrics :is(th, td):nth-child(5), .verdicts :is(th, td):first-child { display: none; }
  .events { width: 100%; font-size: .8rem; }
  .events :is(th, td) { padding-right: .45rem; }
  .events :is(th, td):is(:nth-child(6), :nth-child(8)) { display: none; }
  .story { padding: 0 .3rem 0 0; }
  .chart { padding-left: 2.3rem; }
  .strip { grid-template-columns: repeat(4, 1fr); gap: .4rem 0; margin-bottom: .8rem; }
  .strip img { max-height: 4.4rem; }
  .links { display: none; }
  .episode > summary .task { grid-column: 1 / -1; }
  .body { padding: .2rem .8rem 1rem; } .episode > summary { padding: .7rem .8rem; }
  .plot { height: 9rem; }
  .flag.no, .flag.short i { display: none; }
  .known .flag.no { display: inline-flex; } .known .no i { display: none; }
  .flag.no-wide:not(.no) { display: inline-flex; } .flag.short-wide:not(.short) i { display: inline; }
  .flag.back-wide:not(.back) { transform: none; flex-direction: row; }
  .flag.back { transform: translateX(calc(.8rem - 100%)); flex-direction: row-reverse; }
  .provenance { grid-template-columns: 1fr; gap: 0; } .provenance dd { margin-bottom: .5rem; }
}
@media print {
  :root { color-scheme: light; }
  body { padding: 0; font-size: 11px; max-width: none; }
  .episode, figure, tr { break-inside: avoid; } h2 { break-after: avoid; }
  .episode::details-content { content-visibility: visible; block-size: auto; }
  .more, details.verdicts { display: none; }
}
"""
