"""The jobs behind the rows: one process each, with the shell command that is run and recorded.

A command sees $PEERS, $PEER_SCRIPTS, $ROOT, $TANDEM and $OUT, the file for its JSON. `read` turns that file
(and the job's standard output) into {row: figures}; figures have at least `value`.
"""
import json
import re
from dataclasses import dataclass
from typing import Callable

FOLDER = {"smollm2-135m": "smollm2-135m-instruct", "llama-42m": "llama-42m-rand", "qwen3-0.6b": "qwen3-0.6b-rand"}
GGUF = {"smollm2-135m": "smollm2", "llama-42m": "llama42m", "qwen3-0.6b": "qwen3"}


@dataclass(frozen=True)
class Job:
    name: str
    side: str  # ours, peer, machine
    system: str  # who, and in which precision
    model: str
    rows: tuple
    command: str
    read: Callable


def rate_figures(result):
    return {"value": result["best"], "median": result["median"], "seconds": result["times_s"],
            "repeat_other_cores": result.get("other_cores", [])}


def by_key(keys, scale=1.0):
    """Reads rates of a peer's results by the beginning of their keys."""
    def read(record, _):
        found = {}
        for row, prefix in keys.items():
            for key, result in record["results"].items():
                if key.startswith(prefix) and isinstance(result, dict) and result["best"] == result["best"]:
                    found[row] = {**rate_figures(result), "value": result["best"] * scale,
                                  "median": result["median"] * scale}
        return with_memory(found, record)
    return read


def with_memory(found, record):
    for figures in found.values():
        figures["peak_rss_bytes"] = int(record.get("peak_rss_mb", 0) * 2**20)
        figures["versions"] = record.get("versions", {})
    return found


DECODE = {f"decode_b{b}": f"decode_b{b}_" for b in (1, 8, 32, 128)}


def vllm(model, dtype, batches="1,8,32,128", extra_rows=True):
    keys = {f"decode_b{b}": f"decode_b{b}_" for b in batches.split(",")}
    if extra_rows:
        keys.update(prefill="m2_", score="m5_")
    tests = "decode,m2,m5" if extra_rows else "decode"
    return Job(f"vllm-{dtype}", "peer", f"vLLM {short(dtype)}", model, tuple(keys),
               f"cd $PEER_SCRIPTS && PEER_EXTRA=0 ./run.sh iomp bench_vllm.py --model $PEERS/models/{FOLDER[model]} "
               f"--dtype {dtype} --eager --tests {tests} --batches {batches} --dec 32 --pre-n 8 --score-n 16 "
               "--repeats 2 --json $OUT", by_key(keys))


def vllm_rollout(model, dtype):
    return Job(f"vllm-rollout-{dtype}", "peer", f"vLLM {short(dtype)}", model, ("rollout",),
               f"cd $PEER_SCRIPTS && PEER_EXTRA=0 ./run.sh iomp bench_vllm.py --model $PEERS/models/{FOLDER[model]} "
               f"--dtype {dtype} --eager --tests m1lp --repeats 1 --json $OUT", by_key({"rollout": "m1lp_"}))


def llama(model, dtype, batches="1,8,32,128"):
    keys = {f"decode_b{b}": f"decode_b{b}_" for b in batches.split(",")}
    keys["prefill"] = "m2_"
    return Job(f"llama-{dtype}", "peer", f"llama.cpp {'fp32' if dtype == 'f32' else dtype}", model, tuple(keys),
               "cd $PEER_SCRIPTS && python3 bench_llama.py --threads 2 --model x --bin $PEERS/llama-build/bin "
               f"--gguf $PEERS/gguf/{GGUF[model]}-{dtype}.gguf --tests decode,m2 --batches {batches} --repeats 2 "
               "--json $OUT", without_memory(by_key(keys)))


def without_memory(read):
    """For a script whose work is done by other processes: its own memory says nothing."""
    def read_rest(record, output):
        return read({k: v for k, v in record.items() if k != "peak_rss_mb"}, output)
    return read_rest


def hf(model, dtype):
    return Job(f"hf-{dtype}", "peer", f"transformers {short(dtype)}", model, ("prefill", "score"),
               f"cd $PEER_SCRIPTS && PEER_EXTRA=0 ./run.sh gomp bench_hf.py --model $PEERS/models/{FOLDER[model]} "
               f"--dtype {dtype} --tests m2,m5 --pre-n 8 --score-n 16 --repeats 2 --json $OUT",
               by_key({"prefill": "m2_", "score": "m5_"}))


def torch_train(model, compute, row, row_len, trained=1.0):
    return Job(f"torch-{row.replace('_', '-')}-{compute}", "peer", f"PyTorch eager {compute}", model, (row,),
               f"cd $PEER_SCRIPTS && PEER_EXTRA=0 ./run.sh gomp bench_train.py --model $PEERS/models/{FOLDER[model]} "
               f"--compute {compute} --rows 8 --row-len {row_len} --repeats 2 --json $OUT",
               by_key({row: "m4_train_"}, trained))


def trl(model, mode, compute, prompts, new_tokens, steps):
    rows = (f"step_{prompts}x8",) + (("memory_2x8", "memory_2x8_low") if prompts == 2 else ())
    omp = "gomp" if mode == "hf" else "iomp"
    eager = " --eager" if mode == "vllm" else ""
    name = "HF generate" if mode == "hf" else "vLLM colocate"
    return Job(f"trl-{mode}-{prompts}x8-{compute}", "peer", f"TRL, {name}, {compute}", model, rows,
               f"cd $PEER_SCRIPTS && ./run.sh {omp} bench_trl.py --mode {mode} --compute {compute}{eager} "
               f"--model $PEERS/models/{FOLDER[model]} --prompts {prompts} --max-completion {new_tokens} "
               f"--steps {steps} --json $OUT", read_trl(rows))


def read_trl(rows):
    """The fastest of the steps, from the lines that the callback prints: they survive a time limit. The first
    step warms up; it counts only where there is no other."""
    def read(record, output):
        steps = [json.loads(text) for text in re.findall(r"STEP (\{[^}]*\})", output)]  # behind a progress bar
        if not steps:
            return {}
        best = min(steps[1:] or steps, key=lambda step: step["step_s"])
        found = {rows[0]: {"value": best["step_s"], "seconds": [step["step_s"] for step in steps],
                           "split": {k: round(v, 3) for k, v in best.items()},
                           "only_warm_up_step": len(steps) == 1}}
        peak = record.get("results", {}).get("m3_peak_rss_mb")
        for row in rows[1:] if peak else ():
            found[row] = {"value": peak * 2**20 / 1e9, "seconds": []}
        return with_memory(found, record)
    return read


def read_sync(record, _):
    results = record["results"]
    return with_memory({"weight_sync": {"value": results["reload_s_best"], "bytes": results["bytes"],
                                        "seconds": results["reload_per_s"]["times_s"]}}, record)


def read_mismatch(record, _):
    result = record["results"]["forward_bfloat16_batch16"]
    return with_memory({"logprob_gap": {"value": result["max_abs"], "mean": result["mean_abs"],
                                        "equal_share": result["frac_equal"], "tokens": result["tokens"]}}, record)


def read_roofline(record, _):
    results = record["results"]
    found = {"peer_sgemm": rate_figures(results["gemm_float32_2048x2048x2048_gflops"]),
             "peer_bf16_gemm": rate_figures(results["gemm_bfloat16_2048x2048x2048_gflops"])}
    reads = [v for k, v in results.items() if k.startswith("bw_10") and k.endswith("_2t")]
    if reads:
        found["peer_dram_read"] = {"value": max(read_rate(r) for r in reads)}
    return with_memory(found, record)


def read_rate(probe):
    return next(v for k, v in probe.items() if k.startswith("read"))


def short(dtype):
    return {"float32": "fp32", "bfloat16": "bf16"}[dtype]


def peer_jobs():
    m = "smollm2-135m"
    prep = (f"cd $PEER_SCRIPTS && M=$PEERS/models/{FOLDER[m]} && D=$OUT.m8 && "
            "./run.sh bench_mismatch.py --prep $D --model $M --json /dev/null && "
            "./run.sh bench_vllm.py --tests none --eager --dump $D --model $M --json $OUT.vllm && "
            "./run.sh bench_mismatch.py --dump $D --model $M --json $OUT")
    return [
        Job("roofline", "machine", "PyTorch", m, ("peer_dram_read", "peer_sgemm", "peer_bf16_gemm"),
            f"cd $PEER_SCRIPTS && ./run.sh iomp bench_roofline.py --model $PEERS/models/{FOLDER[m]} --repeats 5 "
            "--json $OUT", read_roofline),
        *[llama(m, d) for d in ("bf16", "f32")],
        *[vllm(m, d) for d in ("float32", "bfloat16")],
        *[torch_train(m, c, "train", 256) for c in ("fp32", "bf16-mixed")],
        *[torch_train(m, c, "train_grouped", 320, 64 / 320) for c in ("fp32", "bf16-mixed")],
        *[trl(m, mode, "fp32", 2, 64, 2) for mode in ("hf", "vllm")],
        *[vllm_rollout(m, d) for d in ("float32", "bfloat16")],
        *[trl(m, mode, "fp32", 8, 128, 1) for mode in ("hf", "vllm")],
        *[trl(m, "hf", "bf16-mixed", 2, 64, 1), trl(m, "vllm", "bf16-mixed", 2, 64, 1)],
        *[hf(m, d) for d in ("float32", "bfloat16")],
        Job("vllm-sync", "peer", "vLLM bf16 reload", m, ("weight_sync",),
            f"cd $PEER_SCRIPTS && ./run.sh iomp bench_sync.py --eager --model $PEERS/models/{FOLDER[m]} --json $OUT",
            read_sync),
        Job("vllm-mismatch", "peer", "vLLM bf16 against transformers bf16", m, ("logprob_gap",), prep, read_mismatch),
        *[llama("llama-42m", d, "1,32") for d in ("bf16", "f32")],
        vllm("llama-42m", "float32", "1,32"),
        torch_train("llama-42m", "fp32", "train", 256),
        llama("qwen3-0.6b", "bf16", "1,8"),
        vllm("qwen3-0.6b", "bfloat16", "1,8", extra_rows=False),
    ]


def ours(what, model, dtype, rows, options, read):
    return Job(f"tandem-{what}-{dtype}", "ours", f"Tandem {short(dtype)}", model, rows,
               f"$TANDEM bench {what.split('.')[0]} --model $PEERS/models/{FOLDER[model]} --dtype {dtype} --threads 2 "
               f"{options} --json $OUT", read)


def from_bench(names, scale=1.0):
    """Reads figures of `tandem bench`: row to figure, "a/b" for the member b of the object a."""
    def read(record, _):
        found = {}
        for row, name in names.items():
            value = record
            for part in name.split("/"):
                value = value.get(part) if isinstance(value, dict) else None
            if value is not None:
                found[row] = {"value": value * scale, "seconds": record["seconds"], "figures": figures_of(record),
                              "peak_rss_bytes": record["peak_rss_bytes"], "versions": {"tandem": record["version"]}}
        return found
    return read


def figures_of(record):
    """What the benchmark measured, without what the record of the row says already."""
    known = ("seconds", "model", "threads", "cpu", "version", "command")
    return {k: v for k, v in record.items() if k not in known}


def our_decode(model, dtype, batches="1,8,32,128"):
    rows = {f"decode_b{b}": f"tokens_per_s/{b}" for b in batches.split(",")}
    return ours("decode", model, dtype, tuple(rows), f"--batch {batches} --prompt-tokens 128 --new-tokens 33 --repeat 2",
                from_bench(rows))


def our_step(model, dtype, prompts, new_tokens, repeat):
    rows = {f"step_{prompts}x8": "step_s"}
    def read(record, output):
        found = from_bench(rows)(record, output)
        if prompts == 2:
            step = found["step_2x8"]
            found["memory_2x8"] = {**step, "value": record["peak_rss_bytes"] / 1e9}
            found["logprob_gap"] = {**step, "value": record["logprob_gap_max"], "mean": record["logprob_gap_max"],
                                    "equal_share": 1.0 if record["logprob_gap_max"] == 0 else None}
            found["weight_sync"] = {**step, "value": 0.0, "bytes": 0}
        return found
    names = (f"step_{prompts}x8",) + (("memory_2x8", "logprob_gap", "weight_sync") if prompts == 2 else ())
    return ours(f"step.{prompts}x8", model, dtype, names,
                f"--prompts {prompts} --samples 8 --prompt-tokens 88 --new-tokens {new_tokens} --repeat {repeat}", read)


def our_kernels(model, dtype, limits):
    """The machine's limits, with each kernel's rate among the figures of their records."""
    kernels = ours("kernels", model, dtype, tuple(limits), "--repeat 1", from_bench(limits))
    return Job(f"kernels-{dtype}", "machine", "Tandem", model, kernels.rows, kernels.command, kernels.read)


def our_jobs():
    m = "smollm2-135m"
    jobs = [our_kernels(m, "float32", {"fma_limit": "fma_limit_gflops", "dram_read": "dram_gb_per_s"}),
            our_kernels(m, "bfloat16", {"bf16_dot_limit": "bf16_dot_limit_gflops"})]
    for d in ("bfloat16", "float32"):
        jobs += [
            our_decode(m, d),
            ours("rollout", m, d, ("rollout",), "--prompts 16 --samples 8 --prompt-tokens 128 --new-tokens 256 --repeat 1",
                 from_bench({"rollout": "tokens_per_s"})),
            ours("rollout.prefill", m, d, ("prefill",), "--prompts 8 --samples 1 --prompt-tokens 512 --new-tokens 1",
                 from_bench({"prefill": "prefill_tokens_per_s"})),
            ours("score", m, d, ("score",), "--sequences 16 --tokens 256", from_bench({"score": "tokens_per_s"})),
            ours("train", m, d, ("train",), "--sequences 8 --tokens 256", from_bench({"train": "tokens_per_s"})),
            ours("train.grouped", m, d, ("train_grouped",),
                 "--sequences 8 --samples 8 --tokens 320 --prompt-tokens 256",
                 from_bench({"train_grouped": "tokens_per_s"})),
            our_step(m, d, 2, 64, 2),
            our_step(m, d, 8, 128, 2),
            ours("step.low", m, d, ("memory_2x8_low",), "--prompts 2 --samples 8 --prompt-tokens 88 --new-tokens 64 "
                 "--memory low --repeat 1", from_bench({"memory_2x8_low": "peak_rss_bytes"}, 1e-9)),
        ]
    for d in ("bfloat16", "float32"):
        jobs += [
            our_decode("llama-42m", d, "1,32"),
            ours("train", "llama-42m", d, ("train",), "--sequences 8 --tokens 256", from_bench({"train": "tokens_per_s"})),
        ]
    jobs += [our_decode("qwen3-0.6b", "bfloat16", "1,8"),
             ours("train", "qwen3-0.6b", "bfloat16", ("train",), "--sequences 4 --tokens 256 --repeat 2",
                  from_bench({"train": "tokens_per_s"}))]
    return jobs
