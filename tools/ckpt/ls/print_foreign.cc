// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/bytes.h"
#include "tools/ckpt/ls/print.h"
#include "tools/common/output.h"

namespace sealpoint::tools::ls {
namespace {

constexpr std::size_t kBytesWidth = 15;

std::string_view NameOf(const std::string& format) {
  if (format == "safetensors") return "file of safetensors";
  if (format == "hf") return "directory of safetensors (Hugging Face)";
  if (format == "torch") return "file of torch.save";
  if (format == "hf_torch") return "directory of files of torch.save (Hugging Face)";
  if (format == "gguf") return "model in GGUF (llama.cpp)";
  if (format == "llama") return "directory of a Llama model (Meta)";
  if (format == "megatron_torch") return "directory of Megatron's ranks (--ckpt-format torch)";
  if (format == "deepspeed") return "directory of DeepSpeed (ZeRO)";
  if (format == "accelerate") return "directory of accelerate (FSDP)";
  if (format == "dcp") return "directory of torch.distributed.checkpoint";
  if (format == "delta") return "delta of a version of weights (slime, miles, SGLang)";
  return "directory of Megatron-core (torch_dist)";
}

// 1234567 as 1,234,567.
std::string Grouped(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::uint64_t SizeOf(const ForeignTensor& tensor) {
  return ElementCount(tensor.shape).value_or(0) * DTypeSizeBytes(tensor.dtype);
}

// What old versions of Megatron flattened comes as one.
std::size_t PartCount(const ForeignTensor& tensor) {
  return tensor.flattened_shape ? 1 : tensor.parts.size();
}

std::string ShapeText(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

void PrintLine(std::string_view bytes, std::string_view kind, std::string_view shape,
               const std::string& text) {
  Print("{:>{}}  {:<12} {:<20} {}\n", bytes, kBytesWidth, kind, shape, text);
}

}  // namespace

void PrintForeign(const ForeignCheckpoint& state, const std::vector<ForeignValue>& values) {
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : state.tensors) total += SizeOf(tensor);
  Print("{}: {}, {}, {} tensors, {} bytes\n", Printable(state.path), NameOf(state.format),
        state.step ? fmt::format("step {}", *state.step) : "no step", state.tensors.size(),
        Grouped(total));
  for (const auto& [name, tensor] : state.tensors) {
    const std::size_t count = PartCount(tensor);
    std::string more = count > 1 ? fmt::format("  ({} parts)", count) : "";
    if (!tensor.deltas.empty()) more += fmt::format("  (deltas: {})", tensor.deltas.size());
    if (!tensor.block_type.empty()) more += fmt::format("  ({})", tensor.block_type);
    PrintLine(Grouped(SizeOf(tensor)), DTypeName(tensor.dtype), ShapeText(tensor.shape),
              Printable(name) + more);
  }
  for (const ForeignValue& value : values) {
    PrintLine("", "value", "", Printable(value.name) + " = " + Printable(value.brief));
  }
  for (const auto& [name, object] : state.objects) {
    PrintLine(Grouped(object.bytes.size()), "object", Printable(object.media_type),
              Printable(name));
  }
  Print("files:\n");
  for (const ForeignFile& file : state.files) {
    Print("{:>{}}  {}: {}\n", Grouped(file.size_bytes), kBytesWidth, Printable(file.name),
          file.meaning);
  }
  Print("digests: {}\n", state.digest);
  for (const std::string& note : state.notes) Print("note: {}\n", Printable(note));
}

void PrintForeignJson(const ForeignCheckpoint& state, const std::vector<ForeignValue>& values,
                      JsonWriter& json) {
  json.BeginObject();
  json.Field("path", state.path);
  json.Field("format", state.format);
  json.Field("step", state.step ? Json(*state.step) : Json());
  json.BeginArray("tensors");
  for (const auto& [name, tensor] : state.tensors) {
    Json described({{"name", name},
                    {"dtype", DTypeName(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"raw_bytes", SizeOf(tensor)},
                    {"part_count", PartCount(tensor)}});
    if (!tensor.block_type.empty()) described["block_type"] = tensor.block_type;
    json.Element(described);
  }
  json.End();
  json.BeginArray("values");
  for (const ForeignValue& value : values) {
    json.Element({{"name", value.name}, {"brief", value.brief}});
  }
  json.End();
  json.BeginArray("objects");
  for (const auto& [name, object] : state.objects) {
    json.Element(
        {{"name", name}, {"media_type", object.media_type}, {"size_bytes", object.bytes.size()}});
  }
  json.End();
  json.BeginArray("files");
  for (const ForeignFile& file : state.files) {
    json.Element({{"name", file.name}, {"size_bytes", file.size_bytes}, {"meaning", file.meaning}});
  }
  json.End();
  json.Field("source_digest", state.digest);
  json.Field("notes", state.notes);
}

}  // namespace sealpoint::tools::ls
