# SPDX-License-Identifier: Apache-2.0
"""Errors of system calls during a save: each call, each error that it may return, and limits of the process.

Usage: see system_job.py. Short form: each call of a single process with one error. --all: with each error of the table.
"""
import errno
import shutil
import signal

import system_job
from system_job import FAULTY_STEP, NOTHING, VALID, call_faults, count, read_log, save, tools

# What a call may return; the first one is that of the short form.
ERRORS = {
    "mkdir": ["errno:EACCES", "errno:EROFS", "errno:ENOSPC", "errno:EDQUOT", "errno:ENAMETOOLONG"],
    "openat": ["errno:EMFILE", "errno:EACCES", "errno:EROFS", "errno:ENOSPC", "errno:ENFILE", "errno:EINTR"],
    "fallocate": ["errno:EOPNOTSUPP", "errno:ENOSPC", "errno:EIO", "errno:EINTR"],
    "pwrite64": ["errno:EIO", "errno:ENOSPC", "errno:EDQUOT", "errno:EFBIG", "errno:EINTR", "short:1000", "errno:0"],
    "fsync": ["errno:EIO", "errno:ENOSPC", "errno:EDQUOT", "errno:EINTR", "late:EIO"],
    "close": ["late:EIO", "late:ENOSPC", "late:EINTR"],
    "linkat": ["errno:EIO", "late:EIO", "errno:EPERM", "errno:EOPNOTSUPP", "errno:EEXIST", "late:EEXIST"],
    "unlinkat": ["errno:EIO", "late:EIO", "errno:EROFS"],
}
READING_ERRORS = {
    "openat": ["errno:EMFILE", "errno:EIO", "errno:EACCES"],
    "newfstatat": ["errno:EIO"],
    "fstatfs": ["errno:EIO"],
    "pread64": ["errno:EIO", "errno:EINTR", "short:100"],
    "getdents64": ["errno:EIO"],
    "fcntl": ["errno:EINVAL"],
    "getrandom": ["errno:EIO", "errno:EINTR"],
}
# Without any effect on the outcome: continued, tried again, or done in another way.
HARMLESS = ("errno:EINTR", "short:1000", "short:100", "errno:EOPNOTSUPP", "errno:EINVAL")


def as_number(fault):
    kind, _, name = fault.partition(":")
    return f"{kind}:{getattr(errno, name, name)}"


class ErrorsTest(system_job.SystemTest):
    def calls_of(self, names=()):
        """The calls of a save without faults, those that change something or those of these names."""
        series = self.new_series()
        log = self.folder / "log"
        chosen = ["--calls", ",".join(names)] if names else []
        done = save(series, FAULTY_STEP, wrappers={0: call_faults(series, *chosen, "--log", log)})
        self.assertEqual(done.codes, ["Ok"], done.text)
        return read_log(log)

    def fail_call(self, number, fault, call, names=()):
        """One call of one save goes wrong; returns the outcome and the verdict."""
        series = self.new_series()
        chosen = ["--calls", ",".join(names)] if names else []
        wrapper = call_faults(series, *chosen, "--at", number, "--do", as_number(fault))
        outcome = save(series, FAULTY_STEP, wrappers={0: wrapper})
        self.assertEqual(outcome.status, 0, outcome.text)
        self.assertEqual(len(outcome.codes), 1, outcome.text)
        verdict = self.check_attempt(series, outcome)
        print(f"{fault} at call {number} ({call[0]} {call[1]}): {outcome}")
        # A name that is said to be taken is somebody else's, and stays.
        if outcome.failure_was_told and call[0] != "unlinkat" and fault != "late:EEXIST":
            self.check_nothing_left(series)
        self.check_next_save(series, verdict)
        count("saved all the same" if outcome.codes == ["Ok"] else "unknown" if outcome.is_unknown else "refused")
        return outcome, verdict

    def check_outcome(self, fault, call, outcome, verdict):
        name, kind = call
        is_published = name == "fsync" and kind == "directory" and outcome.is_unknown
        if is_published:
            self.assertEqual(verdict, VALID)  # nothing is removed
        if name in ("mkdir", "openat", "pwrite64", "fsync", "close") and kind != "probe":
            is_harmless = fault in HARMLESS and name in ("openat", "pwrite64")
            self.assertEqual(outcome.codes == ["Ok"], is_harmless, outcome.text)
        # What a probe tries out and does not write to is closed without a look.
        if fault.endswith(("ENOSPC", "EDQUOT")) and not outcome.is_unknown and call != ("close", "probe"):
            self.assertEqual(outcome.codes, ["NoSpace"], outcome.text)
        if name == "unlinkat" and kind == "commit":
            self.assertEqual(outcome.codes, ["Ok"], "the name is litter by then")
        if kind == "COMMIT":  # of a publication that was reported as failed, the marker tells
            self.assertEqual(outcome.codes == ["Ok"], fault.startswith("late"), outcome.text)

    def check_case(self, case):
        number, fault, call, names = case
        outcome, verdict = self.fail_call(number, fault, call, names)
        if names:
            self.assertNotEqual(outcome.is_unknown, True, outcome.text)
            if fault in HARMLESS:
                self.assertEqual(outcome.codes, ["Ok"], outcome.text)
        else:
            self.check_outcome(fault, call, outcome, verdict)

    def test_each_call_that_changes_something(self):
        cases = []
        for number, call in enumerate(self.calls_of(), start=1):
            errors = ERRORS[call[0]]
            cases += [(number, fault, call, ()) for fault in (errors if tools.all else errors[:1])]
        self.check_all(self.check_case, cases)

    def test_a_publication_that_takes_effect_and_reports_an_error(self):
        calls = self.calls_of()
        number = calls.index(("linkat", "COMMIT")) + 1
        for fault in ("late:EIO", "late:EEXIST"):
            outcome, verdict = self.fail_call(number, fault, calls[number - 1])
            self.assertEqual((outcome.codes, verdict), (["Ok"], VALID))

    def test_a_publication_that_does_nothing_and_reports_an_error(self):
        calls = self.calls_of()
        number = calls.index(("linkat", "COMMIT")) + 1
        outcome, verdict = self.fail_call(number, "errno:EIO", calls[number - 1])
        self.assertEqual((outcome.codes, verdict), (["Io"], NOTHING))

    def test_a_file_system_without_links_is_published_to_by_rename(self):
        series = self.new_series()
        refuse = ["--calls", "linkat", "--at", 1, "--and-later", "--do", as_number("errno:EPERM")]
        outcome = save(series, FAULTY_STEP, wrappers={0: call_faults(series, *refuse)})
        self.assertEqual((outcome.codes, self.check_attempt(series, outcome)), (["Ok"], VALID), outcome.text)
        self.check_next_save(series, VALID)
        count("saved all the same")

    def test_a_file_system_without_exclusive_publication_is_refused(self):
        series = self.new_series()
        refuse = ["--calls", "linkat,renameat2", "--at", 1, "--and-later", "--do", as_number("errno:EPERM")]
        outcome = save(series, FAULTY_STEP, wrappers={0: call_faults(series, *refuse)})
        self.assertEqual((outcome.codes, self.check_attempt(series, outcome)), (["Unsupported"], NOTHING), outcome.text)
        self.check_nothing_left(series)
        self.check_next_save(series, NOTHING)
        count("refused")

    def test_each_call_that_reads(self):
        cases = []
        for name, errors in READING_ERRORS.items():
            calls = enumerate(self.calls_of([name]), start=1)
            cases += [(number, fault, call, (name,)) for number, call in calls
                      for fault in (errors if tools.all else errors[:1])
                      if call != ("fcntl", "directory")]  # lists it; O_DIRECT is for files
        self.check_all(self.check_case, cases)


class LimitsTest(system_job.SystemTest):
    def limited(self, limit, ignored_signal=None):
        """A save under a limit of the process (prlimit)."""
        series = self.new_series()
        ignore = ["sh", "-c", f'trap "" {ignored_signal}; exec "$@"', "sh"] if ignored_signal else []
        outcome = save(series, FAULTY_STEP, wrappers={0: [*ignore, "prlimit", limit]})
        verdict = self.check_attempt(series, outcome)
        print(f"{limit}{' ignored' if ignored_signal else ''}: {outcome}")
        if outcome.failure_was_told:
            self.check_nothing_left(series)
        self.check_next_save(series, verdict)
        count("saved all the same" if verdict == VALID else "refused" if outcome.saves else "killed")
        return outcome

    def test_the_length_of_files(self):
        def check(size):
            ignored = self.limited(f"--fsize={size}", "XFSZ")
            self.assertIn(ignored.codes, (["Io"], ["Ok"]), "no signal ends it: EFBIG")
            self.assertEqual(self.limited(f"--fsize={size}").codes, ignored.codes, "nor does it with SIGXFSZ")
            return ignored.codes[0]

        step = 512 if tools.all else 8192
        self.check_all(check, list(range(0, 65536, step)))
        self.assertEqual((check(0), check(1 << 20)), ("Io", "Ok"))

    def test_the_number_of_open_files(self):
        codes = [self.limited(f"--nofile={number}").codes for number in range(4, 12)]
        self.assertEqual(codes[-1], ["Ok"])
        self.assertIn(["Io"], codes)
        self.assertEqual(codes, sorted(codes, key=lambda code: (code == ["Ok"], code == ["Io"])), "and ever better")

    def test_the_size_of_memory(self):
        sizes = [kib * 1024 for kib in range(4096, 16384, 64 if tools.all else 2048)]
        self.check_all(lambda size: self.limited(f"--as={size}"), sizes)
        self.assertEqual(self.limited(f"--as={1 << 32}").codes, ["Ok"])


def cannot_run():
    if not shutil.which("prlimit"):
        return "no prlimit"
    return system_job.can_trace()


if __name__ == "__main__":
    system_job.main("errors", "Errors of system calls during a save", cannot_run)
