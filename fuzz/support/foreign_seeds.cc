// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/foreign_seeds.h"

#include <cstdint>

#include "fuzz/support/pickle_parts.h"
#include "fuzz/support/stored_zip.h"

namespace sealpoint::fuzz {
namespace {

using std::string_literals::operator""s;

std::string Array(const std::string& core) {
  const std::string bytes =
      Call(Global("_codecs", "encode"), Text("\x01\xc3\xbf") + Text("latin1"));
  const std::string dtype =
      Call(Global("numpy", "dtype"), Text("u1") + "\x89\x88") +
      Tuple(Int(3) + Text("|") + "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff" + Int(0)) + "b";
  return Call(Global("numpy." + core + ".multiarray", "_reconstruct"),
              Global("numpy", "ndarray") + Tuple(Int(0)) + Text("b")) +
         Tuple(Int(1) + Tuple(Int(1) + Int(2)) + dtype + "\x88" + bytes) + "b";
}

std::string Values() {
  const std::string wide = "\x8a\x0a" + std::string(10, '\x7f');
  return Mapping(Text("numbers") + List("NK\x07\x88G\x3f\xf0\0\0\0\0\0\0"s + wide + Int(~0u)) +
                 Int(3) + Tuple(Text("\xc3\xa9") + Text("$") + ")") +                         //
                 Text("set") + Call(Global("__builtin__", "set"), List(Int(1) + Int(2))) +    //
                 Text("complex") + Call(Global("__builtin__", "complex"), Int(1) + Int(2)) +  //
                 Text("size") + Call(Global("torch", "Size"), Tuple(Int(4))) +                //
                 Text("device") + Call(Global("torch", "device"), Text("cuda") + Int(0)) +    //
                 Text("dtype") + Global("torch", "bfloat16") +                                //
                 Text("file") + Global("_io", "BytesIO") + ")\x81" +
                 Tuple("C\x02zz" + Int(0) + "N") + "b" + Text("args") +
                 Global("argparse", "Namespace") + ")\x81" + Mapping(Text("a") + "\x89") + "b" +
                 Text("enum") + Call(Global("megatron.core", "Kind"), Int(1)) +  //
                 Text("array") + Array("core") + Text("array2") + Array("_core"));
}

std::string Tensors() {
  const std::string one = Tensor("FloatStorage", "0", 16, Int(2) + Int(8), Int(8) + Int(1));
  return Ordered(Text("w") + one + "q\x01" + Text("tied") + "h\x01" + Text("view") +
                 Tensor("FloatStorage", "0", 16, Int(4), Int(0)) + Text("parameter") +
                 Call(Global("torch._utils", "_rebuild_parameter"),
                      Tensor("LongStorage", "1", 1, "", "") + "\x88" + Ordered("")) +
                 Text("empty") + Tensor("HalfStorage", "2", 0, Int(0), Int(1)));
}

std::string Place(const std::string& name, const std::string& offset, std::uint64_t length) {
  const std::string index = Described(
      "MetadataIndex", Text("fqn") + Text(name) + Text("offset") + offset + Text("index") + "N");
  return index + Global("torch.distributed.checkpoint.filesystem", "_StorageInfo") + ")\x81" +
         Mapping(Text("relative_path") + Text("__0_0.distcp") + Text("offset") + Int(0) +
                 Text("length") + Int(length)) +
         "b";
}

std::string Metadata(bool is_megatron) {
  const std::string size = Call(Global("torch", "Size"), Tuple(Int(4)));
  const std::string half = Call(Global("torch", "Size"), Tuple(Int(2)));
  const std::string zero = Call(Global("torch", "Size"), Tuple(Int(0)));
  const auto chunk = [&](const std::string& offset) {
    return Described("ChunkStorageMetadata", Text("offsets") + offset + Text("sizes") + half);
  };
  const std::string properties =
      Described("TensorProperties", Text("dtype") + Global("torch", "float32"));
  const std::string tensor =
      Described("TensorStorageMetadata", Text("properties") + properties + Text("size") + size +
                                             Text("chunks") + List(chunk(zero) + chunk(half)));
  const std::uint64_t length = ItemOfDcp(is_megatron).size();
  return Described(
      "Metadata",
      Text("state_dict_metadata") +
          Mapping(Text("w") + tensor + Text("o") + Described("BytesStorageMetadata", "")) +
          Text("storage_data") +
          Mapping(Place("w", zero, 8) + Place("w", half, 8) + Place("o", "N", length)) +
          Text("planner_data") +
          (is_megatron
               ? "N"
               : Mapping(Text("w") + Tuple(Text("m") + Int(0)) + Text("o") + Tuple(Text("o")))));
}

std::string TextOfGguf(const std::string& text) { return Number(text.size(), 8) + text; }

// With keys of several types, and a plain and a quantized tensor.
std::string Gguf() {
  const auto tensor = [](const std::string& name, unsigned type, unsigned rows, unsigned offset) {
    return TextOfGguf(name) + Number(2, 4) + Number(32, 8) + Number(rows, 8) + Number(type, 4) +
           Number(offset, 8);
  };
  std::string file = "GGUF" + Number(3, 4) + Number(2, 8) + Number(4, 8) +
                     TextOfGguf("general.alignment") + Number(4, 4) + Number(32, 4) +
                     TextOfGguf("a") + Number(9, 4) + Number(8, 4) + Number(1, 8) +
                     TextOfGguf("t") + TextOfGguf("b") + Number(9, 4) + Number(6, 4) +
                     Number(2, 8) + Number(0x7fc00000, 4) + Number(0x3f800000, 4) +
                     TextOfGguf("c") + Number(9, 4) + Number(9, 4) + Number(1, 8) + Number(3, 4) +
                     Number(1, 8) + "xy" + tensor("w", 0, 1, 0) + tensor("q", 2, 2, 128);
  file.resize((file.size() + 31) / 32 * 32 + 192);
  return file;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> ForeignSeeds() {
  std::vector<std::pair<std::string, std::string>> seeds;
  for (const auto& [name, value] :
       {std::pair("values", Values()), std::pair("tensors", Tensors())}) {
    const std::string pickle = Pickle(value);
    // 198 is a multiple of 6 behind 128: names of unknown classes are kept.
    seeds.emplace_back(name + "-alone"s, "\xc6" + pickle);
    seeds.emplace_back(name + "-saved"s, "\x01" + pickle);
    seeds.emplace_back(name + "-file"s, "\x02" + TorchSaved(pickle));
  }
  const std::string dcp = Pickle(Metadata(false));
  seeds.emplace_back("dcp-alone", "\0"s + dcp);
  seeds.emplace_back("dcp", "\x03" + dcp);
  seeds.emplace_back("megatron", "\x04" + Pickle(Metadata(true)));
  const std::string cut = {static_cast<char>(dcp.size() >> 8), static_cast<char>(dcp.size())};
  seeds.emplace_back("ranks", "\x05" + cut + dcp + dcp);
  seeds.emplace_back("gguf", "\x02" + Gguf());
  seeds.emplace_back("legacy", "\x02\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
  return seeds;
}

}  // namespace sealpoint::fuzz
