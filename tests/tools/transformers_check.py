"""What `tandem convert` writes loads in transformers and gives the same log-probabilities.

transformers_check.py TANDEM MODEL...   exits with 77 where transformers or torch is not installed
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import transformers
except Exception as error:  # torch may fail in many ways where its libraries are missing
    print(f"skipped: transformers and torch do not load here ({error})")
    sys.exit(77)


def check(tandem, model):
    ids = json.loads((Path(model) / "forward.json").read_text())["cases"][2]["input_ids"]
    with tempfile.TemporaryDirectory() as folder:
        target = f"{folder}/model"
        subprocess.run([tandem, "convert", model, target, "--dtype", "float32"], check=True)
        rows = f"{folder}/ids.jsonl"
        Path(rows).write_text(json.dumps({"ids": ids}) + "\n")
        out = subprocess.run([tandem, "score", "--model", target, "--ids", rows, "--json", "-"],
                             check=True, capture_output=True, text=True).stdout
        ours = torch.tensor(json.loads(out)["logprobs"])
        loaded = transformers.AutoModelForCausalLM.from_pretrained(target, torch_dtype=torch.float32)
        with torch.no_grad():
            logits = loaded(torch.tensor([ids])).logits[0]
        theirs = logits.log_softmax(-1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        gap = (ours - theirs).abs().max().item()
        print(f"{model}: largest gap {gap:.2e}")
        assert gap < 1e-4, f"{model}: log-probabilities differ by {gap}"


for name in sys.argv[2:]:
    check(sys.argv[1], name)
