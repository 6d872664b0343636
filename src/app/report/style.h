// The report's style sheet.
#pragma once

#include <string_view>

namespace tandem::app {

/// Colours are variables, set once for light and once for dark; charts use them too.
inline constexpr std::string_view kReportStyle = R"(
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1d2129; --soft: #666c78; --line: #e4e1d8;
  --grid: #eeebe3; --accent: #1f5fa8; --warn: #9a5b00; --warnpaper: #fdf3df;
  --c1: #1f5fa8; --c2: #d1682a; --c3: #2f8f5b; --c4: #8a4fa8; --c5: #b3273f; --c6: #7a6a14;
  --c7: #3a8fa3; --c8: #8b8f99;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14161a; --card: #1c1f25; --ink: #e7e5df; --soft: #9aa0ab; --line: #2f333b;
    --grid: #282c33; --accent: #7db2f0; --warn: #f0c674; --warnpaper: #2c2617;
    --c1: #7db2f0; --c2: #f09a5f; --c3: #6fcf97; --c4: #c394e0; --c5: #f0788c; --c6: #d6c25a;
    --c7: #6fc7da; --c8: #9aa0ab;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 1240px; padding: 40px 28px 80px; background: var(--paper);
  color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  font-variant-numeric: tabular-nums;
}
header { border-bottom: 1px solid var(--line); padding-bottom: 18px; margin-bottom: 26px; }
header .kind { color: var(--soft); font-size: 12px; letter-spacing: .09em;
  text-transform: uppercase; }
h1 { font-size: 30px; line-height: 1.2; margin: 4px 0 6px; font-weight: 650;
  letter-spacing: -.012em; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 44px 0 14px; font-weight: 620; letter-spacing: -.005em; }
h3 { font-size: 14px; margin: 0; font-weight: 600; }
header p, .soft { color: var(--soft); margin: 0; }
.note { background: var(--warnpaper); color: var(--warn); border-radius: 8px; padding: 9px 14px;
  margin: 0 0 12px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 12px; }
.tile, .chart, details { background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; }
.tile { padding: 13px 16px; }
.tile b { display: block; font-size: 23px; font-weight: 620; line-height: 1.25;
  letter-spacing: -.01em; }
.tile span { color: var(--soft); font-size: 13px; }
.tile b span { color: var(--c3); font-size: inherit; }
.tile b span.bad { color: var(--c5); }
.tile i { color: var(--soft); font-style: normal; font-size: 13px; font-weight: 400; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 350px), 1fr));
  gap: 14px; }
.chart { padding: 13px 14px 8px; min-width: 0; }
.chart .unit { color: var(--soft); font-weight: 400; }
.chart svg { display: block; width: 100%; height: auto; margin-top: 4px; }
.legend { display: flex; flex-wrap: wrap; gap: 3px 14px; font-size: 12px; color: var(--soft);
  margin-top: 4px; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 3px;
  margin-right: 6px; }
svg text { font: 10.5px system-ui, sans-serif; fill: var(--soft); }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg .hit { fill: transparent; }
svg .hit:hover { fill: var(--ink); fill-opacity: .07; }
details { margin-bottom: 10px; overflow: hidden; }
summary { padding: 11px 16px; cursor: pointer; font-weight: 600; }
summary span { color: var(--soft); font-weight: 400; margin-left: 8px; }
details > div, details > pre { border-top: 1px solid var(--line); }
pre { margin: 0; padding: 14px 16px; overflow-x: auto; font: 12.5px/1.5 ui-monospace,
  SFMono-Regular, Menlo, Consolas, monospace; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 12px; padding: 8px 12px;
  white-space: nowrap; }
td { padding: 7px 12px; border-top: 1px solid var(--grid); vertical-align: top; }
td.text { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 130px; font: 12.5px/1.5
  ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.bar { width: 45%; }
td.bar i { display: block; height: 9px; margin-top: 6px; border-radius: 3px;
  background: var(--c1); min-width: 1px; }
tr.first td { border-top: 1px solid var(--line); }
.cut { color: var(--soft); }
@media print { body { max-width: none; } .chart { break-inside: avoid; } }
)";

}  // namespace tandem::app
