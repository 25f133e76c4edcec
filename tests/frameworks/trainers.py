# SPDX-License-Identifier: Apache-2.0
"""torchtitan's own trainers, killed and resumed, beside runs that were not:  trainers.py FOLDER PACKAGES NAME...

Each NAME is a folder of PACKAGES with a version of torchtitan. On demand: see scripts/frameworks.sh.
"""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import sealpoint

RANKS, STEPS, KILLED_AT = 2, 6, 4
PROGRAM = pathlib.Path(__file__).with_name("titan_train.py")


def make_assets(folder):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    words = "the of and to in a is that for it as was with be by on not he his but at are this have from".split()
    chosen = random.Random(1)
    texts = [" ".join(chosen.choice(words) for _ in range(120)) for _ in range(400)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|begin_of_text|>", "<|end_of_text|>"]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    for name in ("tokenizer", "c4_test"):
        (folder / "tests/assets" / name).mkdir(parents=True)
    tokenizer.save(str(folder / "tests/assets/tokenizer/tokenizer.json"))
    config = {"bos_token": special[0], "eos_token": special[1], "add_bos_token": True}
    (folder / "tests/assets/tokenizer/tokenizer_config.json").write_text(json.dumps(config))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "tests/assets/c4_test/data.json").write_text(lines)


def kill(job):
    """Of torchrun and its workers, which are in sessions of their own."""
    children = [child for task in pathlib.Path(f"/proc/{job}/task").iterdir()
                for child in (task / "children").read_text().split()]
    for pid in [*map(int, children), job]:
        os.kill(pid, signal.SIGKILL)


def train(folder, package, mode, kill_at=None):
    """Returns the losses by step, as printed, and the seconds that saves took of the training."""
    if not folder.exists():
        folder.mkdir()
        make_assets(folder)
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS),
               PROGRAM, str(STEPS), mode]
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(package)])
    losses, stalls = {}, []
    with subprocess.Popen(command, cwd=folder, env=dict(os.environ, PYTHONPATH=path, OMP_NUM_THREADS="1"), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        output = []
        for line in job.stdout:
            output.append(line)
            plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
            if found := re.search(r"step: +(\d+) +loss: +([\d.]+)", plain):
                losses[int(found[1])] = found[2]
            if found := re.search(r"Finished .*?(?:staging|saving|enabled\)).*?in (\d+\.\d+) seconds", plain):
                stalls.append(float(found[1]))
            if kill_at is not None and kill_at in losses:
                kill(job.pid)
                break
    assert kill_at is not None or job.returncode == 0, "".join(output[-40:])
    return losses, stalls


def main(work, packages, *names):
    work = pathlib.Path(work)
    for name in names:
        whole, _ = train(work / f"{name}-whole", packages / name, "disabled")
        assert sorted(whole) == list(range(1, STEPS + 1)), whole
        for mode in ("disabled", "async"):
            folder = work / f"{name}-{mode}"
            before, stalls = train(folder, packages / name, mode, KILLED_AT)
            time.sleep(1)
            series = sealpoint.Series(folder / "out/checkpoint").list()
            resumed_at = next(entry.step for entry in series if entry.verdict == "committed")
            after, _ = train(folder, packages / name, mode)
            assert min(after) == resumed_at + 1, (after, resumed_at)
            assert all(whole[step] == loss for step, loss in [*before.items(), *after.items()]), (whole, before, after)
            size = next(entry.size_bytes for entry in series if entry.verdict == "committed")
            print(f"{name} {mode}: resumed at step {resumed_at}, losses {list(after.values())} as uninterrupted; "
                  f"{size / 1e6:.1f} MB, the training stood still for {max(stalls, default=0):.2f} s per save", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), *sys.argv[3:])
