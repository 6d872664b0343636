// The program of the Python worker: loads one function and answers JSON lines on descriptor 3.
#include "rewards/process/worker_main.h"

namespace tandem::rewards {

const char* const kPythonWorkerScript = R"PYTHON(
import asyncio, importlib.util, inspect, json, math, os, socket, sys, types

PATH, NAME, OPTIONS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
LINK = socket.socket(fileno=3)
LINES = LINK.makefile("rwb")
os.set_inheritable(3, False)


def send(message):
    LINES.write(json.dumps(message).encode() + b"\n")
    LINES.flush()


def describe(error):
    """One line: the exception, and the line of the user's file that it comes from."""
    where, trace = "", error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == PATH:
            where = f" ({os.path.basename(PATH)}:{trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text.rstrip(":") + where


def load():
    sys.path.insert(0, os.path.dirname(os.path.abspath(PATH)))
    spec = importlib.util.spec_from_file_location("tandem_user_reward", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tandem_user_reward"] = module
    spec.loader.exec_module(module)
    function = module
    for part in NAME.split("."):
        if not hasattr(function, part):
            names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
            raise LookupError(f"no function {NAME} (it has: {', '.join(names) or 'none'})")
        function = getattr(function, part)
    if inspect.isclass(function):
        function = function()  # a class stands for its instance
    if not callable(function):
        raise TypeError(f"{NAME} is not callable")
    return function


class Signature:
    """Which arguments the function takes; everything when it has **kwargs."""

    def __init__(self, function):
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            parameters = []
        # What a partial has bound by name shows as keyword with a default: it stays as bound.
        self.bound = set(getattr(function, "keywords", None) or {})
        kinds = inspect.Parameter
        self.names = [p.name for p in parameters if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
        self.any = any(p.kind == kinds.VAR_KEYWORD for p in parameters)
        self.required = [p.name for p in parameters
                         if p.default is kinds.empty and p.name in self.names]

    def select(self, arguments):
        chosen = {k: v for k, v in arguments.items()
                  if (self.any or k in self.names) and k not in self.bound}
        missing = [name for name in self.required if name not in chosen]
        if missing:
            raise TypeError(f"{NAME} needs {', '.join(missing)}, which the data does not have")
        return chosen


FUNCTION = None
SIGNATURE = None


def call(arguments):
    result = FUNCTION(**SIGNATURE.select({**arguments, **OPTIONS}))
    if inspect.isawaitable(result):
        async def wait():
            return await result
        result = asyncio.run(wait())
    return result


def number(value):
    """(value, failure) of what a function returned for one sample."""
    if value is None:
        return None, ""
    try:
        value = float(value)
    except (TypeError, ValueError):
        return None, f"returned {type(value).__name__} {value!r:.80}, not a number or None"
    return (value, "") if math.isfinite(value) else (None, f"returned {value}")


def score_of(value, extra=None, metrics=None):
    value, failure = number(value)
    return {"value": value, "failure": failure, "extra": extra or {}, "metrics": metrics or {}}


def score_of_verl(result):
    if not isinstance(result, dict):
        return score_of(result)
    if "score" not in result:
        return {"value": None, "failure": "returned a dict without score", "extra": {}, "metrics": {}}
    extra, metrics = {}, {}
    for key, value in result.items():
        if key == "score":
            continue
        parsed, failure = (None, "text") if isinstance(value, str) else number(value)
        if parsed is not None:
            metrics[key] = parsed
        elif failure:
            extra[key] = str(value)
    return score_of(result["score"], extra, metrics)


def verl_fields(sample):
    columns = sample["columns"]
    model = columns.get("reward_model")
    truth = model.get("ground_truth") if isinstance(model, dict) else None
    return (columns.get("data_source", ""), sample["completion"],
            sample["ground_truth"] if truth is None else truth, columns.get("extra_info") or {})


def score_verl_one(step, samples):
    names = ("data_source", "solution_str", "ground_truth", "extra_info")
    return [score_of_verl(call(dict(zip(names, verl_fields(s))))) for s in samples]


def score_verl_batch(step, samples):
    names = ("data_sources", "solution_strs", "ground_truths", "extra_infos")
    fields = [list(values) for values in zip(*map(verl_fields, samples))]
    return [score_of_verl(r) for r in counted(call(dict(zip(names, fields))), samples)]


def counted(values, samples):
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(values) != len(samples):
        raise ValueError(f"returned {len(values)} scores for {len(samples)} samples")
    return values


def score_trl(step, samples):
    extra = [{} for _ in samples]
    metrics = {}

    def log_extra(column, values):
        for row, value in zip(extra, counted(values, samples)):
            row[str(column)] = str(value)

    def log_metric(name, value):
        metrics[str(name)] = float(value)

    columns = {key: None for sample in samples for key in sample["columns"]}
    arguments = {key: [s["columns"].get(key) for s in samples] for key in columns}
    if "ground_truth" not in arguments:
        arguments["ground_truth"] = [s["ground_truth"] for s in samples]
    for key in ("prompt", "completion"):
        arguments.pop(key, None)
    arguments.update(
        prompts=[s["messages"] or s["prompt"] for s in samples],
        completions=[[{"role": "assistant", "content": s["completion"]}] if s["messages"]
                     else s["completion"] for s in samples],
        completion_ids=[s["completion_ids"] for s in samples],
        trainer_state=types.SimpleNamespace(global_step=step),
        log_extra=log_extra, log_metric=log_metric)
    values = counted(call(arguments), samples)
    metrics = {k: v for k, v in metrics.items() if math.isfinite(v)}
    return [score_of(v, e, metrics) for v, e in zip(values, extra)]


def choose():
    """The way to call the function, by the names of its arguments, and whether it takes many."""
    if "solution_str" in SIGNATURE.names:
        return score_verl_one, False
    if "solution_strs" in SIGNATURE.names:
        return score_verl_batch, True
    return score_trl, True


def main():
    global FUNCTION, SIGNATURE
    try:
        FUNCTION = load()
        SIGNATURE = Signature(FUNCTION)
        unknown = [] if SIGNATURE.any else [k for k in OPTIONS if k not in SIGNATURE.names]
        if unknown:
            raise TypeError(f"{NAME} takes no option {', '.join(unknown)}")
        score, batched = choose()
    except BaseException as error:
        send({"error": f"{PATH}: {describe(error)}"})
        return
    send({"batched": batched})
    for line in LINES:
        request = json.loads(line)
        try:
            send({"scores": score(request["step"], request["samples"])})
        except Exception as error:
            send({"error": describe(error)})


main()
)PYTHON";

}  // namespace tandem::rewards
