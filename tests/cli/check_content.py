#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the commands that compare contents say of one state stored in many ways, and of others.

The second reader, which shares no code with them, says what is right, and numpy, whose numbers are in golden/numpy.json:
--numpy writes them, of the bytes that the second reader returns.
"""

import argparse
import array
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "readers/reference"))

from checks import Checks  # noqa: E402
from sealpoint_reference import content  # noqa: E402
from sealpoint_reference.directory import PathDirectory  # noqa: E402
from sealpoint_reference.load import Checkpoint  # noqa: E402

NUMPY = pathlib.Path(__file__).resolve().parent / "golden/numpy.json"
SAME = ("one", "grid", "four", "coded")
OTHERS = ("element", "nan", "renamed", "reshaped", "retyped", "fewer", "media", "object")


def check_digest(checks):
    document = checks.json("digest", "--long", *SAME, *OTHERS)
    said = {item["path"]: item["content"] for item in document["digests"]}
    # Pure Python hashes some MB/s: of the ways of storing, those that differ most.
    right = {name: content.checkpoint_digest(Checkpoint(PathDirectory(str(checks.folder / name))))
             for name in ("grid", "four", *OTHERS)}
    checks.expect("by the second reader", {name: said[name] for name in right} == right, (said, right))
    checks.expect("one state", len({said[name] for name in SAME}) == 1, said)
    checks.expect("other states", len(set(said.values())) == 1 + len(OTHERS), said)
    lines = checks.run("digest", "-j", "3", "one", "nan").stdout.splitlines()
    checks.expect("as sha256sum", lines == [f"{said[name]}  {name}" for name in ("one", "nan")], lines)
    some = {checks.run("digest", "--match", "layer.*", name).stdout.split()[0]
            for name in ("one", "four", "object", "fewer")}
    checks.expect("a selection", len(some) == 1 and not some & set(said.values()), some)
    missing = checks.json("digest", "missing", "one")
    checks.expect("missing", missing["exit_status"] == 4 and "error" in missing["digests"][0]
                  and missing["digests"][1]["content"] == said["one"], missing)


def check_fingerprints(checks):
    document = checks.json("digest", "--fingerprints", "--long", *SAME, *OTHERS)
    said = {item["path"]: item["fingerprint"] for item in document["digests"]}
    checks.expect("one state", len({said[name] for name in SAME}) == 1, said)
    checks.expect("objects do not count", said["object"] == said["media"] == said["one"], said)
    checks.expect("other tensors", len(set(said.values())) == 1 + len(OTHERS) - 2, said)
    checks.expect("of each tensor", all(tensor["fingerprint"].startswith("spf1:") for item in document["digests"]
                                        for tensor in item["tensors"]), document["digests"][0])
    report = checks.json("verify", "--fingerprints", "one")["reports"][0]
    checks.expect("a check of nothing says so", report["verdict"] == "committed"
                  and "tensors have no stored fingerprint" in report["notes"][0], report)
    refused = checks.run("verify", "--fingerprints", "--level", "structure", "one")
    checks.expect("needs the payload", refused.returncode == 64 and "--level full" in refused.stderr, refused)


def tensors_of(checks, name):
    return Checkpoint(PathDirectory(str(checks.folder / name)))


def numpy_values(checkpoint, name):
    import numpy

    tensor, data = checkpoint.tensors[name], checkpoint.tensor(name)
    if tensor.dtype == 11:
        return (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").astype("f8")
    return numpy.frombuffer(data, {5: "<i8", 12: "<f4", 13: "<f8"}[tensor.dtype]).astype("f8")


def numpy_stats(checkpoint, name):
    import numpy

    values = numpy_values(checkpoint, name)
    finite = values[numpy.isfinite(values)]
    exponents = numpy.frexp(numpy.abs(finite[finite != 0]))[1] - 1
    return {
        "value_count": values.size, "nan_count": int(numpy.isnan(values).sum()),
        "positive_infinity_count": int((values == numpy.inf).sum()),
        "negative_infinity_count": int((values == -numpy.inf).sum()), "zero_count": int((values == 0).sum()),
        "zero_tail_count": int(values.size - 1 - numpy.flatnonzero(values)[-1]), "min": finite.min(), "max": finite.max(),
        "mean": finite.mean(), "std": finite.std(), "l2": float(numpy.linalg.norm(finite)),
        "exponents": [[int(e), int(n)] for e, n in zip(*numpy.unique(exponents, return_counts=True))],
    }


def numpy_difference(first, second, name, chunk):
    """Relative norm and cosine of the chunks of `chunk` values that differ; a chunk of None is all."""
    import numpy

    a, b = numpy_values(first, name), numpy_values(second, name)
    differs = a.view("u8") != b.view("u8")
    read = numpy.repeat([part.any() for part in numpy.split(differs, range(chunk, a.size, chunk))], chunk)[:a.size]
    finite = numpy.isfinite(a) & numpy.isfinite(b) & read
    a_read, b_read = a[finite], b[finite]
    return {
        "changed_count": int(differs.sum()), "read_count": int(read.sum()), "max_abs": numpy.abs(b_read - a_read).max(),
        "l2": float(numpy.linalg.norm(b_read - a_read)),
        "relative_l2": float(numpy.linalg.norm(b_read - a_read) / numpy.linalg.norm(a_read)),
        "cosine": float(a_read @ b_read / (numpy.linalg.norm(a_read) * numpy.linalg.norm(b_read))),
        "new_nan_count": int((numpy.isnan(b) & ~numpy.isnan(a)).sum()),
        "new_infinity_count": int((numpy.isinf(b) & ~numpy.isinf(a)).sum()),
    }


def write_numpy(checks):
    one, other = tensors_of(checks, "one"), tensors_of(checks, "nan")
    names = [name for name, tensor in one.tensors.items() if tensor.dtype in (5, 11, 12, 13)]
    values = {
        "stats": {name: numpy_stats(one if name != "layer.w" else other, name) for name in names},
        # Chunks of 4 KiB.
        "diff": {"layer.w": numpy_difference(one, other, "layer.w", 1024),
                 "layer.b": numpy_difference(one, other, "layer.b", 2048)},
    }
    NUMPY.write_text(json.dumps(values, indent=1) + "\n")


def agrees(said, right):
    """Whether the numbers that are right are among those said, but for rounding."""
    return all(math.isclose(said[key], value, rel_tol=1e-12, abs_tol=1e-15) if isinstance(value, float)
               else said[key] == value for key, value in right.items())


def check_stats(checks):
    right = json.loads(NUMPY.read_text())["stats"]
    said = {check["name"]: check for check in checks.json("stats", "one")["tensors"]}
    said["layer.w"] = checks.json("stats", "--match", "layer.w", "nan")["tensors"][0]
    for name, numbers in right.items():
        checks.expect(f"stats of {name}", agrees(said[name], numbers), (said[name], numbers))
    # 448 is 126 in the bits of e4m3fn.
    checks.expect("fp8", said["q"]["saturated_count"] == 2 and said["q"]["max"] == 448, said["q"])
    for name in ("four", "grid"):
        # Threads do not matter, nor does how the bytes lie.
        checks.expect(f"stats of {name}", checks.json("stats", name) == checks.json("stats", "-j", "7", "one"))
    text = checks.run("stats", "one").stdout
    checks.expect("a long tail", "note: moment: the last 5192 values of 8192 are zero" in text, text)
    for name, options, status in (("nan", [], 0), ("nan", ["--fail-nonfinite"], 1), ("one", ["--fail-nonfinite"], 0)):
        checks.expect(f"{name} {options}", checks.run("stats", *options, name).returncode == status)
    below = {check["name"]: check for check in checks.json("stats", "--depth", "1", "one")["prefixes"]}["layer"]
    both = [said["layer.b"], checks.json("stats", "--match", "layer.w", "one")["tensors"][0]]
    checks.expect("a prefix", below["tensor_count"] == 2 and below["value_count"] == sum(x["value_count"] for x in both)
                  and math.isclose(below["l2"], math.hypot(*(x["l2"] for x in both))), below)


def check_diff(checks):
    for name in SAME:
        document = checks.json("diff", "one", name)
        checks.expect(f"diff one {name}", document["exit_status"] == 0 and document["is_same"]
                      and not any(item["change"] != "none" for item in document["tensors"]), document)
        # Digests tell where cuts are the same, whatever the codec.
        checks.expect(f"payload of {name}", (document["payload_bytes_read"] == 0) == (name in ("one", "coded")), document)
    for name, changes in (
        ("element", {"layer.w": "bytes"}), ("nan", {"layer.w": "bytes", "layer.b": "bytes"}),
        ("renamed", {"layer.w": "removed", "model.layer.w": "added"}), ("reshaped", {"layer.w": "shape"}),
        ("retyped", {"layer.w": "dtype"}), ("fewer", {"unused": "removed"}), ("media", {"rng": "media_type"}),
        ("object", {"arguments": "bytes"}),
    ):
        for first in ("one", "four"):
            document = checks.json("diff", first, name)
            said = {(item.get("first") or item["second"])["name"]: item["change"] for item in document["tensors"]
                    if item["change"] != "none"} | {item["name"]: item["change"] for item in document["objects"]}
            checks.expect(f"diff {first} {name}", said == changes and document["exit_status"] == 1, document)
    renamed = checks.json("diff", "--map", "^layer[.]w=model.$&", "one", "renamed")
    checks.expect("--map", renamed["exit_status"] == 0, renamed)
    for map_ in ("layer", "(=x", "^.*$=count"):
        checks.expect(f"--map {map_}", checks.run("diff", "--map", map_, "one", "one").returncode == 64)
    right = json.loads(NUMPY.read_text())["diff"]
    whole = {"changed_count", "max_abs", "l2", "new_nan_count", "new_infinity_count"}
    for first, keys in (("one", set(right["layer.w"])), ("grid", whole)):
        for check in checks.json("diff", "--numeric", "-j", "3", first, "nan")["tensors"]:
            if check["change"] == "bytes":
                numbers = {key: right[check["first"]["name"]][key] for key in keys}
                checks.expect(f"numeric, {first}", agrees(check["numeric"], numbers), (check, numbers))
    facts = {check["name"] for check in checks.json("diff", "one", "grid")["facts"]}
    checks.expect("facts", facts == {"mesh", "provenance who"}, facts)
    checks.expect("missing", checks.run("diff", "one", "missing").returncode == 4)


def check_what_is_read(checks, generator):
    """One element in 17 tensors of 25 MiB differs: what is read of both."""
    subprocess.run([generator, checks.folder, "16"], check=True)
    for options, share in (([], 0.01), (["--numeric"], 0.05)):
        document = checks.json("diff", *options, "large/a", "large/b")
        read = document["table_bytes_read"] + document["payload_bytes_read"]
        checks.expect(f"read {options}", 0 < read < share * (50 << 20), document)
        checks.expect(f"one of 17 {options}", document["equal_tensor_count"] == 16, document)


def check_pieces(checks):
    """A tensor that is read in several pieces, by several threads."""
    data = tensors_of(checks, "large/a").tensor("big")
    right = content.tensor_digest(b"big", 12, 4, (2304, 1024), data).hex()
    said = checks.json("digest", "--long", "-j", "4", "--match", "big", "large/a")["digests"][0]["tensors"]
    checks.expect("digest of pieces", said == [{"name": "big", "digest": right}], (said, right))
    said = checks.json("stats", "-j", "4", "--match", "big", "large/a")["tensors"][0]
    values = array.array("f", data)
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    checks.expect("statistics of pieces", said["zero_tail_count"] == len(values) - 1_500_000
                  and agrees(said, {"mean": mean, "std": deviation}), (said, mean, deviation))


def check_made(checks):
    """What is made of a state is the same state, and a part of it the part."""
    form = ["--compress", "zstd", "--chunk", "8KiB", "--blobs", "3", "--blob-size", "1MiB", "-j", "2", "--memory", "8MiB"]
    for i, words in enumerate((
        ["copy", "four"], ["copy", *form, "grid"], ["merge", "one", "grid", "coded", "--accumulate", "f64", "--out"],
        ["merge", "--weights", "1,0", "--first-objects", "--step", "9", "one", "element", "--out"],
        ["merge", "--union", *form, "one", "four", "--out"], ["repair", "grid", "--from", "four", "--out"],
    )):
        path = f"made/{i}"
        document = checks.json(*words, path)
        digests = checks.json("digest", "one", path)["digests"]
        checks.expect(f"{words}", document["path"] == path and len({digest["content"] for digest in digests}) == 1, digests)
    stored = checks.run("ls", "--long", "made/1").stdout
    checks.expect("form", re.search(r"^blobs +3,", stored, re.M) and "zstd" in stored, stored)
    checks.expect("step", re.search(r"^step +9$", checks.run("ls", "made/3").stdout, re.M))
    for words, right in (
        (["copy", "--drop", "layer.?", "--drop", "rng", "grid", "made/part"], {"layer.w", "layer.b", "rng"}),
        (["thin", "--drop", "moment", "--to", "made/thin", "grid"], {"moment"}),
    ):
        report = checks.json("diff", "grid", checks.json(*words)["path"])
        gone = {item["first"]["name"] for item in report["tensors"]} | {item["name"] for item in report["objects"]}
        checks.expect(f"{words}", gone == right, report)


def check_damage(checks):
    blob = max((checks.folder / "one").glob("*.blob"), key=lambda path: path.stat().st_size)
    data = bytearray(blob.read_bytes())
    data[5000] ^= 1
    blob.write_bytes(data)
    # Cut alike: nobody reads the damaged payload.
    checks.expect("payload is not read", checks.run("diff", "one", "coded").returncode == 0)
    # That bytes are corrupt is not the answer 1 of diff and stats.
    for words, status in ((("digest", "one"), 1), (("diff", "one", "grid"), 4), (("stats", "one"), 4)):
        done = checks.run(*words)
        said = (done.returncode, done.stdout, "R-CHK-02" in done.stderr)
        checks.expect(f"{words} of damage", said == (status, "", True), done)


def check_text(checks):
    """The values in the text of the specification."""
    rows = dict(re.findall(r"^\| (\S+ ?\S*) .*\| `(spc1:\w+)` \|$", (ROOT / "spec/content-digest.md").read_text(), re.M))
    tensor = content.tensor_digest(b"w", 12, 4, (2,), bytes.fromhex("0000803f00000040"))
    item = content.object_digest(b"rng", b"text/plain", b"abc")
    right = {"no tensor,": content.content_digest({}, {}), "tensor `w`,": content.content_digest({b"w": tensor}, {}),
             "object `rng`,": content.content_digest({}, {b"rng": item})}
    checks.expect("values of the text", rows == right, (rows, right))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckpt", required=True, type=pathlib.Path)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--numpy", action="store_true", help="write golden/numpy.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.generator, folder], check=True)
        checks = Checks(arguments.ckpt, pathlib.Path(folder))
        if arguments.numpy:
            return write_numpy(checks)
        check_text(checks)
        check_digest(checks)
        check_fingerprints(checks)
        check_diff(checks)
        check_stats(checks)
        check_what_is_read(checks, arguments.generator)
        check_pieces(checks)
        check_made(checks)
        check_damage(checks)
    print(f"{checks.failures} failures")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
