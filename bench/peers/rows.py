"""The rows of docs/performance.md: the work, its unit, and what ours has to reach against the best peer."""
from dataclasses import dataclass

MODELS = {
    "smollm2-135m": "SmolLM2-135M-Instruct",
    "llama-42m": "Llama shape, 42M parameters, random weights",
    "qwen3-0.6b": "Qwen3-0.6B shape, random weights",
}


@dataclass(frozen=True)
class Row:
    id: str
    work: str
    unit: str = "tok/s"
    bar: float = 0.0  # kind "rate", "time": how many times better ours is to be; "memory": the largest part
    kind: str = "rate"  # rate, time, memory, zero
    share: str = ""  # the figure of `tandem bench` that says how near to the limit ours is, "object/member"
    share_of: str = ""
    share_bar: float = 0.0

    def best(self, values):
        return max(values) if self.kind == "rate" else min(values)

    def ratio(self, ours, peer):
        """How many times better ours is; of memory the part that ours takes."""
        if self.kind == "rate":
            return ours / peer
        return ours / peer if self.kind == "memory" else peer / ours

    def bar_text(self):
        if self.kind == "zero":
            return "0"
        if not self.bar:
            return "-"
        text = f"<= {self.bar:g}x" if self.kind == "memory" else f">= {self.bar:g}x"
        return text + (f", >= {self.share_bar:.0%} of {self.share_of}" if self.share_bar else "")

    def met(self, ours, peer, share):
        """Whether ours reaches the bar; None where there is none, or something was not measured."""
        if self.kind == "zero":
            return ours == 0
        if not self.bar or peer is None or (self.share_bar and share is None):
            return None
        ratio = self.ratio(ours, peer)
        good = ratio <= self.bar if self.kind == "memory" else ratio >= self.bar
        return good and (share or 0) >= self.share_bar


DRAM, FMA, OWN = "DRAM read bandwidth", "the FMA limit", "our own roofline"
ROWS = [
    Row("decode_b1", "decode, batch 1", bar=1.5, share="share_of_dram/1", share_of=DRAM, share_bar=0.75),
    Row("decode_b8", "decode, batch 8", bar=2.2, share="roofline_share/8", share_of=OWN),
    Row("decode_b32", "decode, batch 32", bar=2.0, share="roofline_share/32", share_of=OWN),
    Row("decode_b128", "decode, batch 128", bar=1.7, share="roofline_share/128", share_of=OWN),
    Row("rollout", "rollout 16 x 8, 128 + 256 tokens, with log-probabilities", bar=1.7,
        share="roofline_share/rollout", share_of=OWN),
    Row("prefill", "prefill, 512-token prompts", bar=1.1, share="roofline_share/prefill", share_of=OWN),
    Row("score", "teacher-forced scoring of 256-token sequences", bar=1.2, share="roofline_share/score", share_of=OWN),
    Row("train", "training 8 x 256, nothing shared", bar=1.2, share="share_of_fma_limit/step", share_of=FMA,
        share_bar=0.75),
    Row("train_grouped", "training, a group of 8: prompt of 256 shared, answers of 64 (trained tokens)", bar=3.5,
        share="share_of_fma_limit/step", share_of=FMA),
    Row("step_2x8", "whole GRPO step, 2 x 8, 88 + 64 tokens", "s", 4.0, "time", "roofline_share/step", OWN, 0.70),
    Row("step_8x8", "whole GRPO step, 8 x 8, 88 + 128 tokens", "s", 2.5, "time", "roofline_share/step", OWN, 0.70),
    Row("memory_2x8", "peak memory of the 2 x 8 step", "GB", 0.55, "memory"),
    Row("memory_2x8_low", "the same with `trainer.memory: low`", "GB", 0.45, "memory"),
    Row("weight_sync", "weights from trainer to sampler", "s", 0, "zero"),
    Row("logprob_gap", "trainer against sampler log-probabilities, largest difference", "nats", 0, "zero"),
]
ROW = {row.id: row for row in ROWS}

# What the machine can do, measured in the same file; "limit" rows have no bar.
LIMITS = {
    "fma_limit": ("fp32 fused multiply-add on registers, 2 threads", "GFLOP/s"),
    "bf16_dot_limit": ("bf16 dot product (vdpbf16ps) on registers, 2 threads", "GFLOP/s"),
    "dram_read": ("DRAM read, 2 threads", "GB/s"),
    "peer_dram_read": ("DRAM read, the peers' probe (1 GB), 2 threads", "GB/s"),
    "peer_sgemm": ("PyTorch (MKL) sgemm 2048^3, 2 threads", "GFLOP/s"),
    "peer_bf16_gemm": ("PyTorch (oneDNN) bf16 GEMM 2048^3, 2 threads", "GFLOP/s"),
}
