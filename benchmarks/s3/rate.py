#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast a checkpoint is saved to SeaweedFS and loaded from there, beside obstore's put and get of the same bytes.

Usage: rate.py PROGRAM [--mib 512] [--rounds 5]    PROGRAM is bench_s3; the Python packages are requirements-servers.txt

Each round does all four, the two sides by turns; the ratio is that of the medians.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import obstore
from obstore.store import S3Store

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support/object_store"))
import servers  # noqa: E402

MIB = 1 << 20


def of_sealpoint(program, address, path, mib):
    done = subprocess.run([program, path, str(mib)], env={**os.environ, **servers.KEYS, "AWS_ENDPOINT_URL_S3": address},
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def of_obstore(address, key, data):
    store = S3Store("bucket", endpoint=address, access_key_id="testkey", secret_access_key="testsecret",
                    region="us-east-1", virtual_hosted_style_request=False, client_options={"allow_http": True})
    begin = time.perf_counter()
    obstore.put(store, key, data, use_multipart=True, chunk_size=32 * MIB, max_concurrency=64)
    put = time.perf_counter() - begin
    begin = time.perf_counter()
    step = 8 * MIB
    pieces = obstore.get_ranges(store, key, starts=list(range(0, len(data), step)), lengths=[step] * (len(data) // step),
                                coalesce=0)
    get = time.perf_counter() - begin
    assert sum(len(piece) for piece in pieces) == len(data)
    return {"save_s": put, "load_s": get}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    data = os.urandom(arguments.mib * MIB)
    ours, theirs = [], []
    with servers.seaweedfs(volumes=200) as server:
        address = server.address
        for number in range(arguments.rounds):
            sides = [lambda n=number: ours.append(of_sealpoint(arguments.program, address, f"s3://bucket/c{n}", arguments.mib)),
                     lambda n=number: theirs.append(of_obstore(address, f"o{n}", data))]
            for side in sides if number % 2 else reversed(sides):
                side()
    for what in ("save_s", "load_s"):
        mine, other = (statistics.median(each[what] for each in rows) for rows in (ours, theirs))
        print(f"{what[:4]}: Sealpoint {arguments.mib / mine:.0f} MiB/s, obstore {arguments.mib / other:.0f} MiB/s, "
              f"ratio {other / mine:.2f}")
    print(f"memory beyond the state: save {max(row['save_mib'] for row in ours)} MiB, "
          f"load {max(row['load_mib'] for row in ours)} MiB")


if __name__ == "__main__":
    main()
