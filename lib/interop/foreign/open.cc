// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <new>

#include "lib/base/macros.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/gguf_header.h"
#include "lib/interop/foreign/others.h"
#include "lib/interop/foreign/parts.h"
#include "lib/interop/foreign/torch_legacy.h"
#include "lib/interop/foreign/torch_values.h"
#include "lib/interop/foreign/torch_zip.h"
#include "lib/safetensors/header.h"
#include "lib/storage/path.h"

namespace sealpoint::internal::foreign {
namespace {

enum class Format : std::uint8_t {
  kNone,
  kTorch,
  kSafetensors,
  kDelta,
  kMegatron,
  kDcp,
  kAccelerate,
  kDeepSpeed,
  kLlama,
  kMegatronTorch,
  kGguf
};

bool IsSafetensors(const SourceFile& file, const std::string& head) {
  constexpr std::size_t kHeadSize = 9;
  constexpr std::uint64_t kHeaderMax = 100'000'000;
  if (file.size() < kHeadSize + 1 || head[8] != '{') return false;
  return Number(head, 0, 8) <= std::min(kHeaderMax, file.size());
}

// By its content; by its name if that says nothing.
Format FormatOfFile(const SourceFile& file) {
  const std::string head = file.Read(0, std::min<std::uint64_t>(file.size(), kTorchLegacy.size()));
  if (head.starts_with(kTorchZip) || head == kTorchLegacy) return Format::kTorch;
  if (head.starts_with(kGguf)) return Format::kGguf;
  if (IsSafetensors(file, head)) return Format::kSafetensors;
  const bool is_named = file.path().ends_with(".safetensors");
  return is_named && !OtherFile(file) ? Format::kSafetensors : Format::kNone;
}

// A cut-off zip is one of torch.save, as far as anybody can say.
std::optional<Other> OtherZipIn(const std::shared_ptr<const SourceFile>& file) {
  try {
    return OtherZip(Zip(file, 0, file->size()));
  } catch (const Failure&) {
    return std::nullopt;
  }
}

Format FormatOfDirectory(const std::string& path, SourceFiles& files) {
  const std::vector<SourceEntry> entries = files.List(path);
  if (IsMegatron(path, files)) return Format::kMegatron;
  if (IsDcp(entries)) return Format::kDcp;
  if (IsAccelerate(entries)) return Format::kAccelerate;
  const bool has_safetensors = std::ranges::any_of(entries, [](const SourceEntry& entry) {
    return !entry.name.starts_with('.') && (entry.name.ends_with(".safetensors") ||
                                            entry.name.ends_with(".safetensors.index.json"));
  });
  if (has_safetensors) return IsDelta(path, files) ? Format::kDelta : Format::kSafetensors;
  if (IsTorchFolder(entries)) return Format::kTorch;
  if (IsDeepSpeed(entries)) return Format::kDeepSpeed;
  if (IsMegatronTorch(entries)) return Format::kMegatronTorch;
  if (IsLlama(entries)) return Format::kLlama;
  return IsGguf(entries) ? Format::kGguf : Format::kNone;
}

std::optional<Other> OtherDirectory(const std::string& path, SourceFiles& files) {
  const std::vector<SourceEntry> entries = files.List(path);
  const bool has_items = std::ranges::any_of(
      entries, [](const SourceEntry& entry) { return entry.name.ends_with(".distcp"); });
  if (!has_items) return OtherFolder(path, files);
  return Other{Code::kNotACheckpoint,
               "files of torch.distributed.checkpoint without .metadata: an unfinished save"};
}

// The newest checkpoint of a folder of them. Folders of the Trainer of Hugging Face have a model
// beside DeepSpeed's directories: they are a checkpoint.
std::optional<std::string> NewestOf(const std::string& path, SourceFiles& files) {
  if (auto newest = NewestIteration(path, files)) return newest;
  auto tagged = NewestTag(path, files);
  return tagged && FormatOfDirectory(path, files) == Format::kNone ? tagged : std::nullopt;
}

std::optional<ForeignCheckpoint> ReadFile(const std::string& path, SourceFiles& files) {
  const auto file = files.Open(path);
  files.budget().Allow(file->size());
  const Format format = FormatOfFile(*file);
  if (format == Format::kNone) {
    if (const auto other = OtherFile(*file)) Fail(*other, path);
    return std::nullopt;
  }
  if (format == Format::kGguf) return ReadGgufFile(path, files);
  CheckKind(path);
  if (format == Format::kSafetensors && file->size() < safetensors::kSafetensorsLengthBytes) {
    Fail(Code::kIncomplete, path, "file has ", file->size(), " bytes, a file of safetensors ",
         safetensors::kSafetensorsLengthBytes, " at least; copy it again");
  }
  const std::vector<SourceEntry> others = CheckWhole(path, files);
  ForeignCheckpoint state =
      format == Format::kTorch ? ReadTorchFile(path, files) : ReadSafetensors(path, files);
  NameOthers(others, state);
  return state;
}

std::optional<ForeignCheckpoint> ReadDirectory(const std::string& path, SourceFiles& files,
                                               int depth) {
  if (const auto newest = depth == 0 ? NewestOf(path, files) : std::nullopt) {
    std::optional<ForeignCheckpoint> state = ReadDirectory(*newest, files, 1);
    if (state) {
      state->notes.push_back("the newest iteration: " +
                             std::string(storage::LastComponent(*newest)));
    }
    return state;
  }
  std::uint64_t stored = 0;
  for (const SourceEntry& entry : files.List(path)) stored = CappedAdd(stored, entry.size);
  files.budget().Allow(stored);
  std::optional<ForeignCheckpoint> state;
  switch (FormatOfDirectory(path, files)) {
    case Format::kMegatron:
      state = ReadMegatron(path, files);
      break;
    case Format::kDcp:
      state = ReadDcp(path, files);
      break;
    case Format::kAccelerate:
      state = ReadAccelerate(path, files);
      break;
    case Format::kSafetensors:
      state = ReadSafetensors(path, files);
      break;
    case Format::kDelta:
      state = ReadDelta(path, files);
      break;
    case Format::kTorch:
      state = ReadTorchFolder(path, files);
      break;
    case Format::kMegatronTorch:
      state = ReadMegatronTorch(path, files);
      break;
    case Format::kDeepSpeed:
      state = ReadDeepSpeed(path, files);
      break;
    case Format::kLlama:
      state = ReadLlama(path, files);
      break;
    case Format::kGguf:
      state = ReadGgufFolder(path, files);
      break;
    case Format::kNone:
      if (const auto other = OtherDirectory(path, files)) Fail(*other, path);
      return std::nullopt;
  }
  NameRest(path, files, *state);
  return state;
}

ForeignKind NotRead(const Other& other) { return {.what = other.what, .is_read = false}; }

std::optional<ForeignKind> KindOfFile(const std::string& path, SourceFiles& files) {
  const auto file = files.Open(path);
  files.budget().Allow(file->size());
  const Format format = FormatOfFile(*file);
  if (format == Format::kSafetensors) return ForeignKind{"a file of safetensors", true};
  if (format == Format::kGguf) return ForeignKind{"a file of GGUF (llama.cpp)", true};
  const auto other = format == Format::kNone ? OtherFile(*file) : OtherZipIn(file);
  if (other) return NotRead(*other);
  if (format == Format::kNone) return std::nullopt;
  return ForeignKind{"a file of torch.save", true};
}

std::optional<ForeignKind> KindOfDirectory(const std::string& path, SourceFiles& files, int depth) {
  if (const auto newest = depth == 0 ? NewestOf(path, files) : std::nullopt) {
    return KindOfDirectory(*newest, files, 1);
  }
  switch (FormatOfDirectory(path, files)) {
    case Format::kMegatron:
      return ForeignKind{"a directory of Megatron", true};
    case Format::kDcp:
      return ForeignKind{"a directory of torch.distributed.checkpoint", true};
    case Format::kAccelerate:
      return ForeignKind{"a directory of accelerate (FSDP)", true};
    case Format::kSafetensors:
      return ForeignKind{"a directory of safetensors (Hugging Face)", true};
    case Format::kDelta:
      return ForeignKind{"a version of weights as a delta (slime, miles, SGLang)", true};
    case Format::kTorch:
      return ForeignKind{"a directory of files of torch.save (Hugging Face)", true};
    case Format::kMegatronTorch:
      return ForeignKind{"a directory of Megatron's ranks (--ckpt-format torch)", true};
    case Format::kDeepSpeed:
      return ForeignKind{"a directory of DeepSpeed (ZeRO)", true};
    case Format::kLlama:
      return ForeignKind{"a directory of a Llama model (Meta)", true};
    case Format::kGguf:
      return ForeignKind{"a directory of GGUF (llama.cpp)", true};
    case Format::kNone:
      break;
  }
  const auto other = OtherDirectory(path, files);
  return other ? std::optional(NotRead(*other)) : std::nullopt;
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
  state.files.push_back({std::string(storage::LastComponent(path)), file->size(),
                         is_zip ? "zip of torch.save: a pickle of the state, and its tensors"
                                : "file of torch.save before 1.6: pickles, then its tensors"});
  return state;
}

namespace {

// A page or a pointer in the place of any file says more than what is wrong with it as that file.
Status Explained(Status error, SourceFiles& files) {
  const std::string path = error.place().path;
  try {
    const Result<PathKind> kind = KindAt(path, *files.storage());
    if (!kind.ok() || *kind != PathKind::kFile) return error;
    const auto other = OtherFile(*files.Open(path));
    if (other && other->is_text) return Status(other->code, other->what).AtPath(path);
  } catch (const Failure&) {
    return error;
  }
  return error;
}

}  // namespace

Result<std::optional<ForeignKind>> KindOfPath(const std::string& path, bool is_directory,
                                              SourceFiles& files) {
  try {
    return is_directory ? KindOfDirectory(path, files, 0) : KindOfFile(path, files);
  } catch (Failure& failure) {
    // Its marker names a kind that is not read.
    if (failure.status.code() == Code::kUnsupported) {
      return std::optional(ForeignKind{std::string(failure.status.message()), false});
    }
    return std::move(failure.status).AtPath(path);
  }
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
      state->metadata_memory_bytes = files.budget().max();
    }
    return state;
  } catch (Failure& failure) {
    return Explained(std::move(failure.status).AtPath(path), files);
  } catch (const std::bad_alloc&) {
    return Status(Code::kLimitExceeded, "not enough memory").AtPath(path);
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

Result<std::optional<ForeignKind>> KindOfForeign(const std::string& path,
                                                 const ForeignOptions& options) {
  namespace foreign = internal::foreign;
  foreign::SourceFiles files(options);
  SEALPOINT_ASSIGN_OR_RETURN(const foreign::PathKind kind, foreign::KindAt(path, *files.storage()));
  if (kind == foreign::PathKind::kNothing) return std::optional<ForeignKind>();
  return foreign::KindOfPath(path, kind == foreign::PathKind::kDirectory, files);
}

Result<std::optional<std::string>> NewestForeignDirectory(const std::string& path) {
  internal::foreign::SourceFiles files{ForeignOptions()};
  try {
    return internal::foreign::NewestOf(path, files);
  } catch (internal::foreign::Failure& failure) {
    return std::move(failure.status);
  }
}

}  // namespace sealpoint
