// SPDX-License-Identifier: Apache-2.0
//
// Looks at a model of safetensors (a file, or a directory as Hugging Face has them), makes a
// checkpoint of it, and a model of a checkpoint:
//   safetensors list model
//   safetensors import model checkpoint
//   safetensors export checkpoint again                    (a directory)
//   safetensors export checkpoint again.safetensors        (one file)
#include "sealpoint/safetensors.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/interop.h"
#include "sealpoint/text.h"

namespace sp = sealpoint;

namespace {

// As an inference program does that wants its share of each matrix: the first half of the rows.
sp::Status List(const std::string& path) {
  const auto model = sp::SafetensorsModel::Open(path);
  if (!model.ok()) return model.error();
  for (const sp::SafetensorsTensor& tensor : (*model)->tensors()) {
    const std::string shape = sp::ShapeToString(tensor.shape);
    std::printf("%s: %s %s, %s\n", sp::Printable(tensor.name).c_str(),
                sp::DTypeName(tensor.dtype).data(), shape.c_str(),
                sp::BytesText(tensor.raw_bytes).c_str());
    if (tensor.shape.size() != 2 || tensor.shape[0] < 2 || tensor.raw_bytes == 0) continue;
    const sp::Box half{.offset = {0, 0}, .extent = {tensor.shape[0] / 2, tensor.shape[1]}};
    std::vector<std::byte> rows(half.extent[0] * half.extent[1] * sp::DTypeSizeBytes(tensor.dtype));
    const sp::Status read = (*model)->Read(tensor.name, half, sp::MutableMemoryView::Host(rows));
    if (!read.ok()) return read;
    std::printf("  of which %zu bytes were read\n", rows.size());
  }
  return {};
}

sp::Status Import(const std::string& path, const std::string& directory) {
  const auto model = sp::SafetensorsModel::Open(path);
  if (!model.ok()) return model.error();
  const auto engine = sp::Engine::Create().value();
  const auto info = sp::ImportSafetensors(*engine, **model, directory);
  if (!info.ok()) return info.error();
  std::printf("%lu tensors, %s\n", info->tensor_count, sp::BytesText(info->raw_bytes).c_str());
  return {};
}

sp::Status Export(const std::string& directory, const std::string& path) {
  const auto checkpoint = sp::Checkpoint::Open(directory);
  if (!checkpoint.ok()) return checkpoint.error();
  const auto report = sp::ExportSafetensors(**checkpoint, path);
  if (!report.ok()) return report.error();
  for (const auto& [name, size] : report->files) std::printf("%s: %lu bytes\n", name.c_str(), size);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  sp::Status status(sp::Code::kInvalidArgument, "see the first lines of safetensors.cc");
  if (what == "list" && argc == 3) status = List(argv[2]);
  if (what == "import" && argc == 4) status = Import(argv[2], argv[3]);
  if (what == "export" && argc == 4) status = Export(argv[2], argv[3]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
