# SPDX-License-Identifier: Apache-2.0
"""Faults at each function by which library, tools and example touch files, injected by a preloaded shim.

Usage: see system_job.py. The faults are those of preload_shim.cc: SIGKILL before and after a call, an error, an error
of a call that took effect, a delay, a transfer in pieces; once, for every later call of the kind, or for all later
calls. Short form: of each run a sample that is spread over functions and faults, the same each time. --all: every call
with every fault; of the two trainings, which have 11,000 such pairs, 1,000 each.
"""
import collections
import errno
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile

import system_job
from system_job import (CORRUPT, FAULTY_STEP, INCOMPLETE, KILLED, NEXT_STEP, NOTHING, OLD_STEP, UNCOMMITTED,
                        UNREADABLE, VALID, count, run, save, tools, verify)

RANKS = 2
AGAIN_MAX = 3
OUTPUT_FAILED = 74  # exit status of the tools
DELAY_MS = 20

# What a function may report; the first one is also for ever. Never ENOENT: that is no fault but another state.
ERRORS = {
    "open": ["EIO", "EMFILE", "EACCES"],
    "openat": ["EIO", "EMFILE", "ENFILE", "EACCES", "EROFS", "ENOSPC", "EDQUOT", "ESTALE", "EINTR"],
    "fopen": ["EIO", "EMFILE", "EACCES"],
    "close": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "closedir": ["EIO"],
    "read": ["EIO", "ESTALE"],
    "pread": ["EIO", "ESTALE", "EINTR"],
    "write": ["EIO", "ENOSPC", "EDQUOT"],
    "pwrite": ["EIO", "ENOSPC", "EDQUOT", "EFBIG", "ESTALE", "EINTR"],
    "fallocate": ["EIO", "ENOSPC", "EOPNOTSUPP", "EINTR"],
    "fsync": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "fcntl": ["EINVAL", "EIO"],
    "stat": ["EIO", "EACCES", "ESTALE"],
    "lstat": ["EIO", "EACCES"],
    "fstat": ["EIO", "ESTALE"],
    "fstatat": ["EIO", "EACCES", "ESTALE"],
    "fstatfs": ["EIO", "ESTALE"],
    "fstatvfs": ["EIO", "ESTALE"],
    "fdopendir": ["EIO", "ENOMEM"],
    "readdir": ["EIO", "ESTALE"],
    "mkdir": ["EIO", "EACCES", "EROFS", "ENOSPC", "EDQUOT"],
    "rmdir": ["EIO", "EBUSY"],
    "unlinkat": ["EIO", "EROFS", "ESTALE"],
    "linkat": ["EIO", "EPERM", "EOPNOTSUPP", "ENOSPC", "ESTALE"],
    "renameat2": ["EIO", "EINVAL", "ENOSPC"],
    "getrandom": ["EIO", "ENOSYS", "EINTR"],
}
MOVE_BYTES = ("read", "pread", "write", "pwrite", "getrandom")
INTERRUPTED = ("fsync", "close")  # the only ones that an interruption may leave done

# System call -> the functions that make it, and those that are to be seen as often.
FUNCTIONS = {
    "openat": {"open", "openat", "fopen"}, "close": {"close", "closedir"}, "read": {"read"}, "pread64": {"pread"},
    "write": {"write"}, "pwrite64": {"pwrite"}, "fallocate": {"fallocate"}, "fsync": {"fsync"}, "mkdir": {"mkdir"},
    "rmdir": {"rmdir"}, "unlinkat": {"unlinkat"}, "linkat": {"linkat"}, "renameat2": {"renameat2"},
}
# These are also made inside of others.
ALSO_INSIDE = {"newfstatat": {"stat", "lstat", "fstat", "fstatat", "fdopendir"}, "fstat": {"fstat", "fdopendir"},
               "fcntl": {"fcntl", "fdopendir"}, "fstatfs": {"fstatfs", "fstatvfs"}, "getdents64": {"readdir"}}
HINTS = ("preadv2", "fadvise64")  # of ranges that are read soon: the bytes that one reads are not used
NO_ACCESS = ("execve", "readlink", "readlinkat", "getcwd", "chdir")  # of paths and names alone, or by the shim

Case = collections.namedtuple("Case", "name number fault later rank", defaults=(0,))
hits = collections.Counter()


def faults_of(name):
    """(fault, for which later calls)"""
    errors = ERRORS[name]
    found = [("kill", ""), ("kill-after", ""), (f"delay:{DELAY_MS}", "")]
    found += [(f"errno:{error}", "") for error in errors]
    if name != "fdopendir":
        found += [(f"late:{error}", "") for error in errors if error != "EINTR" or name in INTERRUPTED]
    found += [(f"errno:{errors[0]}", "counted"), ("errno:EIO", "all")]
    if name in MOVE_BYTES:
        found += [("short:1", ""), ("short:1000", "counted")]
    return found


def cases_of(calls, rank=0):
    numbers = collections.Counter(name for name, _, _ in calls)
    return [Case(name, number, fault, later, rank) for name in sorted(numbers)
            for number in range(1, numbers[name] + 1) for fault, later in faults_of(name)]


def spread(cases, number, number_of_all=None):
    """So many of them: each function and, in turn, each kind of fault. In the long form so many, or all of them."""
    if tools.all:
        number = number_of_all or len(cases)
    chance = random.Random(number)
    groups = collections.defaultdict(list)
    for case in cases:
        groups[case.name, case.rank, case.fault.partition(":")[0], case.later].append(case)
    of_name = collections.Counter()
    ordered = []
    for key, group in sorted(groups.items(), key=lambda one: chance.random()):
        for depth, case in enumerate(chance.sample(group, len(group))):
            ordered.append((depth, of_name[key[0]], chance.random(), case))
        of_name[key[0]] += 1
    return [case for _, _, _, case in sorted(ordered)[:number]]


def shim(root, log, case=None, rank=None, refuse=""):
    """The words before a program that is to make its calls through the shim."""
    words = ["env", f"LD_PRELOAD={tools.shim}", f"SHIM_UNDER={root}", f"SHIM_LOG={log}", f"SHIM_REFUSE={refuse}"]
    if rank is not None:
        words.append(f"SHIM_RANK={rank}")
    if case:
        kind, _, value = case.fault.partition(":")
        fault = f"{kind}:{getattr(errno, value, value)}" if value else kind
        words += [f"SHIM_CALLS={case.name}", f"SHIM_AT={case.number}", f"SHIM_DO={fault}", f"SHIM_LATER={case.later}"]
    return words


def read_log(path):
    """(function, path, fault if it went wrong)"""
    return [tuple(line.split("\t")) for line in path.read_text().splitlines()] if path.exists() else []


def content_of(directory):
    return {path.name: path.read_bytes() for path in pathlib.Path(directory).iterdir()}


def number_of(case):
    return getattr(errno, case.fault.partition(":")[2])


def is_harmless(case):
    """What is only slow, comes in pieces or is to be tried again changes no outcome."""
    kind, _, value = case.fault.partition(":")
    return kind in ("delay", "short") or (value == "EINTR" and case.name not in INTERRUPTED)


class PreloadTest(system_job.SystemTest):
    def struck(self, case, log):
        """True if the fault was injected, which is counted."""
        found = [line for line in read_log(log) if line[2]]
        log.unlink(missing_ok=True)
        if found:
            with system_job.counting:
                hits[case.name] += 1
        return bool(found)

    def check_cases(self, check, calls, cases, names):
        """Each of these functions is called, and goes wrong at least once; nothing else is called."""
        self.assertEqual({name for name, _, _ in calls}, set(names))
        struck = set()

        def one(case):
            if check(case):
                struck.add(case.name)

        self.check_all(one, cases)
        # A run may make fewer calls of a function than the one that was listed.
        for _ in range(AGAIN_MAX):
            missed = [case for case in cases if case.name in set(names) - struck]
            if missed:
                self.check_all(one, missed)
        self.assertEqual(struck, set(names))


class SaveTest(PreloadTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.older = content_of(next(cls.template.iterdir()))

    def calls_of(self, ranks=1, rank=None, refuse=""):
        """Those of a save in which nothing goes wrong."""
        series, log = self.new_series(), self.folder / "trace"
        words = shim(series, log, rank=rank, refuse=refuse)
        done = save(series, FAULTY_STEP, ranks, {item: words for item in range(ranks)})
        self.assertEqual(done.codes, ["Ok"] * ranks, done.text)
        calls = read_log(log)
        log.unlink()
        return calls

    def check_message(self, series, case, reported):
        """It names the call that failed, and where, unless a rule says what the failure amounts to."""
        if reported["rule"] not in ("R-CMT-01", "R-CMT-04", "R-CMT-05"):
            self.assertIn(f"(errno {number_of(case)})", reported["message"], reported)
        if case.name != "getrandom":
            self.assertTrue(reported["path"].startswith(str(series)), reported)

    def check_save(self, case, ranks=1, refuse=""):
        series = self.new_series()
        log = series.with_suffix(".log")
        words = shim(series, log, case, case.rank if ranks > 1 else None, refuse)
        outcome = save(series, FAULTY_STEP, ranks, {rank: words for rank in range(ranks)})
        is_struck = self.struck(case, log)
        verdict = self.check_attempt(series, outcome)
        self.assertEqual(content_of(self.directory_of(series, OLD_STEP)), self.older)
        if case.fault.startswith("kill") and is_struck:
            self.assertIn(outcome.status, KILLED, outcome.text)
        else:
            self.assertEqual((outcome.status, len(outcome.saves)), (0, ranks), outcome.text)
            if not outcome.success_was_told:
                self.check_same_failure(outcome, ranks)
        if is_harmless(case) or not is_struck:
            self.assertEqual(set(outcome.codes), {"Ok"}, outcome.text)
        for reported in outcome.saves:
            if reported["code"] != "Ok":
                self.check_message(series, case, reported)
        self.check_next_save(series, verdict)
        self.count_outcome(outcome, verdict)
        return is_struck

    @staticmethod
    def count_outcome(outcome, verdict):
        if len(outcome.saves) == 0:
            count("killed, committed" if verdict == VALID else "killed, not committed")
        else:
            count("saved all the same" if outcome.success_was_told else "unknown" if outcome.is_unknown else "refused")

    EVERY_SAVE = ("close", "closedir", "fallocate", "fcntl", "fdopendir", "fstat", "fstatat", "fstatfs", "fstatvfs", "fsync",
                  "getrandom", "linkat", "mkdir", "openat", "pread", "pwrite", "readdir", "stat", "unlinkat")

    def test_a_single_process(self):
        calls = self.calls_of()
        self.check_cases(self.check_save, calls, spread(cases_of(calls), 150), self.EVERY_SAVE)

    def test_a_file_system_without_links(self):
        """It publishes by renameat2."""
        calls = [call for call in self.calls_of(refuse="linkat") if call[0] == "renameat2"]
        self.check_cases(lambda case: self.check_save(case, refuse="linkat"), calls, spread(cases_of(calls), 12),
                         ["renameat2"])

    def test_each_rank(self):
        self.needs_mpi()
        calls = [self.calls_of(RANKS, rank) for rank in range(RANKS)]
        cases = [case for rank in range(RANKS) for case in cases_of(calls[rank], rank)]
        self.check_cases(lambda case: self.check_save(case, RANKS), sum(calls, []), spread(cases, 40), self.EVERY_SAVE)


class PruneTest(PreloadTest):
    """Of three checkpoints the oldest is to go."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for step in (FAULTY_STEP, NEXT_STEP):
            assert save(cls.template, step).codes == ["Ok"]
        cls.contents = {path.name: content_of(path) for path in cls.template.iterdir()}
        cls.oldest = min(cls.contents)

    @staticmethod
    def prune(series, words=()):
        done = run([*words, tools.probe, "--series", series, "--keep-last", 2])
        lines = system_job.lines_of_json(done.stdout)
        return done.returncode, lines[0] if lines else None

    def check_prune(self, case):
        series = self.new_series()
        log = series.with_suffix(".log")
        status, told = self.prune(series, shim(series, log, case))
        is_struck = self.struck(case, log)
        for name, content in self.contents.items():
            if name != self.oldest:
                self.assertEqual(content_of(series / name), content)
        valid, report = verify("--series", series)
        self.assertEqual(valid, VALID, report)
        verdict = verify(series / self.oldest)[0]
        self.assertIn(verdict, (VALID, UNCOMMITTED, NOTHING))
        if case.fault.startswith("kill") and is_struck:
            self.assertIn(status, KILLED)
            count("prunings killed")
        elif told["code"] == "Ok":
            self.assertEqual((told["pruned"], (series / self.oldest).exists()), ([self.oldest], False))
            count("pruned all the same")
        else:
            self.assertFalse(is_harmless(case), told)
            self.assertIn(f"(errno {number_of(case)})", told["message"])
            self.assertTrue(told["path"].startswith(str(series)), told)
            count("prunings refused")
        self.assertEqual(self.prune(series)[1]["code"], "Ok", "the next time")
        return is_struck

    def test_pruning(self):
        series, log = self.new_series(), self.folder / "trace"
        self.assertEqual(self.prune(series, shim(series, log))[1]["pruned"], [self.oldest])
        calls = read_log(log)
        self.check_cases(self.check_prune, calls, spread(cases_of(calls), 60),
                         ("close", "closedir", "fdopendir", "fstat", "fstatat", "fsync", "openat", "pread", "readdir",
                          "unlinkat"))


class ToolTest(PreloadTest):
    """All read the same few checkpoints."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = cls.folder / "root"
        series = cls.root / "series"
        shutil.copytree(cls.template, series)
        assert save(series, NEXT_STEP).codes == ["Ok"]
        good = next(series.glob(f"step-{NEXT_STEP:012}-*"))
        for name in ("good", "linked", "corrupt", "incomplete", "uncommitted"):
            shutil.copytree(good, cls.root / name)
        blob = next(path.name for path in good.iterdir() if path.suffix == ".blob")
        (cls.root / "linked" / blob).unlink()
        (cls.root / "linked" / blob).symlink_to(cls.root / "good" / blob)
        with open(cls.root / "corrupt" / blob, "r+b") as file:
            file.seek(8192)
            file.write(b"damage")
        (cls.root / "incomplete" / blob).unlink()
        (cls.root / "uncommitted" / "COMMIT").unlink()

    def call(self, command, words, arguments, **options):
        done = run([*words, tools.ckpt, command, *arguments], **options)
        seconds = re.compile(r"[\d.]+ m?s\b|\"seconds\": ?[\d.e-]+|[\d.]+ [KMG]?i?B/s")
        return done.returncode, seconds.sub("TIME", done.stdout), done.stderr

    def check_tool(self, command, arguments, target, expected, number):
        """Under each fault the answer is the true one, or that it could not be read and why."""
        words = [*arguments, self.root / target]
        log = self.folder / f"{command}{'-'.join(map(str, arguments))}-{target}"
        status, told, complaints = self.call(command, shim(self.root, log), words)
        self.assertEqual(status, expected, told + complaints)
        calls = read_log(log)
        log.unlink()

        def check(case):
            one_log = log.with_name(f"{log.name}-{case.name}-{case.number}-{case.fault}-{case.later}")
            answer = self.call(command, shim(self.root, one_log, case), words)
            is_struck = self.struck(case, one_log)
            if case.fault.startswith("kill") and is_struck:
                self.assertIn(answer[0], KILLED, answer)
                count("tools killed")
            elif is_harmless(case) or not is_struck:
                self.assertEqual(answer, (status, told, complaints))
                count("tools undisturbed")
            else:
                self.check_answer(case, answer, (status, told))
            return is_struck

        self.check_cases(check, calls, spread(cases_of(calls), number), {name for name, _, _ in calls})

    def check_answer(self, case, answer, expected):
        status, told, complaints = answer
        self.assertIn(status, (expected[0], UNREADABLE), answer)
        # ckpt ls shows a series with what of it could not be read.
        if status == UNREADABLE or re.search(r"\bunreadable\b", told):
            self.assertIn(f"errno {number_of(case)})", told + complaints)
            self.assertIn(str(self.root), told + complaints)
            self.assertNotRegex(told + complaints, "did you mean|nothing named", "it is there")
            count("tools refused")
            return
        if status == VALID:
            self.assertEqual((told, complaints), (expected[1], ""), "what is shown is all")
        count("tools undisturbed")

    def test_verify(self):
        for arguments, target, expected, number in (
                ([], "good", VALID, 100), (["--json"], "linked", VALID, 100),
                (["--level", "files"], "linked", VALID, 60), (["--json", "--all"], "corrupt", CORRUPT, 80),
                ([], "incomplete", INCOMPLETE, 60), ([], "uncommitted", UNCOMMITTED, 60),
                (["--series"], "series", VALID, 100), (["--json", "--series"], "series", VALID, 100)):
            with self.subTest(arguments=arguments, target=target):
                self.check_tool("verify", arguments, target, expected, number)

    def test_ls(self):
        for arguments, target, expected in (
                ([], "good", VALID), (["--json"], "linked", VALID), (["--long"], "good", VALID),
                (["--json", "--long"], "good", VALID), (["--tensor", "*"], "good", VALID),
                (["--values", "shared"], "linked", VALID), (["--object", "rng.0"], "good", VALID),
                (["--json", "--object", "*"], "good", VALID), (["--plan", "data=2"], "good", VALID),
                (["--json", "--plan", "data=2"], "good", VALID), ([], "incomplete", INCOMPLETE),
                ([], "uncommitted", UNCOMMITTED), ([], "series", VALID), (["--json"], "series", VALID)):
            with self.subTest(arguments=arguments, target=target):
                self.check_tool("ls", arguments, target, expected, 80)

    def test_what_cannot_be_printed(self):
        """Standard output is a file whose writes fail."""
        for command in ("verify", "ls"):
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))

            def printed(log, case=None, command=command, folder=folder):
                with open(folder / f"out-{log.name}", "w+", encoding="utf-8") as output:
                    status, _, complaints = self.call_into(output, [*shim(folder, log, case), tools.ckpt, command, "--json",
                                                                    self.root / "good"])
                    output.seek(0)
                    return status, re.sub(r"\"seconds\": ?[\d.e-]+", "", output.read()), complaints

            log = self.folder / f"{command}-output"
            expected = printed(log)
            self.assertEqual(expected[0], VALID)

            def check(case, command=command, printed=printed, expected=expected):
                one_log = self.folder / f"{command}-{'-'.join(map(str, case))}"
                answer = printed(one_log, case)
                is_struck = self.struck(case, one_log)
                if case.fault.startswith("kill"):
                    self.assertIn(answer[0], KILLED, answer)
                elif is_harmless(case):
                    self.assertEqual(answer, expected)
                elif answer[0] != VALID or case.name in ("write", "close"):
                    self.assertEqual(answer[0], OUTPUT_FAILED, answer)
                    self.assertIn(f"(errno {number_of(case)})", answer[2])
                    count("tools refused")
                else:
                    self.assertEqual(answer, expected)
                return is_struck

            calls = [call for call in read_log(log) if call[0] != "getrandom"]
            self.check_cases(check, calls, spread(cases_of(calls), 30), {name for name, _, _ in calls})

    @staticmethod
    def call_into(output, command):
        done = subprocess.run([str(word) for word in command], stdout=output, stderr=subprocess.PIPE,
                              timeout=system_job.SECONDS_MAX, check=False, text=True)
        return done.returncode, "", done.stderr


class TrainingTest(PreloadTest):
    """The example over MPI: it reads its text, saves, resumes, and writes a trace."""

    STEPS = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.fresh = cls.folder / "fresh"
        (cls.fresh / "trace").mkdir(parents=True)
        text = "".join(random.Random(1).choices("abcdefgh ", k=9000))
        (cls.fresh / "text").write_text(text)
        cls.begun = cls.folder / "begun"
        if not tools.train:
            return
        shutil.copytree(cls.fresh, cls.begun)
        done = cls.train(cls.begun, 2)
        assert done.returncode == 0, done.stdout + done.stderr
        for trace in (cls.begun / "trace").iterdir():
            trace.unlink()
        whole = cls.folder / "whole"
        shutil.copytree(cls.fresh, whole)
        done = cls.train(whole, cls.STEPS)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.expected = system_job.final_state_in(done.stdout)

    def setUp(self):
        self.needs_mpi()
        if not tools.train:
            self.skipTest("the example was not built")

    @staticmethod
    def train(folder, steps, words=(), resume=False):
        return run([tools.mpiexec, "-n", RANKS, *words, tools.train, "--text", folder / "text", "--steps", steps,
                    "--mesh", f"data={RANKS},tensor=1", "--hidden", 16, "--save-every", 1,
                    "--checkpoints", folder / "series", "--trace", folder / "trace",
                    *(["--resume"] if resume else [])])

    def new_folder(self, template):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(template, folder, dirs_exist_ok=True)
        return folder

    def calls_of(self, template, rank, resume):
        folder, log = self.new_folder(template), self.folder / "trace"
        done = self.train(folder, self.STEPS, shim(folder, log, rank=rank), resume)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        calls = read_log(log)
        log.unlink()
        return calls

    def check_training(self, case, template, resume):
        folder = self.new_folder(template)
        log = folder.with_suffix(".log")
        older = {path.name: content_of(path) for path in (folder / "series").glob("step-*")}
        done = self.train(folder, self.STEPS, shim(folder, log, case, case.rank), resume)
        text = done.stdout + done.stderr
        is_struck = self.struck(case, log)
        for name, content in older.items():
            self.assertEqual(content_of(folder / "series" / name), content)
        saved = self.check_saves(folder, text)
        if case.fault.startswith("kill") and is_struck:
            self.assertIn(done.returncode, KILLED, text)
            count("trainings killed")
        elif done.returncode == 0:
            self.assertEqual(system_job.final_state_in(done.stdout), self.expected, text)  # what was read is whole
            self.assertEqual("resumed from" in text, resume, text)
            failed = text.count(" failed: ")
            self.assertEqual(len(saved) + failed, self.STEPS - len(older), text)
            count("trainings that went on")
        else:
            self.assertFalse(is_harmless(case), text)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn("train_char_lm: ", text)
            count("trainings refused")
        return is_struck

    def check_saves(self, folder, text):
        """What was reported as saved is whole, what as failed is not there; the names of the first."""
        if not (folder / "series").exists():
            return []
        saved = re.findall(r"  saved (step-\S+)", text)
        _, report = verify("--series", folder / "series")
        verdicts = {os.path.basename(item["path"]): item["verdict"] for item in report["reports"]}
        self.assertEqual(set(verdicts.values()) - {"committed"}, set(), report)
        self.assertEqual(set(saved) - set(verdicts), set(), text)
        for step in re.findall(r"save of step (\d+) failed: (?!.*R-CMT-07)", text):
            self.assertEqual([name for name in verdicts if name.startswith(f"step-{int(step):012}-")], [], text)
        return saved

    def check_faults(self, template, resume, number, names):
        calls = [self.calls_of(template, rank, resume) for rank in range(RANKS)]
        cases = [case for rank in range(RANKS) for case in cases_of(calls[rank], rank)]
        self.check_cases(lambda case: self.check_training(case, template, resume), sum(calls, []),
                         spread(cases, number, 1000), names)

    NAMES = (*SaveTest.EVERY_SAVE, "fopen", "open", "read", "write")

    def test_from_the_beginning(self):
        self.check_faults(self.fresh, False, 40, self.NAMES)

    def test_resumed(self):
        self.check_faults(self.begun, True, 40, self.NAMES)


class CompletenessTest(PreloadTest):
    """The shim stands in for every call on the files that strace sees."""

    def check_program(self, root, command, launcher=()):
        log, trace = self.folder / "log", self.folder / "strace"
        strace = ["strace", "-f", "-qq", "-y", "-o", trace, "-e", "trace=%file,%desc"]
        done = run([*launcher, *strace, *shim(root, log), *command])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shimmed = collections.Counter(name for name, _, _ in read_log(log))
        log.unlink()
        traced = collections.Counter()
        for line in trace.read_text(errors="replace").splitlines():
            call = re.match(r"\d+ +(\w+)\(", line)
            if call and str(root) in line and call[1] not in NO_ACCESS:
                traced[call[1]] += 1
        for name, number in traced.items():
            if name in HINTS:
                continue
            self.assertIn(name, {*FUNCTIONS, *ALSO_INSIDE}, "nothing stands in for it")
            if name in FUNCTIONS:
                self.assertEqual(number, sum(shimmed[function] for function in FUNCTIONS[name]), name)
            else:
                self.assertTrue(any(shimmed[function] for function in ALSO_INSIDE[name]), name)
            count("calls compared with strace", number)

    def setUp(self):
        if not shutil.which("strace") or run(["strace", "-o", "/dev/null", "true"]).returncode != 0:
            self.skipTest("strace cannot trace here")

    def test_the_programs(self):
        series = self.new_series()
        self.check_program(series, [tools.probe, "--series", series, "--save", FAULTY_STEP, "--check"])
        self.check_program(series, [tools.ckpt, "verify", "--series", series])
        step = self.directory_of(series, OLD_STEP)
        for arguments in (["--long"], ["--json", "--values", "w"], ["--plan", "data=2"]):
            self.check_program(series, [tools.ckpt, "ls", *arguments, step])

    def test_the_example(self):
        self.needs_mpi()
        if not tools.train:
            self.skipTest("the example was not built")
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "trace").mkdir()
        (folder / "text").write_text("abcdefgh " * 1000)
        self.check_program(folder, [tools.train, "--text", folder / "text", "--steps", 1, "--mesh", "data=1,tensor=1",
                                    "--hidden", 16, "--save-every", 1, "--checkpoints", folder / "series",
                                    "--trace", folder / "trace", "--resume"], [tools.mpiexec, "-n", 1])


def tearDownModule():
    """How often each function went wrong."""
    for name in sorted(hits):
        count(name, hits[name])


def cannot_run():
    if not tools.shim:
        return "a program with a sanitizer has its own functions in the place of the shim's"
    if shutil.which("ldd") and run(["ldd", tools.ckpt]).returncode != 0:
        return "the programs are linked statically: nothing can be preloaded"
    return ""


if __name__ == "__main__":
    system_job.main("preload", "Faults at file functions, by a preloaded shim", cannot_run)
