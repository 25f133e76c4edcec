# SPDX-License-Identifier: Apache-2.0
"""Reads the traces of train_char_lm: are they what a viewer expects, and do they tell what happened?

Usage: trace_test.py MPIEXEC TRAIN_CHAR_LM [unittest arguments]
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

RANKS = 2
STEPS = [1, 2, 3]
TRAINING, BACKGROUND = 0, 1  # threads
SHARED_PHASES = ["preflight", "write blobs", "sync blobs", "agree", "verdict"]
ALL_PHASES = SHARED_PHASES[:-1] + ["check blobs", "build index", "check index", "write index", "publish", "verdict"]

mpiexec, trainer = "", ""


def load(text):
    """As the viewers do: the closing bracket may be missing."""
    return json.loads(text if text.rstrip().endswith("]") else text + "]")


class TraceTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sealpoint-trace-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "text").write_text("the quick brown fox jumps over the lazy dog " * 30)

    def train(self, *arguments, status=0):
        """Returns the events of each rank."""
        shutil.rmtree(self.folder / "trace", ignore_errors=True)
        (self.folder / "trace").mkdir()
        command = [mpiexec, "-n", RANKS, trainer, "--text", self.folder / "text", "--steps", len(STEPS),
                   "--mesh", f"data={RANKS},tensor=1", "--hidden", 16, "--checkpoints", self.folder / "series",
                   "--save-every", 1, "--trace", self.folder / "trace", *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return [load((self.folder / "trace" / f"rank-{rank}.json").read_text()) for rank in range(RANKS)]

    def spans(self, events, rank):
        """The complete events by thread, in the order of their beginning, the outer before the inner."""
        found = {TRAINING: [], BACKGROUND: []}
        for event in events:
            if event["ph"] == "X":
                self.assertEqual(set(event), {"name", "ph", "pid", "tid", "ts", "dur", "args"})
                self.assertEqual(event["pid"], rank)
                self.assertGreaterEqual(event["dur"], 0)
                found[event["tid"]].append(event)
        for spans in found.values():
            # Of equal intervals the one that is written later is the outer one.
            spans.reverse()
            spans.sort(key=lambda span: (span["ts"], -span["dur"], span["name"] not in ("save", "load")))
        return found

    def wholes(self, spans, name):
        """Of one thread: [(save or load, its phases)]; each phase must lie in its whole, and behind the one before."""
        wholes = []
        for span in spans:
            end = span["ts"] + span["dur"]
            if span["name"] in ("save", "load"):
                if wholes:
                    self.assertGreaterEqual(span["ts"], wholes[-1][0]["ts"] + wholes[-1][0]["dur"])
                wholes.append((span, []))
                continue
            outer, phases = wholes[-1]
            self.assertGreaterEqual(span["ts"], outer["ts"])
            self.assertLessEqual(end, outer["ts"] + outer["dur"])
            self.assertEqual(span["args"].get("step"), outer["args"].get("step"))
            if phases:
                self.assertGreaterEqual(span["ts"], phases[-1]["ts"] + phases[-1]["dur"])
            phases.append(span)
        return [(outer, phases) for outer, phases in wholes if outer["name"] == name]

    def check_saves(self, spans, thread, steps, phases):
        saves = self.wholes(spans[thread], "save")
        self.assertEqual([outer["args"]["step"] for outer, _ in saves], steps)
        for _, inner in saves:
            self.assertEqual([phase["name"] for phase in inner], phases)
        return saves

    def test_names_process_and_threads(self):
        for rank, events in enumerate(self.train()):
            names = {(event["name"], event["tid"]): event["args"]["name"] for event in events if event["ph"] == "M"}
            self.assertEqual(names["process_name", 0], f"rank {rank} on {socket.gethostname()}")
            self.assertEqual(names["thread_name", TRAINING], "training")
            self.assertEqual(names["thread_name", BACKGROUND], "background")

    def test_saves_in_the_foreground(self):
        for rank, events in enumerate(self.train()):
            spans = self.spans(events, rank)
            phases = ALL_PHASES if rank == 0 else SHARED_PHASES
            saves = self.check_saves(spans, TRAINING, STEPS, ["preflight", "plan", *phases[1:]])
            self.assertEqual(spans[BACKGROUND], [])
            for _, inner in saves:
                self.assertGreater(inner[2]["args"]["bytes"], 0, "write blobs")

    def test_saves_in_the_background(self):
        for rank, events in enumerate(self.train("--async")):
            spans = self.spans(events, rank)
            before = self.check_saves(spans, TRAINING, STEPS, ["plan", "snapshot"])
            behind = self.check_saves(spans, BACKGROUND, STEPS, ALL_PHASES if rank == 0 else SHARED_PHASES)
            for (training, inner), (background, written) in zip(before, behind):
                self.assertGreater(inner[1]["args"]["bytes"], 0, "snapshot")
                self.assertEqual(written[1]["args"]["bytes"], inner[1]["args"]["bytes"], "write blobs")
                self.assertGreaterEqual(background["ts"], training["ts"] + training["dur"])

    def test_loads(self):
        self.train()
        for rank, events in enumerate(self.train("--resume")):
            loads = self.wholes(self.spans(events, rank)[TRAINING], "load")
            self.assertEqual(len(loads), 1)
            names = [phase["name"] for phase in loads[0][1]]
            self.assertEqual(names[-1], "read")
            self.assertNotIn("step", loads[0][0]["args"])

    def test_what_a_rank_that_dies_leaves_can_be_read(self):
        events = self.train("--async", "--die-at", 2, "--die-in", "agree", "--die-rank", 0, status=128 + 9)[0]
        spans = self.spans(events, 0)[BACKGROUND]
        whole = [span for span in spans if span["args"]["step"] == 1]
        self.assertEqual([phase["name"] for phase in self.wholes(whole, "save")[0][1]], ALL_PHASES)
        cut = [span["name"] for span in spans if span["args"]["step"] == 2]
        self.assertEqual(cut, ["preflight", "write blobs", "sync blobs"])


if __name__ == "__main__":
    mpiexec, trainer = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
