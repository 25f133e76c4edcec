# SPDX-License-Identifier: Apache-2.0
"""Saves to file systems that are full, without inodes, read-only or not writable: small real ones, in a namespace.

Usage: see system_job.py. Short form: every number of free pages up to the need, for a disk that was full before and one
that fills up in the phases in which blobs, index and marker are written. --all: for each phase, and larger blobs.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import system_job
from system_job import FAULTY_STEP, NOTHING, VALID, call_faults, count, run, save, tools

IN_NAMESPACE = "SEALPOINT_IN_NAMESPACE"
FILLER = pathlib.Path(__file__).with_name("fill_disk.py")
PHASES = ["write blobs", "sync blobs", "write index"]
ALL_PHASES = ["preflight", "plan", *PHASES, "agree", "check blobs", "publish", "verdict"]


class SpaceTest(system_job.SystemTest):
    def setUp(self):
        self.disk = self.folder / "disk"
        self.disk.mkdir(exist_ok=True)
        self.mounted = False

    def tearDown(self):
        self.unmount()

    def unmount(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.disk], check=True)
        self.mounted = False

    def mount(self, options="size=1m"):
        """A new file system that holds a series with one committed step."""
        self.unmount()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.disk], check=True)
        self.mounted = True
        series = self.disk / "series"
        shutil.copytree(self.template, series)
        return series

    def remount(self, options):
        # With the source named, mount does not add the owner, which a user namespace may not name.
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"remount,{options}", "tmpfs", self.disk], check=True)

    def fill(self, pages):
        subprocess.run([sys.executable, FILLER, self.disk / "filler", str(pages)], check=True)

    def free(self):
        space = os.statvfs(self.disk)
        return space.f_bavail, space.f_ffree

    def check_space_is_returned(self, series, before):
        """After a failure that all ranks know of."""
        self.check_nothing_left(series)
        (self.disk / "filler").unlink(missing_ok=True)
        self.assertEqual(self.free(), before)

    def save_and_judge(self, series, ranks=1, arguments=(), **options):
        before = self.free()
        outcome = save(series, FAULTY_STEP, ranks, arguments=arguments, **options)
        self.assertEqual((outcome.status, len(outcome.saves)), (0, ranks), outcome.text)
        verdict = self.check_attempt(series, outcome)  # the old one can be read on a full disk
        if outcome.codes[0] != "Ok":
            self.assertEqual(set(outcome.codes), {"NoSpace"}, outcome.text)
            self.assertEqual(verdict, NOTHING)
            filled = (self.disk / "filler").exists()
            self.check_space_is_returned(series, before if not filled else self.free_without_filler)
        (self.disk / "filler").unlink(missing_ok=True)
        self.remount("size=1m,nr_inodes=1k")
        self.check_next_save(series, verdict)
        count("saved" if verdict == VALID else "refused")
        return outcome

    def sweep(self, one_size, unit="pages"):
        """one_size(what is free) for ever more, until the save succeeds twice; the messages of the failures."""
        reported, successes, free = [], 0, 0
        while successes < 2:
            outcome = one_size(free)
            self.assertLess(free, 1000)
            if outcome.codes[0] == "Ok":
                successes += 1
            else:
                self.assertEqual(successes, 0, "less space was enough")
                reported.append(outcome.saves[0])
                print(f"{free} free {unit}: {reported[-1]['code']} {reported[-1]['message']}"
                      f" ({os.path.basename(reported[-1]['path'])[-24:]})")
            free += 1
        print(f"{free - 2} free {unit}: enough")
        return reported

    def test_a_disk_that_is_full_before(self):
        def one_size(pages):
            series = self.mount()
            self.free_without_filler = self.free()
            self.fill(pages)
            return self.save_and_judge(series)

        reported = self.sweep(one_size)
        self.assertIn("R-CMT-08", [item["rule"] for item in reported], "the early answer")

    def fills_up(self, phase, pages, ranks=1, rank=0, rows=24):
        """The disk is filled by somebody else when the phase begins, behind the check of the preflight."""
        series = self.mount()
        self.free_without_filler = self.free()
        fill = f"{sys.executable} -S {FILLER} {self.disk}/filler {pages}"
        arguments = ["--at-phase", phase, "--on-rank", rank, "--run", fill, "--rows", rows]
        return self.save_and_judge(series, ranks, arguments)

    def test_a_disk_that_fills_up_during_the_save(self):
        places = set()
        for phase in ALL_PHASES if tools.all else PHASES:
            for rows in (24, 90) if tools.all else (24,):
                print(f"filled when the phase {phase} begins, {rows} rows")
                reported = self.sweep(lambda pages, phase=phase, rows=rows: self.fills_up(phase, pages, rows=rows))
                places |= {os.path.splitext(item["path"])[1] for item in reported}
        self.assertLessEqual({".blob", ".index", ".commit"}, places)

    def test_a_disk_that_fills_up_under_ranks(self):
        self.needs_mpi()
        for pages in range(0, 40) if tools.all else (0, 9):
            outcome = self.fills_up("write blobs", pages, ranks=3, rank=1)
            print(f"{pages} free pages for 3 ranks: {outcome}")
            if outcome.codes[0] != "Ok":
                self.check_same_failure(outcome, 3)

    def test_without_inodes(self):
        self.mount()
        space = os.statvfs(self.disk)
        used = space.f_files - space.f_ffree

        def one_size(inodes):
            series = self.mount(f"size=1m,nr_inodes={used + inodes}")
            self.free_without_filler = self.free()
            return self.save_and_judge(series)

        self.sweep(one_size, "inodes")

    def test_inodes_that_run_out_during_the_save(self):
        def one_size(inodes):
            series = self.mount("size=1m,nr_inodes=32")
            self.free_without_filler = self.free()
            filler = self.disk / "filler"
            fill = (f"mkdir {filler}.d; i=0; while touch {filler}.d/$i 2>/dev/null; do i=$((i+1)); done; "
                    f"i=0; while [ $i -lt {inodes} ]; do rm {filler}.d/$i; i=$((i+1)); done")
            outcome = save(series, FAULTY_STEP, arguments=["--at-phase", "write blobs", "--on-rank", 0, "--run", fill])
            verdict = self.check_attempt(series, outcome)
            shutil.rmtree(f"{filler}.d")
            if outcome.codes != ["Ok"]:
                self.assertEqual((outcome.codes, verdict), (["NoSpace"], NOTHING), outcome.text)
                self.check_space_is_returned(series, self.free_without_filler)
            self.check_next_save(series, verdict)
            count("saved" if verdict == VALID else "refused")
            return outcome

        reported = self.sweep(one_size, "inodes")
        places = [os.path.basename(item["path"]).rpartition(".")[2] for item in reported]
        self.assertEqual(places[:3], ["blob", "index", "commit"])
        self.assertIn(places[3:], ([], ["COMMIT"]), "on tmpfs a second name takes an inode as well")

    def check_refused(self, series, code, **options):
        outcome = save(series, FAULTY_STEP, **options)
        self.assertEqual(outcome.codes, [code], outcome.text)
        self.assertEqual(self.check_attempt(series, outcome), NOTHING)
        self.check_nothing_left(series)
        print(f"{outcome}: {outcome.saves[0]['message']}")
        count("refused")

    def test_a_read_only_file_system(self):
        series = self.mount()
        self.remount("ro")
        self.check_refused(series, "Io")
        self.remount("rw")
        self.check_next_save(series, NOTHING)

    def test_a_file_system_that_becomes_read_only(self):
        """At every call that changes something: whatever was reported is true."""
        log = self.folder / "log"
        series = self.mount()
        save(series, FAULTY_STEP, wrappers={0: call_faults(series, "--log", log)})
        total = len(log.read_text().splitlines())
        for number in range(1, total + 1, 1 if tools.all else 4):
            series = self.mount()
            remount = f"run:mount -o remount,ro,bind {self.disk} 2>/dev/null || touch {self.folder}/busy"
            outcome = save(series, FAULTY_STEP, wrappers={0: call_faults(series, "--at", number, "--do", remount)})
            if (self.folder / "busy").exists():  # a file is open for writing: the kernel refuses
                (self.folder / "busy").unlink()
                self.assertEqual(outcome.codes, ["Ok"], outcome.text)
                continue
            self.remount("rw,bind")
            verdict = self.check_attempt(series, outcome)
            print(f"read-only from call {number} on: {outcome}")
            self.check_next_save(series, verdict)
            count("saved" if verdict == VALID else "refused")

    def test_a_directory_without_permission(self):
        if os.environ[IN_NAMESPACE] != "root" or not shutil.which("setpriv"):
            self.skipTest("another user is needed")
        series = self.mount()
        for path in [self.folder, *series.rglob("*"), series]:
            path.chmod(0o755)
        nobody = {0: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]}
        self.check_refused(series, "Io", wrappers=nobody)

    def test_a_file_system_from_which_nothing_may_be_run(self):
        series = self.mount("size=1m,noexec,nosuid,nodev")
        outcome = save(series, FAULTY_STEP)
        self.assertEqual(outcome.codes, ["Ok"], outcome.text)
        self.check_next_save(series, self.check_attempt(series, outcome))
        count("saved")


def enter_namespace():
    """Runs this program again in a namespace in which it may mount; the mounts end with it."""
    if os.environ.get(IN_NAMESPACE):
        return ""
    for options, name in ((["-m"], "root"), (["-Urm"], "user")):
        trial = ["unshare", *options, "sh", "-c", 'd=$(mktemp -d) && mount -t tmpfs tmpfs "$d"; s=$?; umount "$d"; '
                 'rmdir "$d"; exit $s']
        if shutil.which("unshare") and run(trial).returncode == 0:
            os.environ[IN_NAMESPACE] = name
            os.execvp("unshare", ["unshare", *options, sys.executable, *sys.argv])
    return "mounting is not allowed, not even in a namespace"


if __name__ == "__main__":
    system_job.main("space", "Saves on full and read-only file systems", enter_namespace)
