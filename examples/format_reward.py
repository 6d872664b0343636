"""A reward in Python: does the answer keep to the wanted form?

In the recipe:

  rewards:
    - {name: format, kind: python, file: examples/format_reward.py, function: format_reward}

The function has the signature of TRL's reward functions and takes what it names: `prompts`,
`completions`, `completion_ids`, any column of the data as a list, `trainer_state`, `log_extra` and
`log_metric`. It returns one number a completion, or None where it has nothing to say. It runs in a
process of its own; when it raises, the completions are scored one by one, so that only the one
that it cannot take is lost.
"""

import re

BOXED = re.compile(r"\\boxed\{[^{}]*\}\s*$")


def text_of(completion):
    """Completions are strings for raw prompts and lists of messages for chat prompts."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def format_reward(completions, log_metric, **kwargs):
    """1 when the answer ends with a box, else 0."""
    scores = [1.0 if BOXED.search(text_of(c)) else 0.0 for c in completions]
    log_metric("boxed_fraction", sum(scores) / len(scores))
    return scores
