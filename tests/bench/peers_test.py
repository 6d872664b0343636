"""The side-by-side benchmarks' own code: what is read from results, what meets a bar, what is run again."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/peers")]
import jobs  # noqa: E402
import make_performance  # noqa: E402
from rows import LIMITS, ROW  # noqa: E402


def record(row, system, value, side="peer", **more):
    return {"row": row, "model": "smollm2-135m", "side": side, "system": system, "value": value, "unit": "tok/s",
            "other_cores": 0.0, "date": "2026-01-01 00:00", "job": "a-job", "command": "a command", "cpu": "a CPU",
            **more}


class Bars(unittest.TestCase):
    def test_a_rate_is_met_by_its_ratio_and_its_share(self):
        row = ROW["decode_b1"]
        self.assertTrue(row.met(150, 100, 0.75))
        self.assertFalse(row.met(149, 100, 0.75))
        self.assertFalse(row.met(150, 100, 0.74))
        self.assertIsNone(row.met(150, None, 0.75))
        self.assertIsNone(row.met(150, 100, None))

    def test_less_time_and_memory_are_better_and_gaps_are_zero(self):
        self.assertEqual(ROW["step_2x8"].ratio(5, 30), 6)
        self.assertTrue(ROW["step_2x8"].met(7, 30, 0.7))
        self.assertFalse(ROW["step_2x8"].met(8, 30, 0.7))
        self.assertTrue(ROW["memory_2x8"].met(5.5, 10, None))
        self.assertFalse(ROW["memory_2x8"].met(5.6, 10, None))
        self.assertFalse(ROW["logprob_gap"].met(1e-9, 0.3, None))


class Reading(unittest.TestCase):
    def test_a_later_record_replaces_an_earlier_one(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "m.jsonl"
            lines = [record("score", "vLLM fp32", 5), record("score", "HF", 4), record("score", "vLLM fp32", 3)]
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self.assertEqual([r["value"] for r in make_performance.read_results(file)], [4, 3])

    def test_the_best_peer_and_the_better_precision_of_ours_are_shown(self):
        records = [record("score", "vLLM fp32", 100), record("score", "HF fp32", 80),
                   record("score", "Tandem fp32", 150, "ours"), record("score", "Tandem bf16", 250, "ours")]
        line = make_performance.table_line(ROW["score"], records)
        self.assertIn("vLLM fp32: 100 tok/s", line)
        self.assertIn("Tandem bf16: 250 tok/s | 2.50x", line)
        self.assertTrue(line.endswith("| yes |"))

    def test_memory_is_that_of_the_precision_with_the_fastest_step(self):
        records = [record("step_2x8", "Tandem fp32", 9, "ours"), record("step_2x8", "Tandem bf16", 5, "ours"),
                   record("memory_2x8", "Tandem fp32", 2, "ours"), record("memory_2x8", "Tandem bf16", 3, "ours"),
                   record("memory_2x8", "TRL", 6)]
        ours, peer = make_performance.choose(ROW["memory_2x8"], records)
        self.assertEqual((ours["system"], peer["value"]), ("Tandem bf16", 6))

    def test_steps_that_were_printed_before_a_time_limit_count(self):
        read = jobs.read_trl(("step_2x8", "memory_2x8"))
        lines = [f'STEP {{"step_s": {s}, "training_step": 1.0, "other_cores": 0}}' for s in (40, 31, 33)]
        found = read({"results": {}}, "noise\n 33%|###  | 1/3" + "\n".join(lines))
        self.assertEqual(found["step_2x8"]["value"], 31)
        self.assertNotIn("memory_2x8", found)
        self.assertTrue(read({}, lines[0])["step_2x8"]["only_warm_up_step"])
        self.assertEqual(read({}, "nothing"), {})


class Running(unittest.TestCase):
    def test_every_row_has_a_job_and_every_job_known_rows(self):
        all_jobs = jobs.peer_jobs() + jobs.our_jobs()
        named = {row for job in all_jobs for row in job.rows}
        self.assertEqual(named, set(ROW) | set(LIMITS))
        keys = [(job.name, job.model) for job in all_jobs]
        self.assertEqual(len(keys), len(set(keys)))

    def run_rows(self, results, *words):
        env = {**os.environ, "PEERS": "/nowhere", "PEER_SCRIPTS": "/nowhere"}
        command = ["bash", str(ROOT / "bench/run_peers.sh"), "--results", str(results), "--noisy", *words]
        return subprocess.run(command, env=env, capture_output=True, text=True)

    def test_a_measured_row_is_skipped_and_a_failing_job_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "m.jsonl"
            results.write_text(json.dumps(record("weight_sync", "vLLM bf16 reload", 0.3)) + "\n")
            done = self.run_rows(results, "--peers-only", "--only", "weight_sync")
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            failed = self.run_rows(results, "--peers-only", "--only", "weight_sync", "--again")
            self.assertEqual(failed.returncode, 1)
            self.assertIn("vllm-sync: no figure for weight_sync", failed.stdout)
            self.assertEqual(len(results.read_text().splitlines()), 1)

    def test_an_unknown_row_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_rows(Path(folder) / "m.jsonl", "--only", "decode_b7")
            self.assertIn("decode_b7: no such row or job", done.stderr)


if __name__ == "__main__":
    unittest.main()
