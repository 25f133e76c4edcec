# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: running saves with faults around them, and checking what is left.

  TEST.py PROBE PROBE_MPI TRAIN_CHAR_LM CALL_FAULTS CKPT_VERIFY MPIEXEC CKPT_INSPECT SHIM [--all] [unittest arguments]

PROBE_MPI, TRAIN_CHAR_LM and MPIEXEC are empty where there is no MPI, SHIM where nothing can be preloaded. --all runs
the long form.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest

VALID, CORRUPT, UNCOMMITTED, UNREADABLE, INCOMPLETE = 0, 1, 2, 4, 5  # exit statuses of ckpt verify
NOTHING = UNREADABLE  # no Sealpoint files
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL, signal.SIGKILL)  # alone, under Open MPI, under MPICH
NOT_OFFERED = 77  # exit status of a skipped test and of call_faults
OLD_STEP, FAULTY_STEP, NEXT_STEP = 1, 2, 3
SECONDS_MAX = 60
WORKERS = 4

TOOLS = ("probe", "probe_mpi", "train", "faults", "ckpt", "mpiexec", "shim")
tools = types.SimpleNamespace(**dict.fromkeys(TOOLS, ""), all=False)
counts = {}
counting = threading.Lock()


def count(what, number=1):
    with counting:
        counts[what] = counts.get(what, 0) + number


def record(row, title):
    """Prints what was counted, for the table in docs/evidence/testing-counts.md (tests/support/process/results.h)."""
    long_form = "-all" if tools.all else ""
    test = row.replace("-", "_")
    command = f"scripts/system_faults.sh {test}" if tools.all else f"ctest --test-dir build/dev -R system.{test}"
    title += ", long form" if tools.all else ""
    print(f"[ counted  ] {title}: " + ", ".join(f"{number} {what}" for what, number in counts.items()))
    folder = os.environ.get("SEALPOINT_RESULTS")
    if folder and counts:
        run = {"row": f"system-{row}{long_form}", "title": title, "command": command, "exact": False,
               "counts": counts}
        pathlib.Path(folder, run["row"] + ".json").write_text(json.dumps(run) + "\n")


def final_state_in(output):
    """The digest of parameters and moments that the example prints at its end."""
    return re.search(r"^step +\d+  state (\S+)  done$", output, re.MULTILINE)[1]


def run(command, env=None, **options):
    command = [str(part) for part in command]
    # Open MPI's jobs of one user make and remove one folder in /tmp; one that starts while another ends may find it gone.
    with tempfile.TemporaryDirectory(prefix="mpi-") as session:
        env = {**(env or os.environ), "OMPI_MCA_orte_tmpdir_base": session}
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
                                  errors="replace", env=env, **options)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still running after {SECONDS_MAX} s: {command}: {late.stdout}") from None


def lines_of_json(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Outcome:
    """How a run of the probe ended, and what its ranks said of the save."""

    def __init__(self, done):
        self.status, self.text = done.returncode, done.stdout + done.stderr
        lines = lines_of_json(done.stdout)
        self.saves = [line for line in lines if "rank" in line]
        self.checks = {line["checked"]: line["wrong"] for line in lines if "checked" in line}

    @property
    def codes(self):
        return [save["code"] for save in sorted(self.saves, key=lambda save: save["rank"])]

    @property
    def success_was_told(self):
        return "Ok" in self.codes

    @property
    def failure_was_told(self):
        """True for a failure after which it is known that nothing was committed."""
        return any(save["code"] not in ("Ok", "Comm", "Timeout") and not save["unknown"] for save in self.saves)

    @property
    def is_unknown(self):
        return any(save["unknown"] for save in self.saves)

    def __str__(self):
        return "/".join(self.codes) + (" (unknown)" if self.is_unknown else "") if self.saves else f"exit {self.status}"


def job(ranks, arguments, wrappers=None):
    """The command that saves from so many ranks; wrappers: rank -> words before its program."""
    wrappers = wrappers or {}
    if ranks == 1:
        return [*wrappers.get(0, []), tools.probe, *arguments]
    command = [tools.mpiexec]
    for rank in range(ranks):
        command += [":"] if rank else []
        command += ["-n", 1, *wrappers.get(rank, []), tools.probe_mpi, *arguments]
    return command


def save(series, step, ranks=1, wrappers=None, arguments=(), **options):
    return Outcome(run(job(ranks, ["--series", series, "--save", step, *arguments], wrappers), **options))


def call_faults(directory, *arguments):
    return [tools.faults, "--under", directory, *arguments]


def read_log(path):
    """The calls that call_faults counted: (name, kind of file)."""
    calls = []
    for line in path.read_text().splitlines():
        _, name, place = line.split(" ", 2)
        base = os.path.basename(place)
        if ".probe" in base:
            kind = "probe"
        elif base.endswith((".blob", ".index", ".commit")):
            kind = base.rpartition(".")[2]
        else:
            kind = base if base == "COMMIT" else "directory"
        calls.append((name, kind))
    return calls


def verify(*arguments):
    done = run([tools.ckpt, "verify", "--json", *arguments])
    return done.returncode, json.loads(done.stdout)


class SystemTest(unittest.TestCase):
    """Each case gets a series with one committed step."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sealpoint-system-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.template = cls.folder / "template"
        cls.template.mkdir()
        done = save(cls.template, OLD_STEP)
        assert done.codes == ["Ok"], done.text

    def new_series(self):
        series = pathlib.Path(tempfile.mkdtemp(prefix="series-", dir=self.folder))
        shutil.copytree(self.template, series, dirs_exist_ok=True)
        return series

    def directory_of(self, series, step):
        found = list(pathlib.Path(series).glob(f"step-{step:012}-*"))
        self.assertLessEqual(len(found), 1, found)
        return found[0] if found else None

    def check_attempt(self, series, outcome):
        """What must hold after any fault; returns the verdict on the attempt."""
        status, report = verify("--series", series)
        self.assertEqual(status, VALID, report)
        verdicts = {item["path"]: item["verdict"] for item in report["reports"]}
        self.assertEqual(verdicts[str(self.directory_of(series, OLD_STEP))], "committed")
        attempt = self.directory_of(series, FAULTY_STEP)
        verdict = verify(attempt)[0] if attempt else NOTHING
        self.assertIn(verdict, (VALID, UNCOMMITTED, NOTHING), report)
        if verdict == VALID:
            self.assertEqual(verdicts[str(attempt)], "committed")
        if outcome.success_was_told:
            self.assertEqual(verdict, VALID, f"{outcome} was reported\n{outcome.text}")
        if outcome.failure_was_told:
            self.assertNotEqual(verdict, VALID, f"{outcome} was reported\n{outcome.text}")
        return verdict

    def check_next_save(self, series, verdict, ranks=1, step=NEXT_STEP):
        """A later process finds what is committed, byte for byte, and its own save works."""
        next_one = save(series, step, ranks, arguments=["--check"])
        self.assertEqual(next_one.status, 0, next_one.text)
        self.assertEqual(set(next_one.codes), {"Ok"}, next_one.text)
        older = [OLD_STEP, FAULTY_STEP] if verdict == VALID else [OLD_STEP]
        self.assertEqual(sorted(next_one.checks), [*older, step])
        self.assertEqual(set(next_one.checks.values()), {""}, next_one.checks)
        status, report = verify(next_one.saves[0]["directory"])
        self.assertEqual(status, VALID, report)
        self.assertEqual(report["reports"][0]["sequence"], len(older) + 1, "it goes on from the newest")

    def check_nothing_left(self, series):
        """After a failure that was agreed on, every file was removed."""
        attempt = self.directory_of(series, FAULTY_STEP)
        self.assertIsNone(attempt, attempt and os.listdir(attempt))

    def check_same_failure(self, outcome, ranks):
        """All ranks reported the same error, the first cause."""
        self.assertEqual(len(outcome.saves), ranks, outcome.text)
        reported = {json.dumps({k: v for k, v in item.items() if k not in ("rank", "seconds")}) for item in outcome.saves}
        self.assertEqual(len(reported), 1, reported)

    def check_all(self, check, cases):
        """check(case) for all cases, several at a time, since most of their time goes into waiting for the disk."""
        self.assertGreater(len(cases), 0)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            checks = [(case, pool.submit(check, case)) for case in cases]
        for case, done in checks:
            with self.subTest(case=case):
                done.result()

    def needs_mpi(self):
        if not tools.mpiexec:
            self.skipTest("no MPI")


def can_trace():
    """The reason why processes cannot be traced here, or None."""
    if run([tools.faults, "--under", "/nowhere", "true"]).returncode != 0:
        return "ptrace is not allowed, or not known for this processor"
    return ""


def main(row, title, before=None):
    for name, path in zip(TOOLS, sys.argv[1:]):
        setattr(tools, name, os.path.abspath(path) if path else "")
    rest = sys.argv[1 + len(TOOLS):]
    tools.all = "--all" in rest
    why_not = before() if before else ""
    if why_not:
        print("skipped:", why_not)
        sys.exit(NOT_OFFERED)
    sys.stdout.reconfigure(line_buffering=True)
    rest = [word for word in rest if word != "--all"]
    program = unittest.main(argv=[sys.argv[0], *rest], verbosity=2, exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    if program.result.testsRun == len(program.result.skipped):
        sys.exit(NOT_OFFERED)
    record(row, title)
