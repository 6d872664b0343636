// Python reward functions as users write them, good and bad.
#pragma once

namespace tandem::rewards::test {

inline constexpr const char* kFunctions = R"PY(
import asyncio, functools, os, signal, sys, time

def text(completion):
    return completion if isinstance(completion, str) else completion[-1]["content"]

def number(completions, **kwargs):
    return [float(text(c)) for c in completions]

def nothing_applies(completions):
    return [None for _ in completions]

def some_apply(completions):
    return [None if text(c) == "3" else int(text(c)) for c in completions]

async def gathered(completions):
    async def one(c):
        await asyncio.sleep(0)
        return float(c)
    return await asyncio.gather(*map(one, completions))

def scaled(completions, factor, ground_truth):
    return [factor * float(g) for g in ground_truth]

half = functools.partial(scaled, factor=0.5)

class Callable:
    def __init__(self):
        self.calls = 0
    async def __call__(self, completions, trainer_state):
        self.calls += 1
        return [10 * trainer_state.global_step + self.calls] * len(completions)

instance = Callable()

def everything(prompts, completions, completion_ids, source, level, trainer_state, log_extra, log_metric):
    log_extra("seen", [f"{p}/{c}/{i}/{s}/{l}" for p, c, i, s, l in
                       zip(prompts, completions, completion_ids, source, level)])
    log_metric("count", len(prompts))
    return [trainer_state.global_step] * len(prompts)

def on_three(action):
    def reward(completions, **kwargs):
        return [action() if text(c) == "3" else float(text(c)) for c in completions]
    return reward

def fail():
    raise ValueError("cannot read\n this")

throws = on_three(fail)
exits = on_three(lambda: os._exit(4))
sys_exits = on_three(lambda: sys.exit(5))
crashes = on_three(lambda: os.kill(os.getpid(), signal.SIGSEGV))
hangs = on_three(lambda: time.sleep(3600))
nan = on_three(lambda: float("nan"))
text_value = on_three(lambda: "good")

def short(completions):
    return [float(c) for c in completions if c != "3"]

def no_list(completions):
    return 1.0

def missing_column(completions, difficulty):
    return [1.0 for _ in completions]

def prints(completions):
    print("a line on standard output")
    return [1.0 for _ in completions]

def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
    if solution_str == "3":
        raise KeyError("three")
    return {"score": float(solution_str == str(ground_truth)) + bonus, "acc": True,
            "pred": solution_str, "index": extra_info.get("index", -1), "source": data_source}

def batch_score(data_sources, solution_strs, ground_truths, extra_infos):
    return [float(s == g) for s, g in zip(solution_strs, ground_truths)]
)PY";

}  // namespace tandem::rewards::test
