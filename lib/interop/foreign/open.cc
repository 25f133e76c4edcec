// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <new>

#include "lib/base/macros.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/torch_legacy.h"
#include "lib/interop/foreign/torch_values.h"
#include "lib/interop/foreign/torch_zip.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::foreign {
namespace {

using std::string_literals::operator""s;

// How files begin that are not read; what they are.
struct Other {
  std::string magic;
  std::string_view what;
};
const Other kOthers[] = {{"\x89HDF\r\n\x1a\n"s, "an HDF5 file"},
                         {"GGUF"s, "a GGUF file"},
                         {"\x93NUMPY"s, "an array of numpy (.npy)"},
                         {"\x1f\x8b"s, "compressed by gzip; decompress it"},
                         {"\x28\xb5\x2f\xfd"s, "compressed by zstd; decompress it"}};

bool IsSafetensors(const std::string& path, const SourceFile& file, const std::string& head) {
  if (path.ends_with(".safetensors")) return true;
  constexpr std::size_t kHeadSize = 9;
  constexpr std::uint64_t kHeaderMax = 100'000'000;
  if (file.size() < kHeadSize + 1 || head[8] != '{') return false;
  std::uint64_t size = 0;
  for (std::size_t i = 8; i > 0; --i) size = size << 8 | static_cast<unsigned char>(head[i - 1]);
  return size <= std::min(kHeaderMax, file.size());
}

std::optional<ForeignCheckpoint> ReadFile(const std::string& path, SourceFiles& files) {
  const auto file = files.Open(path);
  files.budget().Allow(file->size());
  const std::string head =
      file->Read(0, std::min<std::uint64_t>(file->size(), kTorchLegacy.size()));
  if (head.starts_with(kTorchZip) || head == kTorchLegacy) return ReadTorchFile(path, files);
  if (IsSafetensors(path, *file, head)) return ReadSafetensors(path, files);
  for (const Other& other : kOthers) {
    if (head.starts_with(other.magic)) {
      Fail(Code::kUnsupported, path, other.what, ", expected a checkpoint");
    }
  }
  if (head.starts_with('\x80')) {
    Fail(Code::kUnsupported, path, "a plain pickle, which is a program; expected a checkpoint");
  }
  return std::nullopt;
}

std::optional<ForeignCheckpoint> ReadDirectory(const std::string& path, SourceFiles& files,
                                               int depth) {
  if (const auto newest = depth == 0 ? NewestIteration(path, files) : std::nullopt) {
    std::optional<ForeignCheckpoint> state = ReadDirectory(*newest, files, 1);
    if (state) {
      state->notes.push_back("the newest of the iterations: " +
                             std::string(LastComponent(*newest)));
    }
    return state;
  }
  const std::vector<SourceEntry> entries = files.List(path);
  std::uint64_t stored = 0;
  for (const SourceEntry& entry : entries) stored = CappedAdd(stored, entry.size);
  files.budget().Allow(stored);
  if (IsMegatron(path, files)) return ReadMegatron(path, files);
  if (IsDcp(entries)) return ReadDcp(path, files);
  const bool has_safetensors = std::ranges::any_of(entries, [](const SourceEntry& entry) {
    return !entry.name.starts_with('.') && (entry.name.ends_with(".safetensors") ||
                                            entry.name.ends_with(".safetensors.index.json"));
  });
  if (has_safetensors) return ReadSafetensors(path, files);
  const bool has_items = std::ranges::any_of(
      entries, [](const SourceEntry& entry) { return entry.name.ends_with(".distcp"); });
  if (has_items) {
    Fail(Code::kNotACheckpoint, path,
         "files of torch.distributed.checkpoint without .metadata: a save that did not end");
  }
  return std::nullopt;
}

// Strides of 0 make any shape of a few bytes.
void CheckSizes(const ForeignCheckpoint& state) {
  for (const auto& [name, tensor] : state.tensors) {
    const Result<std::uint64_t> count = ElementCount(tensor.shape);
    const std::uint64_t max = ~std::uint64_t{0} / DTypeSizeBytes(tensor.dtype);
    if (count.ok() && *count <= max) continue;
    throw Failure{Status(Code::kLimitExceeded, StrCat("tensor ", ShapeToString(tensor.shape),
                                                      " has more than 2^64 bytes"))
                      .AtPath(state.path)
                      .AtTensor(name)};
  }
}

}  // namespace

ForeignCheckpoint ReadTorchFile(const std::string& path, SourceFiles& files) {
  const auto file = files.Open(path);
  const bool is_zip = file->Read(0, kTorchZip.size()).starts_with(kTorchZip);
  ForeignCheckpoint state{
      .format = "torch",
      .path = path,
      .digest = is_zip ? "CRC-32 of the zip" : "none: files before 1.6 have none"};
  const std::unique_ptr<TorchArchive> archive = OpenTorchArchive(file);
  state.tree = TorchValues(*archive, files.options(), state).Node(archive->root(), {});
  const std::string kind = KindOf(state.tree);
  if (state.tree.if_object() == nullptr || (!kind.empty() && kind != "dict")) {
    Fail(Code::kUnsupported, path, "the file holds a ",
         kind.empty() ? KindName(archive->root().kind) : kind, ", expected a mapping");
  }
  state.files.push_back({std::string(LastComponent(path)), file->size(),
                         is_zip ? "zip of torch.save: a pickle of the state, and its tensors"
                                : "file of torch.save before 1.6: pickles, then its tensors"});
  return state;
}

Result<std::optional<ForeignCheckpoint>> ReadPath(const std::string& path, bool is_directory,
                                                  SourceFiles& files) {
  try {
    std::optional<ForeignCheckpoint> state =
        is_directory ? ReadDirectory(path, files, 0) : ReadFile(path, files);
    if (state) {
      CheckSizes(*state);
      CheckTree(*state);
      state->paths = files.TakePaths();
      state->directories = files.directories();
    }
    return state;
  } catch (Failure& failure) {
    return std::move(failure.status).AtPath(path);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimitExceeded, "it needs more memory than there is").AtPath(path);
  }
}

}  // namespace sealpoint::internal::foreign

namespace sealpoint {

Result<std::optional<ForeignCheckpoint>> ReadForeign(const std::string& path,
                                                     const ForeignOptions& options) {
  namespace foreign = internal::foreign;
  foreign::SourceFiles files(options);
  SEALPOINT_ASSIGN_OR_RETURN(const foreign::PathKind kind, foreign::KindAt(path, *files.storage()));
  if (kind == foreign::PathKind::kNothing) return std::optional<ForeignCheckpoint>();
  return foreign::ReadPath(path, kind == foreign::PathKind::kDirectory, files);
}

Result<std::optional<std::string>> NewestMegatronIteration(const std::string& path) {
  internal::foreign::SourceFiles files{ForeignOptions()};
  try {
    return internal::foreign::NewestIteration(path, files);
  } catch (internal::foreign::Failure& failure) {
    return std::move(failure.status);
  }
}

}  // namespace sealpoint
