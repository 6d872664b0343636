#!/usr/bin/env python3
"""Makes docs/performance.md from bench/results/*.jsonl: make_performance.py [--check].

--check writes nothing and fails when the page differs from what the results give.
"""
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/peers"))
from rows import LIMITS, MODELS, ROW, ROWS  # noqa: E402

PAGE = ROOT / "docs/performance.md"
HEAD = """# Performance

Measured, not estimated: this page is made from `bench/results/*.jsonl` by `bench/make_performance.py`, and those
files by `bench/run_peers.sh`, which runs the peers and Tandem on the same machine, model and sizes, one job at a time, a
job waiting until others are quiet unless told not to. Both sides use two threads; the best of the precisions that
were measured is shown, and "Every figure" lists which ones those were: a peer's other precision may be faster. The
fastest repetition counts, and some rows had one. `other cores` is what other processes kept busy during a job.

"Our own roofline" is the least time that the work can take on the machine: its floating-point operations (what
sequences share once, sequences without a gradient not at all, nothing recomputed) at the measured limit of the
arithmetic in use, or its bytes at the measured DRAM bandwidth, whichever is slower, stage by stage. `tandem bench`
prints it for each part, as `roofline_s` and `roofline_share`.
"""


def read_results(file):
    """The last record of each (row, model, system): a later measurement replaces an earlier one."""
    last = {}
    for line in file.read_text().splitlines():
        record = json.loads(line)
        key = (record["row"], record["model"], record["system"])
        last.pop(key, None)
        last[key] = record
    return list(last.values())


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 100 else f"{value:.3g}"


def best(row, records):
    """The record with the best value, or None."""
    values = [r["value"] for r in records]
    return next((r for r in records if r["value"] == row.best(values)), None) if values else None


def share_of(row, record):
    found = record.get("figures", {})
    for part in row.share.split("/") if row.share else [""]:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def choose(row, records):
    """-> (ours, peer). Memory is that of the precision whose step is fastest."""
    rows = [r for r in records if r["row"] == row.id]
    ours = [r for r in rows if r["side"] == "ours"]
    if row.kind == "memory":
        steps = [r for r in records if r["row"] == "step_2x8" and r["side"] == "ours"]
        fastest = best(ROW["step_2x8"], steps)
        ours = [r for r in ours if fastest and r["system"] == fastest["system"]]
    return best(row, ours), best(row, [r for r in rows if r["side"] == "peer"])


def cell(record, unit):
    return f"{record['system']}: {number(record['value'])} {unit}" if record else "not measured"


def table_line(row, records):
    ours, peer = choose(row, records)
    share = share_of(row, ours) if ours else None
    met = row.met(ours["value"], peer and peer["value"], share) if ours else None
    ratio = f"{row.ratio(ours['value'], peer['value']):.2f}x" if ours and peer and row.kind != "zero" else "-"
    share_text = f"{share:.0%} of {row.share_of}" if share is not None else "-"
    verdict = {True: "yes", False: "**no**", None: "-"}[met]
    return f"| {row.work} | {cell(peer, row.unit)} | {cell(ours, row.unit)} | {ratio} | {share_text} | " \
           f"{row.bar_text()} | {verdict} |"


def split_lines(records):
    """Where the time of a whole step goes, and each part's share of its roofline."""
    lines = []
    for id in ("step_2x8", "step_8x8"):
        for record in (r for r in records if r["row"] == id):
            figures = record.get("figures", {})
            if record["side"] == "ours":
                shares = figures.get("roofline_share", {})
                parts = [f"{name} {figures[name + '_s']:.2f} s" + (f" ({shares[name]:.0%})" if name in shares else "")
                         for name in ("rollout", "reward", "train", "optimizer", "other") if name + "_s" in figures]
            else:
                split = record.get("split", {})
                generate = split.get("transformers.generate", 0) + split.get("vLLM.generate", 0)
                prepare, training = split.get("_prepare_inputs", 0), split.get("training_step", 0)
                parts = [f"generate {generate:.2f} s", f"rest of the preparation {prepare - generate:.2f} s",
                         f"forward and backward {training - prepare:.2f} s",
                         f"optimizer and rest {record['value'] - training:.2f} s"]
            lines.append(f"| {ROW[id].work} | {record['system']} | {record['value']:.2f} | {', '.join(parts)} |")
    return lines


def kernel_lines(records):
    """Each kernel's rate and its share of what binds it, in both precisions."""
    figures = {r["figures"]["dtype"]: r["figures"] for r in records
               if r["row"] in ("fma_limit", "bf16_dot_limit") and "share_of_limit" in r.get("figures", {})}
    rates = (("gflops", "share_of_limit", "GFLOP/s"), ("gb_per_s", "share_of_dram", "GB/s"))
    def rate(dtype, kernel, name, share, unit):
        found = figures.get(dtype, {})
        if kernel not in found.get(name, {}):
            return "-"
        return f"{number(found[name][kernel])} {unit} ({found[share][kernel]:.0%})"
    lines = []
    for kind in rates:
        kernels = dict.fromkeys(k for f in figures.values() for k in f.get(kind[0], {}))
        lines += [f"| {k} | {rate('bfloat16', k, *kind)} | {rate('float32', k, *kind)} |" for k in kernels]
    if not lines:
        return []
    return ["### Kernels", "",
            "Products by rows (`_m`), `_dx` and `_dw` those of their backward pass, of the weights of one layer again",
            "and again: a last-level cache may hold them. In brackets the share of the limit of the arithmetic in use, or",
            "of the DRAM read bandwidth.", "",
            "| kernel | bf16 | fp32 |", "| --- | --- | --- |", *lines, ""]


def section(file):
    records = read_results(file)
    cpu = next((r["cpu"] for r in records), file.stem)
    lines = [f"## {cpu} ({file.stem})", ""]
    limits = [r for r in records if r["row"] in LIMITS]
    if limits:
        lines += ["| limit of the machine | |", "| --- | --- |"]
        lines += [f"| {LIMITS[r['row']][0]} | {number(r['value'])} {LIMITS[r['row']][1]} |" for r in limits] + [""]
    for model, title in MODELS.items():
        of_model = [r for r in records if r["model"] == model and r["row"] in ROW]
        shown = [row for row in ROWS if any(r["row"] == row.id for r in of_model)]
        if shown:
            lines += [f"### {title}", "", "| work | best peer | Tandem | ratio | near the limit | bar | met |",
                      "| --- | --- | --- | --- | --- | --- | --- |"]
            lines += [table_line(row, of_model) for row in shown] + [""]
    splits = split_lines(records)
    if splits:
        lines += ["### Where a step goes", "", "In brackets: the share of that part's own roofline.", "",
                  "| work | who | seconds | parts |", "| --- | --- | --- | --- |", *splits, ""]
    return lines + kernel_lines(records) + figure_lines(records) + command_lines(records)


def figure_lines(records):
    lines = ["### Every figure", "", "| model | row | who | value | median | peak memory | other cores | date | job |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    order = {row.id: i for i, row in enumerate(ROWS)} | {name: -1 for name in LIMITS}
    for r in sorted(records, key=lambda r: (list(MODELS).index(r["model"]), order[r["row"]], r["side"], r["system"])):
        median = number(r["median"]) if "median" in r else "-"
        memory = f"{r['peak_rss_bytes'] / 1e9:.2f} GB" if r.get("peak_rss_bytes") else "-"
        lines.append(f"| {r['model']} | {r['row']} | {r['system']} | {number(r['value'])} {r['unit']} | {median} | "
                     f"{memory} | {r['other_cores']} | {r['date']} | {r['job']} |")
    return lines + [""]


def command_lines(records):
    lines = ["### The commands", "",
             "`PEERS` is the folder of the peers' installation, `PEER_SCRIPTS` that of their benchmarks, `TANDEM` the",
             "program, `OUT` a file.", "", "```sh"]
    seen = {}
    for r in records:
        seen.setdefault((r["job"], r["model"]), r["command"])
    for (job, model), command in seen.items():
        lines += [f"# {job}, {model}", command]
    return lines + ["```", ""]


def versions_lines(files):
    found = {}
    for file in files:
        for record in read_results(file):
            for name, version in record.get("versions", {}).items():
                found.setdefault(name, set()).add(version)
    listed = [f"{name} {', '.join(sorted(versions))}" for name, versions in sorted(found.items())]
    return ["Versions: " + "; ".join(listed) + ".", ""] if listed else []


def page():
    files = sorted((ROOT / "bench/results").glob("*.jsonl"))
    lines = [HEAD] + versions_lines(files)
    for file in files:
        lines += section(file)
    return "\n".join(lines).rstrip() + "\n"


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print("docs/performance.md: differs from bench/results; run bench/make_performance.py", file=sys.stderr)
            return 1
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
