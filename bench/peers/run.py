"""Runs jobs one by one and appends a record a row to bench/results/<machine>.jsonl; see bench/run_peers.sh."""
import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jobs
from rows import LIMITS, ROW

QUIET = 0.15  # cores that other processes may keep busy before a job


def cpu_name():
    """As /proc/cpuinfo has it, with family and model: virtual machines often hide the rest of the name."""
    facts = {}
    for line in open("/proc/cpuinfo"):
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    name = facts.get("model name", "unknown")
    return f"{name}, family {facts['cpu family']} model {facts['model']}" if "cpu family" in facts else name


def machine_name():
    """From the CPU's model: letters, digits and dashes, with the number of CPUs."""
    return re.sub(r"[^a-z0-9]+", "-", f"{cpu_name().lower()} {os.cpu_count()} cpus").strip("-")


def busy_seconds():
    """CPU seconds of the whole machine so far, and those of this process and of the children it waited for."""
    v = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (sum(v) - v[3] - v[4]) / os.sysconf("SC_CLK_TCK"), own


def wait_until_quiet(patience_s):
    """The cores that others keep busy, measured over a second; the smallest within the patience."""
    end = time.monotonic() + patience_s
    least = 1e9
    while True:
        before = busy_seconds()
        time.sleep(1)
        after = busy_seconds()
        least = min(least, (after[0] - before[0]) - (after[1] - before[1]))
        if least < QUIET or time.monotonic() > end:
            return max(least, 0.0)


def known_rows(file):
    """{(system, model, row)} that the results file has."""
    known = set()
    for line in file.read_text().splitlines() if file.exists() else ():
        record = json.loads(line)
        known.add((record["system"], record["model"], record["row"]))
    return known


class JobRunner:
    """One job at a time; a signal ends the job, and what it had written until then still counts."""

    def __init__(self, limit_s):
        self.limit_s = limit_s
        self.child = None
        self.stopped = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)

    def stop(self, *_):
        self.stopped = True
        self.kill()

    def kill(self):
        if self.child and self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)

    def run(self, job):
        """-> (figures by row, what is known of the run, its output); no figures when it failed."""
        with tempfile.TemporaryDirectory() as folder:
            out, log = Path(folder) / "out.json", Path(folder) / "log.txt"
            before, start = busy_seconds(), time.monotonic()
            with open(log, "w") as stream:
                self.child = subprocess.Popen(["bash", "-c", job.command], env={**os.environ, "OUT": str(out)},
                                              cwd=os.environ["ROOT"], stdout=stream, stderr=subprocess.STDOUT,
                                              start_new_session=True)
                try:
                    status = self.child.wait(self.limit_s)
                except subprocess.TimeoutExpired:
                    self.kill()
                    status = f"stopped after {self.limit_s} s"
                    self.child.wait()
            wall, after = time.monotonic() - start, busy_seconds()
            others = max(0.0, ((after[0] - before[0]) - (after[1] - before[1])) / wall)
            output = log.read_text(errors="replace")
            facts = {"status": status, "wall_s": round(wall, 1), "other_cores": round(others, 2)}
            try:
                record = json.loads(out.read_text()) if out.exists() else {}
                return job.read(record, output), facts, output
            except (KeyError, ValueError, IndexError):
                return {}, facts, output


def selected(args):
    chosen = [j for j in jobs.peer_jobs() + jobs.our_jobs()]
    if args.ours_only:
        chosen = [j for j in chosen if j.side == "ours" or j.system == "Tandem"]
    if args.peers_only:
        chosen = [j for j in chosen if j.side == "peer" or (j.side == "machine" and j.system != "Tandem")]
    if args.model:
        chosen = [j for j in chosen if j.model == args.model]
    if args.only:
        names = {r for j in chosen for r in j.rows} | {j.name for j in chosen}
        unknown = [n for n in args.only if n not in names]
        if unknown:
            sys.exit(f"run_peers.sh: --only {unknown[0]}: no such row or job; --list names them")
        chosen = [j for j in chosen if j.name in args.only or set(j.rows) & set(args.only)]
    return chosen


def unit_of(row):
    return LIMITS[row][1] if row in LIMITS else ROW[row].unit


def write_rows(file, job, found, facts):
    with open(file, "a") as stream:
        for row, figures in found.items():
            figures = dict(figures)
            value = figures.pop("value")
            record = {"row": row, "model": job.model, "side": job.side, "system": job.system, "value": value,
                      "unit": unit_of(row), **figures, "other_cores": facts["other_cores"], "job": job.name,
                      "job_s": facts["wall_s"], "command": job.command, "threads": 2, "cpu": cpu_name(),
                      "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}
            stream.write(json.dumps(record) + "\n")
            print(f"{job.name}: {row} = {value:.4g} {unit_of(row)} (other cores {facts['other_cores']})", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="bench/run_peers.sh", description=__doc__)
    parser.add_argument("--only", action="append", metavar="ROW|JOB", help="may be given several times")
    parser.add_argument("--model", choices=sorted(jobs.FOLDER))
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--peers-only", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure also what the results file has")
    parser.add_argument("--noisy", action="store_true", help="do not wait for other processes to be quiet")
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="of a job")
    parser.add_argument("--results", type=Path, help="the results file")
    parser.add_argument("--list", action="store_true", help="name the jobs and their rows, run nothing")
    args = parser.parse_args()
    chosen = selected(args)
    if args.list:
        for job in chosen:
            print(f"{job.name:34} {job.model:14} {' '.join(job.rows)}")
        return 0
    file = args.results or Path(os.environ["ROOT"]) / "bench/results" / f"{machine_name()}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    runner, failed = JobRunner(args.limit), 0
    for job in chosen:
        known = known_rows(file)
        if not args.again and all((job.system, job.model, row) in known for row in job.rows):
            continue
        others = wait_until_quiet(0 if args.noisy else 60)
        if others >= QUIET and not args.noisy:
            print(f"{job.name}: skipped, other processes keep {others:.2f} cores busy; --noisy runs it anyway")
            failed += 1
            continue
        found, facts, output = runner.run(job)
        write_rows(file, job, found, facts)
        if len(found) < len(job.rows):
            missing = [row for row in job.rows if row not in found]
            last = output.strip().splitlines()[-1:] or ["no output"]
            print(f"{job.name}: no figure for {', '.join(missing)} (exit {facts['status']}): {last[0][:200]}", flush=True)
            failed += 1
        if runner.stopped:
            return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
