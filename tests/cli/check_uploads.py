#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ckpt clean gives up the unfinished uploads of attempts that were never committed, and no others."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/object_store"))
import stub_server  # noqa: E402

BLOB = "ab" * 16 + ".blob"
COMMITTED, ATTEMPT, ALONE = (f"step-000000000{n}00-2{n}2{n}2{n}2{n}" for n in (3, 4, 5))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckpt", required=True)
    parser.add_argument("--generator", required=True)
    arguments = parser.parse_args()
    server = stub_server.Server(("127.0.0.1", 0), stub_server.Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "AKTEST", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
                   "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ALLOW_HTTP": "true"}
    bucket = stub_server.BUCKET
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.generator, folder], check=True)
        bucket.objects = {f"run/{path.parent.name}/{path.name}": path.read_bytes()
                          for path in pathlib.Path(folder, "series").glob("*/*")}
    bucket.uploads = {name: (f"run/{name}/{BLOB}", {}) for name in (COMMITTED, ATTEMPT, ALONE)}
    bucket.uploads["notes"] = ("run/notes/data.bin", {})
    failures = []
    for options, left in (([], {COMMITTED, ATTEMPT, ALONE, "notes"}), (["--yes"], {COMMITTED, "notes"})):
        done = subprocess.run([arguments.ckpt, "clean", "--json", *options, "s3://bucket/run"], stdout=subprocess.PIPE,
                              env=environment, check=False)
        attempts = {load["name"]: load for load in json.loads(done.stdout)["attempts"]}
        said = {name: attempt["upload_count"] for name, attempt in attempts.items()}  # another program's is not
        removed = {name for name, attempt in attempts.items() if attempt["is_removed"]}
        if (done.returncode, said, removed, set(bucket.uploads)) != (
                0, dict.fromkeys((COMMITTED, ATTEMPT, ALONE), 1), {ATTEMPT, ALONE} - left, left):
            failures.append(options)
            print(f"FAILED: {options}: {done}, left {set(bucket.uploads)}")
        if "it has a marker" not in attempts[COMMITTED]["left"]:
            failures.append(f"why {COMMITTED} is left")
    if not {f"run/{name}/COMMIT" for name in (COMMITTED, ATTEMPT, ALONE)} <= set(bucket.objects):
        failures.append("void markers")
    print(f"{len(failures)} failures: {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
