#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the SPIN models of spec/model; scripts/model.sh says how to call it.

A model must end without an error, without a cut search and with every step reached that no mutant owns; a mutant must
end with a counterexample. Work goes to build/model only.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "spec/model"
TABLE = MODELS / "counterexamples.md"
WORK = pathlib.Path(os.environ.get("SEALPOINT_MODEL_WORK", ROOT / "build/model"))
MEMORY_MAX_MIB = 4000
SKIPPED = 77
LINE = re.compile(r"^\s*((?:rank|attempt|deleter|saver) \d+|\w+) \| ([\w -]+) \| (.+)$", re.M)
HEAD = """# Counterexamples

Made by `scripts/model.sh --write`; `ctest -R model.quick` compares. What each mutant does instead of a protective step,
and the shortest way on which that loses or invents a checkpoint. The last line is what the crash (or a reader or lister
that looks while others live, or nobody any more) finds, and what must therefore never be found. Between the crash and the
reader everything may be lost that is not said to be durable; only what matters is named. `ctest -R
crash.counterexamples` plays each over a storage that keeps volatile and durable state apart.

An *excluded* row is no mutant: it takes away one of the axioms of `README.md` and shows that the protocol needs it.

| model | mutant | instead of the protocol | the crash or look comes after | found | named steps |
|---|---|---|---|---|---|
"""


def facts(path):
    """(runs, mutants) of a model: [(kind, {"N": 2, ...})], [(name, number, what, is_excluded)]."""
    text = path.read_text()
    runs = [(kind, dict((k, int(v)) for k, v in re.findall(r"(\w+)=(\d+)", rest)))
            for kind, rest in re.findall(r"^// (quick|full): (.*)$", text, re.M)]
    mutants = [(name, int(number), what.strip(), kind == "E") for kind, name, number, what
               in re.findall(r"^#define (M|E)_(\w+) (\d+)  // (.*)$", text, re.M)]
    return runs, mutants


def build(model, ranks, name, flags):
    """The verifier of a model for so many ranks, in a folder of its own."""
    folder = WORK / f"{model.stem}-{ranks}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for source in MODELS.glob("*.pml"):
        shutil.copy(source, folder)
    made = subprocess.run(["spin", f"-DN={ranks}", "-a", model.name], cwd=folder, capture_output=True, text=True,
                          timeout=60, check=False)
    if made.returncode != 0 or "rror" in made.stdout:
        raise RuntimeError(f"{model.name}: spin -a: {made.stdout}{made.stderr}")
    compiler = ["ccache", "gcc"] if shutil.which("ccache") else ["gcc"]  # spin makes the same source of the same model
    subprocess.run([*compiler, "-w", "-O1", "-DSAFETY", f"-DMEMLIM={MEMORY_MAX_MIB}", *flags, "-c", "pan.c"], cwd=folder,
                   check=True)
    subprocess.run(["gcc", "-o", "pan", "pan.o"], cwd=folder, check=True)
    return folder


def run(folder, limits, crashes=True, mutant=0):
    """What the verifier says, its trail's lines, whether it found an error."""
    environment = {**os.environ, "MUTANT": str(mutant), "CRASHES": str(int(crashes)),
                   "FAULTS": str(limits.get("FAULTS", 1)), "RESTARTS": str(limits.get("RESTARTS", 0))}
    for old in folder.glob("*.trail"):
        old.unlink()
    said = subprocess.run(["./pan", "-m1000000", "-w20"], cwd=folder, env=environment, capture_output=True,
                          text=True, check=False).stdout
    trail = next(iter(folder.glob("*.trail")), None)
    if trail is None:
        return said, [], "errors: 0" not in said
    again = subprocess.run(["./pan", "-r", trail.name], cwd=folder, env=environment, capture_output=True, text=True,
                           check=False).stdout
    return said, LINE.findall(again), True


def states_in(said):
    found = re.search(r"^\s*(\d+) states, stored", said, re.M)
    return int(found[1]) if found else 0


def unreached(model, folder, said):
    """Texts of steps that no path of the good model came to, though no mutant owns them."""
    lines = model.read_text().splitlines()
    owned = {text for text in re.findall(r"^// unreached: ([^;]*);", model.read_text(), re.M)}
    for i, line in enumerate(lines):
        near = " ".join(lines[max(i - 2, 0):i + 1])
        said_here = re.search(r"SAY(?:_AS)?(?:_OF)?\([^,]+, [^,]+, ([^),]*)[),]", line)
        is_owned = re.search(r"\b(MUTANT|EXCLUDED)\(", near) or "assert(false)" in " ".join(lines[i:i + 2])
        if said_here and is_owned:
            owned.add(said_here[1])
    counted = {}
    for state, text in set(re.findall(r"state (\d+), \"printf\('([^']*)'", said)):
        counted[text] = counted.get(text, 0) + 1
    listing = subprocess.run(["./pan", "-d"], cwd=folder, capture_output=True, text=True, check=False).stdout
    found = []
    for text, missing in counted.items():
        total = len(set(re.findall(r"state\s+(\d+) -\(tr[^\n]*=> printf\('" + re.escape(text), listing)))
        if text.split("|")[-1].replace("\\n", "").strip() not in owned and missing >= total:
            found.append(text)
    return found


def check_good(model, runs, is_quick, folders):
    """States of the good model; raises where it is not good."""
    states = 0
    for kind, limits in runs:
        if is_quick and kind != "quick":
            continue
        started = time.monotonic()
        folder = folders(model, limits["N"], not is_quick)
        counted = 0
        for crashes in (True, False):
            said, trail, is_bad = run(folder, limits, crashes)
            if is_bad or "too small" in said or "not completed" in said or "out of memory" in said:
                steps = "\n".join(" | ".join(step) for step in trail)
                raise RuntimeError(f"{model.name} with {limits}, CRASHES={int(crashes)}:\n{said}\n{steps}")
            counted += states_in(said)
            # One rank more than two, or more faults, add no text.
            missing = unreached(model, folder, said) if crashes and (kind, limits) == runs[0] else []
            if missing:
                raise RuntimeError(f"{model.name}: never reached: {missing}")
        bounds = " ".join(f"{k}={v}" for k, v in limits.items())
        print(f"{model.stem:10} {bounds:26} {counted:>10} states  {time.monotonic() - started:6.1f} s", flush=True)
        states += counted
    return states


def row_of(model, mutant, trail, said):
    """A row of the table of counterexamples."""
    name, _, what, is_excluded = mutant
    if re.search(r"pan:\d+: invalid end state", said):
        end = "nobody goes on: ranks wait for ever"
    elif trail and trail[-1][1] == "-":
        who, _, text = trail.pop()
        end = f"{who} {text}"
    else:
        end = "ranks make different collective calls"
    steps = "; ".join(f"{who}: {step if step != '-' else 'fate'}: {text}" for who, step, text in trail)
    last = f"{trail[-1][0]}: {trail[-1][1]}: {trail[-1][2]}" if trail else "-"
    shown = f"{name} (excluded)" if is_excluded else name
    return f"| {model.stem} | {shown} | {what} | {last} | {end} | {steps} |\n"


def check_mutants(model, mutants, runs, folders):
    """Rows of the counterexamples; raises where there is none."""
    folder = folders(model, 2, False)
    rows = []
    for mutant in mutants:
        started = time.monotonic()
        for crashes in (True, False):
            said, trail, is_bad = run(folder, {"FAULTS": 1}, crashes, mutant[1])
            if is_bad:
                break
        if not is_bad or "wrote" not in said:
            raise RuntimeError(f"{model.name}: mutant {mutant[0]} has no counterexample:\n{said}")
        rows.append(row_of(model, mutant, trail, said))
        print(f"{model.stem:10} {mutant[0]:34} counterexample {states_in(said):>8} states "
              f"{time.monotonic() - started:5.1f} s", flush=True)
    return rows


def record(is_quick, counts):
    folder = os.environ.get("SEALPOINT_RESULTS")
    row = {"row": "model" if is_quick else "model-full",
           "title": "Models of the protocol" + (", the quick ones" if is_quick else ", all bounds"),
           "command": "scripts/model.sh" + (" --quick" if is_quick else ""), "exact": True, "counts": counts}
    print(f"[ counted  ] {row['title']}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    if folder:
        (pathlib.Path(folder) / f"{row['row']}.json").write_text(json.dumps(row))


def main(arguments):
    is_quick, is_writing = "--quick" in arguments, "--write" in arguments
    chosen = [a for a in arguments if not a.startswith("--")]
    models = [m for m in sorted(MODELS.glob("*.pml")) if facts(m)[0] and (not chosen or m.stem in chosen)]
    missing = [tool for tool in ("spin", "gcc") if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {' and no '.join(missing)} here")
        return SKIPPED
    if len(models) < len(chosen):
        print(f"there are: {' '.join(m.stem for m in sorted(MODELS.glob('*.pml')) if facts(m)[0])}")
        return 64
    built = {}

    def folders(model, ranks, is_long):
        # Breadth first, the error found first is a shortest one. Quick: the compiler takes longer than the search.
        key = (model.stem, ranks, is_long)
        if key not in built:
            flags = ["-O2", "-DCOLLAPSE"] if is_long else ["-O0", "-DBFS"] if ranks == 2 else ["-O0"]
            built[key] = build(model, ranks, "long" if is_long else "short", flags)
        return built[key]

    started, states, rows, bad = time.monotonic(), 0, [], 0
    for model in models:
        runs, mutants = facts(model)
        try:
            states += check_good(model, runs, is_quick, folders)
            rows += check_mutants(model, mutants, runs, folders)
        except (RuntimeError, subprocess.SubprocessError) as problem:
            bad += 1
            print(f"FAILED: {problem}")
    table = HEAD + "".join(rows)
    if is_writing and not chosen and not bad:
        TABLE.write_text(table)
    elif not chosen and not bad and (not TABLE.exists() or TABLE.read_text() != table):
        bad += 1
        print("FAILED: spec/model/counterexamples.md is not what the models say; scripts/model.sh --write makes it")
    print(f"{len(models)} models, {states} states, {len(rows)} mutants and excluded cases, {bad} surprises, "
          f"{time.monotonic() - started:.1f} s")
    if not bad and not chosen:
        record(is_quick, {"models": len(models), "states": states, "mutants": len(rows), "counterexamples": len(rows)})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
