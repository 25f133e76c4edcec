# SPDX-License-Identifier: Apache-2.0
"""The test programs of a build, their tests, and the protective steps that each test reaches."""

import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

KINDS = ("unit", "misuse", "crash", "conformance", "property", "fault", "background", "damage", "cuda", "s3")
WHOLE = "(whole)"  # stands for the one test of a program that is not one of GoogleTest
LIMIT_SECONDS = 30  # of a processor, that tests are the same ones on a busy machine
FLOOR_SECONDS = 20.0


def limit_process(processor_seconds):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, resource.RLIM_INFINITY))


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Program:
    """A test executable; `tests` maps a test to (seconds, names of the steps that it reaches, seconds of a processor)."""

    def __init__(self, name, path, arguments, environment):
        self.name, self.path, self.arguments, self.environment = name, path, arguments, environment
        self.tests = {}

    def run(self, tests, seconds, processor_seconds=resource.RLIM_INFINITY, **variables):
        """Runs these tests until the first failure; (exit status or None if they take too long, seconds of a processor)."""
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            environment = {**os.environ, **self.environment, **variables, "TMPDIR": folder}
            environment["RC_PARAMS"] = f"seed=1 {self.environment.get('RC_PARAMS', '')}"
            environment.pop("SEALPOINT_RESULTS", None)
            command = [str(self.path)]
            if tests != [WHOLE]:
                command += ["--gtest_fail_fast", "--gtest_brief=1", "--gtest_filter=" + ":".join(tests)]
            process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       start_new_session=True, preexec_fn=lambda: limit_process(processor_seconds))
            is_late = threading.Event()

            def stop():
                is_late.set()
                kill_group(process.pid)

            timer = threading.Timer(seconds, stop)
            timer.start()
            try:
                _, status, usage = os.wait4(process.pid, 0)  # with the children that it waited for
            finally:
                timer.cancel()
                kill_group(process.pid)  # its children too
            process.returncode = os.waitstatus_to_exitcode(status)
            too_long = is_late.is_set() or process.returncode == -signal.SIGXCPU
            return None if too_long else process.returncode, usage.ru_utime + usage.ru_stime

    def list_tests(self):
        listed = subprocess.run([self.path, *self.arguments, "--gtest_list_tests"], capture_output=True, text=True,
                                timeout=30, stdin=subprocess.DEVNULL, env=dict(os.environ, **self.environment),
                                preexec_fn=lambda: limit_process(resource.RLIM_INFINITY))
        found, suite = [], ""
        for line in listed.stdout.splitlines() if listed.returncode == 0 else []:
            name = line.split("#")[0].rstrip()
            if line.startswith("  ") and suite:
                found.append(suite + name.strip())
            elif name.endswith("."):
                suite = name
        return found or [WHOLE]

    def record(self, test):
        """Runs one test with nothing taken out; (exit status, seconds, names of the steps, seconds of a processor)."""
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            reached = pathlib.Path(folder) / "reached"
            started = time.monotonic()
            status, cpu = self.run([test], 4 * LIMIT_SECONDS, LIMIT_SECONDS, SEALPOINT_MUTANTS_REACHED=str(reached))
            seconds = time.monotonic() - started
            names = sorted(set(reached.read_text().split())) if reached.exists() else []
        return status, seconds, names, cpu


def find_programs(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True)
    programs = []
    for test in json.loads(listed.stdout)["tests"]:
        path, *arguments = test.get("command", [""])
        is_ours = all(argument.startswith("--gtest_filter=") for argument in arguments)
        if test["name"].split(".")[0] not in KINDS or not is_ours or not pathlib.Path(path).is_file():
            continue
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
        programs.append(Program(test["name"], pathlib.Path(path), arguments, environment))
    return programs


def load_map(program, kept):
    """Takes the tests of a program from an earlier record of the same file."""
    state = program.path.stat()
    stamp = f"{state.st_mtime_ns}-{state.st_size}-with-processor"
    entry = kept.get(program.name)
    if entry and entry["stamp"] == stamp:
        program.tests = {test: tuple(noted) for test, noted in entry["tests"].items()}
        return None
    return stamp


def record_programs(programs, path, jobs):
    """Fills in `tests` of all programs; returns the tests that fail although nothing is taken out."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    failed = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        stale = [(program, stamp) for program in programs if (stamp := load_map(program, kept))]
        runs = [(program, test, pool.submit(program.record, test))
                for program, _ in stale for test in program.list_tests()]
        for program, test, run in runs:
            status, seconds, names, cpu = run.result()
            if status is None:
                print(f"not used, takes too long: {program.name}: {test}", flush=True)
                continue
            if status != 0:
                failed.append((program.name, test))
            program.tests[test] = (round(seconds, 3), names, round(cpu, 3))
    for program, stamp in stale:
        if program.name not in dict(failed):
            kept[program.name] = {"stamp": stamp, "tests": program.tests}
    path.write_text(json.dumps(kept))
    return [": ".join(names) for names in failed]


def remove_leftovers():
    for folder in pathlib.Path(tempfile.gettempdir()).glob("mutants-*"):
        shutil.rmtree(folder, ignore_errors=True)
