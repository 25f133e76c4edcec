# SPDX-License-Identifier: Apache-2.0
"""Power cuts: a real journalling file system on a loop device is shut down without its log, and mounted again.

Usage: see system_job.py. Short form: ext4, at some calls of a save and after it. --all: ext4, xfs and btrfs where their
mkfs is there, at every call, before and after it, with data=ordered and data=writeback, and at random times.
The cut is the ioctl FS_IOC_GOINGDOWN with NOLOGFLUSH: what is not on the device is lost. Needs root.
"""
import fcntl
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

import system_job
from system_job import CORRUPT, FAULTY_STEP, INCOMPLETE, NOTHING, OLD_STEP, UNCOMMITTED, VALID
from system_job import Outcome, call_faults, count, job, read_log, run, save, tools, verify

IN_NAMESPACE = "SEALPOINT_IN_NAMESPACE"
GOING_DOWN = 0x8004587D  # _IOR('X', 125, __u32)
WITHOUT_LOG = 2
MAKE = {
    "ext4": (["mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=4"], 24),
    "xfs": (["mkfs.xfs", "-q", "-f"], 320),
    "btrfs": (["mkfs.btrfs", "-q", "-f"], 160),
}
CUT = ("import fcntl, os, struct, sys; "
       f"fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), {GOING_DOWN}, struct.pack('I', {WITHOUT_LOG}))")
RANDOM_CUTS = 100


def shell_quoted(words):
    return " ".join("'" + str(word).replace("'", "'\\''") + "'" for word in words)


class Disk:
    """An image with a file system that holds a series with one durable step; each mount is of a fresh copy."""

    def __init__(self, folder, kind, options="defaults"):
        self.folder, self.kind, self.options = folder, kind, options
        self.place = folder / "disk"
        self.place.mkdir(exist_ok=True)
        make, mebibytes = MAKE[kind]
        self.pristine, self.image = folder / f"{kind}.pristine", folder / f"{kind}.image"
        with open(self.pristine, "wb") as image:
            image.truncate(mebibytes << 20)
        subprocess.run([*make, self.pristine], check=True, stdout=subprocess.DEVNULL)
        self.mount(self.pristine)
        (self.place / "series").mkdir()
        done = save(self.place / "series", OLD_STEP)
        assert done.codes == ["Ok"], done.text
        self.unmount()

    def mount(self, image):
        subprocess.run(["mount", "-t", self.kind, "-o", f"loop,{self.options}", image, self.place], check=True)

    def unmount(self):
        subprocess.run(["umount", self.place], check=True)

    def fresh(self):
        while os.path.ismount(self.place):  # a case that failed
            self.unmount()
        subprocess.run(["cp", "--sparse=always", self.pristine, self.image], check=True)
        self.mount(self.image)
        return self.place / "series"

    def cut(self):
        place = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, GOING_DOWN, struct.pack("I", WITHOUT_LOG))
        finally:
            os.close(place)

    def can_be_cut(self):
        self.fresh()
        try:
            self.cut()
        except OSError:
            return False
        finally:
            self.unmount()
        return True

    def cut_command(self):
        return shell_quoted([sys.executable, "-S", "-c", CUT, self.place])

    def mount_again(self):
        self.unmount()
        self.mount(self.image)


class PowerCutTest(system_job.SystemTest):
    def setUp(self):
        self.disk = None

    def tearDown(self):
        if self.disk and os.path.ismount(self.disk.place):
            subprocess.run(["umount", "-l", self.disk.place], check=False)

    def disks(self):
        """Each file system whose mkfs is there and that this kernel mounts."""
        kinds = ["ext4", "xfs", "btrfs"] if tools.all else ["ext4"]
        for kind in kinds:
            for options in ["defaults", "data=writeback"] if tools.all and kind == "ext4" else ["defaults"]:
                if not shutil.which(MAKE[kind][0][0]):
                    print(f"{kind}: skipped, there is no {MAKE[kind][0][0]}")
                    continue
                self.disk = Disk(self.folder, kind, options)
                if not self.disk.can_be_cut():
                    print(f"{kind}: skipped, this kernel cannot shut it down")
                    continue
                yield f"{kind} {options}"

    def look_after(self, outcome, what):
        """Mounts again and checks what is there."""
        self.disk.mount_again()
        series = self.disk.place / "series"
        verdict = self.check_attempt(series, outcome)
        print(f"{what}: {outcome}; {'committed' if verdict == VALID else 'not committed'}")
        self.check_next_save(series, verdict)
        self.disk.unmount()
        count("committed" if verdict == VALID else "not committed")
        return verdict

    def trace(self):
        series = self.disk.fresh()
        log = self.folder / "log"
        done = save(series, FAULTY_STEP, wrappers={0: call_faults(series, "--log", log)})
        self.assertEqual(done.codes, ["Ok"], done.text)
        self.disk.unmount()
        return read_log(log)

    def ends(self, what):
        """Whether the saver ends with the power, as real ones do, or runs on and gets errors. Only ext4 gives them: an
        fsync of a directory of xfs succeeds after the cut."""
        return [True, False] if tools.all and what.startswith("ext4") else [what.startswith("xfs")]

    def cut_at(self, number, call, what, ends):
        series = self.disk.fresh()
        fault = f"{'last' if ends else 'run'}:{self.disk.cut_command()}"
        outcome = save(series, FAULTY_STEP, wrappers={0: call_faults(series, "--at", number, "--do", fault)})
        self.assertEqual((outcome.status, len(outcome.codes)), (-signal.SIGKILL, 0) if ends else (0, 1), outcome.text)
        return self.look_after(outcome, f"{what}, power cut before call {number} ({call[0]} {call[1]})")

    def test_before_each_call(self):
        for what in self.disks():
            calls = self.trace()
            published = calls.index(("linkat", "COMMIT")) + 1
            # The short form: all from the last sync before the publication on, and every seventh before.
            numbers = [n for n in range(1, len(calls) + 1) if tools.all or n >= published - 1 or n % 7 == 0]
            for number, ends in [(number, ends) for number in numbers for ends in self.ends(what)]:
                with self.subTest(disk=what, call=number, ends=ends):
                    verdict = self.cut_at(number, calls[number - 1], what, ends)
                    if number <= published:
                        self.assertNotEqual(verdict, VALID)
                    if number > published + 1:  # after the sync behind the publication
                        self.assertEqual(verdict, VALID)

    def test_right_after_success_was_told(self):
        for what in self.disks():
            for _ in range(20 if tools.all else 2):
                series = self.disk.fresh()
                outcome = save(series, FAULTY_STEP)
                self.disk.cut()
                self.assertEqual(outcome.codes, ["Ok"], outcome.text)
                self.assertEqual(self.look_after(outcome, f"{what}, power cut after success"), VALID)

    def test_ranks(self):
        """The power is cut while three ranks write, and after their success was reported."""
        self.needs_mpi()
        for what in self.disks():
            for phase, rank in (("write blobs", 1), ("agree", 2), ("publish", 0), ("verdict", 2)):
                if not tools.all and phase != "publish":
                    continue
                series = self.disk.fresh()
                ends = self.ends(what)[0]
                command = self.disk.cut_command() + ("; kill -9 $PPID" if ends else "")
                cut = ["--at-phase", phase, "--on-rank", rank, "--run", command]
                outcome = save(series, FAULTY_STEP, 3, arguments=cut)
                self.assertTrue(ends or len(outcome.saves) == 3, outcome.text)
                outcome.saves = [] if ends else outcome.saves  # what was reported without power was not reported
                self.look_after(outcome, f"{what}, power cut in {phase} of rank {rank} of 3")

    def test_at_random_times(self):
        """Of many saves in a row a prefix is there, with the last one whose success was reported."""
        chance = random.Random(7)
        for what in self.disks():
            for number in range(RANDOM_CUTS if tools.all else 2):
                self.cut_during_many_saves(chance.uniform(0.01, 0.3), f"{what}, random cut {number}")

    def cut_during_many_saves(self, seconds, what):
        series = self.disk.fresh()
        output = self.folder / "output"
        steps = ",".join(str(step) for step in range(FAULTY_STEP, 60))
        with open(output, "w") as file:
            saver = subprocess.Popen([str(part) for part in job(1, ["--series", series, "--save", steps])], stdout=file)
        time.sleep(seconds)
        self.disk.cut()
        saver.wait(60)
        reported = Outcome(subprocess.CompletedProcess([], 0, output.read_text(), ""))
        self.disk.mount_again()
        status, report = verify("--series", series)
        self.assertEqual(status, VALID, report)
        committed = sorted(item["step"] for item in report["reports"] if item["verdict"] == "committed")
        self.assertEqual(committed, list(range(OLD_STEP, OLD_STEP + len(committed))))
        last_reported = max([item["step"] for item in reported.saves if item["code"] == "Ok"], default=OLD_STEP)
        self.assertIn(committed[-1] - last_reported, (0, 1), "what was reported, and at most the one under way")
        print(f"{what} after {seconds:.2f} s: {last_reported} steps reported, {committed[-1]} there")
        next_one = save(series, 100, arguments=["--check"])
        self.assertEqual((next_one.status, next_one.codes), (0, ["Ok"]), next_one.text)
        self.assertEqual(set(next_one.checks.values()), {""})
        self.disk.unmount()
        count("random cuts")

    def test_syncs_that_lie(self):
        """A device that loses data after acknowledging it: the reader refuses what is not whole, and returns no wrong byte."""
        for what in self.disks():
            syncs = [n for n, call in enumerate(self.trace(), start=1) if call[0] == "fsync"]
            cases = [["--calls", "fsync", "--at", 1, "--and-later"]]
            cases += [["--at", n] for n in (syncs if tools.all else syncs[-4:])]
            verdicts = []
            for case in cases:
                series = self.disk.fresh()
                outcome = save(series, FAULTY_STEP, wrappers={0: call_faults(series, *case, "--do", "errno:0")})
                self.disk.cut()
                self.assertEqual(outcome.codes, ["Ok"], outcome.text)
                self.disk.mount_again()
                attempt = self.directory_of(series, FAULTY_STEP)
                verdicts.append(verify(attempt)[0] if attempt else NOTHING)
                self.assertIn(verdicts[-1], (VALID, CORRUPT, UNCOMMITTED, NOTHING, INCOMPLETE))
                print(f"{what}, lying sync {case[-1]} and power cut: ckpt verify says {verdicts[-1]}")
                self.assertEqual(verify(self.directory_of(series, OLD_STEP))[0], VALID)
                self.disk.unmount()
                count("lying syncs")
            self.assertNotEqual(verdicts[0], VALID, "the cut loses what was not synced")


def enter_namespace():
    """Runs this program again in a mount namespace, so that its mounts end with it."""
    if os.environ.get(IN_NAMESPACE):
        return ""
    if os.geteuid() != 0:
        return "only root may mount a loop device"
    if not shutil.which("mkfs.ext4") or not shutil.which("unshare"):
        return "no mkfs.ext4 or no unshare"
    trial = pathlib.Path(__file__).with_name("try_loop.sh")
    done = run(["unshare", "-m", "sh", trial])
    if done.returncode != 0:
        return "no loop device can be mounted, or not be shut down: " + done.stderr.strip()
    os.environ[IN_NAMESPACE] = "root"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    return ""


if __name__ == "__main__":
    system_job.main("power-cut", "Power cuts of a file system under a save", enter_namespace)
