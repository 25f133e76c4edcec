# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/guides/convert.md are run as they stand, on checkpoints of the names that they have."""

import hashlib
import importlib
import os
import pathlib
import re
import shlex
import sys

import pytest
import sealpoint
import sealpoint.interop
from conftest import command, noise, raw
from convert_states import contents, load_safetensors
from sealpoint.__main__ import main
from sealpoint.interop import convert

PAGE = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "docs/guides/convert.md")


def run(line):
    program, *words = shlex.split(line)
    assert program == "ckpt"
    assert command(*words)[0] == 0, line


def make_dcp(path):
    tensors = {
        "model.layers.0.w": noise((4, 6), "f4"),
        "model.b": noise((6,), "f4"),
        "optimizer.exp_avg": noise((4, 6), "f4"),
    }
    sealpoint.save(tensors, f"{path}-source")
    convert(f"{path}-source", path, to="dcp")


def make_megatron(path):
    """Two layers of 16 numbers, 4 heads in 2 groups, 64 words of which 60 are used."""
    shapes = {
        "embedding.word_embeddings.weight": (64, 16), "output_layer.weight": (64, 16),
        "decoder.final_layernorm.weight": (16,),
        "decoder.layers.input_layernorm.weight": (2, 16), "decoder.layers.pre_mlp_layernorm.weight": (2, 16),
        "decoder.layers.self_attention.linear_qkv.weight": (2, 32, 16),
        "decoder.layers.self_attention.linear_proj.weight": (2, 16, 16), "decoder.layers.mlp.linear_fc1.weight": (2, 64, 16),
        "decoder.layers.mlp.linear_fc2.weight": (2, 16, 32), "optimizer.state.exp_avg.output_layer.weight": (64, 16),
        "rng_state/shard_0_1": (3,),
    }  # fmt: skip
    arrays = {name: noise(shape, "f4", seed=i) for i, (name, shape) in enumerate(shapes.items())}
    sealpoint.save(arrays, f"{path}-source", step=7)
    pathlib.Path(path).mkdir()
    convert(f"{path}-source", f"{path}/iter_0000007", to="megatron")
    pathlib.Path(path, "latest_checkpointed_iteration.txt").write_text("7")
    return arrays


def test_the_page(unpack, tmp_path, monkeypatch, capsys):
    page = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    make_dcp("dcp-checkpoint")
    arrays = make_megatron("megatron-run")
    (unpack("gguf_0.19.0") / "one/one.gguf").rename("model-Q4_K_M.gguf")
    (rules,) = re.findall(r"```json\n(.*?)```", page, re.S)
    pathlib.Path("llama.json").write_text(rules)
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.S) for line in block.splitlines()]
    assert len(commands) >= 11
    for line in commands:
        run(line)
    capsys.readouterr()
    model = {"layers.0.w", "b"}
    assert pathlib.Path("model.gguf").read_bytes() == pathlib.Path("model-Q4_K_M.gguf").read_bytes()
    assert set(contents("model")[1]) == set(contents("for-hub")[1]) == set(contents("again")[1]) == model
    assert set(load_safetensors(pathlib.Path("weights.safetensors"))[0]) == {f"model.{name}" for name in model}
    assert contents("dcp-again") == contents("dcp-checkpoint") and contents("megatron-again") == contents("megatron-run")
    made = {name: entry[2] for name, entry in load_safetensors(pathlib.Path("from-megatron/model.safetensors"))[0].items()}
    qkv = arrays["decoder.layers.self_attention.linear_qkv.weight"].reshape(2, 2, 16, 16)  # layers, groups, rows, columns
    assert made["model.layers.1.self_attn.q_proj.weight"] == raw(qkv[1, :, :8])
    assert made["model.layers.1.self_attn.v_proj.weight"] == raw(qkv[1, :, 12:])
    assert made["model.layers.0.mlp.up_proj.weight"] == raw(arrays["decoder.layers.mlp.linear_fc1.weight"][0, 32:])
    assert made["lm_head.weight"] == raw(arrays["output_layer.weight"][:60]) and len(made) == 3 + 2 * 9
    again = contents("megatron-weights")[1]
    assert {name for name in arrays if "optimizer" not in name and "rng" not in name} == set(again)
    for name, (_, _, digest) in again.items():
        kept = arrays[name][:60] if len(arrays[name]) == 64 else arrays[name]
        assert digest == hashlib.sha256(raw(kept)).hexdigest(), name


def test_formats_and_options_are_those_of_the_command(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["sealpoint", "convert", "--help"])
    with pytest.raises(SystemExit):
        main()
    output = capsys.readouterr().out
    page = PAGE.read_text()
    for option in set(re.findall(r"`?(--[a-z][a-z-]+)", page)):
        assert option in output, option
    (formats,) = re.findall(r"--to \{([a-z,]+)\}", output.replace("\n", ""))[:1]
    assert sorted(formats.split(",")) == sorted(re.findall(r"^\| `([a-z]+)` \|", page.partition("## What is kept")[0], re.M))


def test_the_former_name_of_the_package_works():
    with pytest.warns(DeprecationWarning, match="now sealpoint.interop"):
        former = importlib.import_module("sealpoint.convert")
    assert former.convert is sealpoint.interop.convert and former.__all__ == sealpoint.interop.__all__
