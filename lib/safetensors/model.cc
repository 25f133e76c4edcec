// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/model.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/view_checks.h"
#include "lib/safetensors/description.h"
#include "lib/storage/path.h"

namespace sealpoint {
namespace internal::safetensors {
namespace {

// What an object store is asked for at once, so that small tensors come together.
constexpr std::uint64_t kBlockBytes = 8 * kMiB;
constexpr std::size_t kBlocksMax = 4;
constexpr std::string_view kFileSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

// The text of the header; the file is at least as long as it says.
Result<Bytes> ReadHeaderText(const ReadableFile& file, std::uint64_t size_max) {
  const std::uint64_t file_size = file.size_bytes();
  if (file_size < kSafetensorsLengthBytes) {
    return MakeError(Code::kNotACheckpoint, "file has ", file_size,
                     " bytes, a file of safetensors at least ", kSafetensorsLengthBytes);
  }
  std::array<std::byte, kSafetensorsLengthBytes> length_bytes{};
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(0, length_bytes));
  const auto length = LoadLe<std::uint64_t>(length_bytes, 0);
  if (!RangeFits(kSafetensorsLengthBytes, length, file_size)) {
    return MakeError(Code::kIncomplete, "file has ", file_size, " bytes, but its header has ",
                     length,
                     " according to the first 8: it is truncated, or not a file of safetensors");
  }
  if (length > size_max) {
    return MakeError(Code::kLimitExceeded, "header of the file of safetensors has ", length,
                     " bytes, expected ", size_max, " at most");
  }
  Bytes text(length);
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(kSafetensorsLengthBytes, text));
  return text;
}

// What it takes to read a header, in bytes of memory: a few of them could say a lot.
std::uint64_t CostOf(std::string_view header) {
  const auto count = [header](char one) {
    return static_cast<std::uint64_t>(std::ranges::count(header, one));
  };
  const bool is_ascii =
      std::ranges::all_of(header, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  constexpr std::uint64_t kTensorCost = 1024;
  constexpr std::uint64_t kValueCost = 64;
  return header.size() * (is_ascii ? 6 : 16) + kTensorCost * count('{') +
         kValueCost * (count(',') + count('['));
}

}  // namespace

// What its headers take of memory, all together.
Status Model::CheckCost(std::string_view header, std::uint64_t file_size) {
  stored_bytes_ += file_size;
  described_bytes_ += CostOf(header);
  const std::uint64_t max =
      options_.metadata_memory_bytes.value_or(DescriptionBytesMax(stored_bytes_));
  return described_bytes_ <= max ? Status() : DescriptionTooLarge(max);
}

Status Model::OpenFile(const Directory& directory, std::string name, std::string entry) {
  const std::string path = JoinPath(directory.path(), entry);
  SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                             directory.OpenForRead(entry, IoMode::kBuffered));
  Result<Bytes> text = ReadHeaderText(*file, options_.header_size_max_bytes);
  if (!text.ok()) return std::move(text).error().AtPath(path);
  Status cost = CheckCost(AsText(*text), file->size_bytes());
  if (!cost.ok()) return std::move(cost).AtPath(path);
  const std::uint64_t payload_begin = kSafetensorsLengthBytes + text->size();
  Result<SafetensorsHeader> header =
      DecodeSafetensorsHeader(AsText(*text), file->size_bytes() - payload_begin);
  if (!header.ok()) return std::move(header).error().AtPath(path);
  const std::uint64_t file_size = file->size_bytes();
  files_.push_back(
      {.info = {.name = std::move(name),
                .size_bytes = file_size,
                .metadata = std::move(header->metadata)},
       .tensors = std::move(header->tensors),
       .payload_begin = payload_begin,
       .directory = directory.path(),
       .entry = std::move(entry),
       .file = files_.size() < open_files_max_ ? blocks_->Wrap(std::move(file)) : nullptr});
  return {};
}

Result<ShardIndex> Model::ReadIndex(const Directory& directory) const {
  const std::string path = JoinPath(directory.path(), index_name_);
  SEALPOINT_ASSIGN_OR_RETURN(const auto file,
                             directory.OpenForRead(index_name_, IoMode::kBuffered));
  if (file->size_bytes() > options_.header_size_max_bytes) {
    return MakeError(Code::kLimitExceeded, "index has ", file->size_bytes(), " bytes, expected ",
                     options_.header_size_max_bytes, " at most")
        .AtPath(path);
  }
  Bytes text(file->size_bytes());
  SEALPOINT_RETURN_IF_ERROR(file->ReadAt(0, text));
  Result<ShardIndex> index = ShardIndex::Decode(AsText(text), options_.allow_missing);
  if (!index.ok()) return std::move(index).error().AtPath(path);
  return index;
}

Status Model::CheckCount(std::size_t file_count) const {
  if (file_count <= options_.limits.blob_count_max) return {};
  return MakeError(Code::kLimitExceeded, "model has ", file_count, " files, expected ",
                   options_.limits.blob_count_max, " at most")
      .AtPath(path_);
}

// An index may name files in subdirectories.
Status Model::OpenNamed(const Directory& directory, const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == name.npos) return OpenFile(directory, name, name);
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto inner, options_.storage->OpenDirectory(JoinPath(path_, name.substr(0, slash))));
  return OpenFile(*inner, name, name.substr(slash + 1));
}

// Files may have more tensors than it names: transformers reads those, too.
Status Model::ApplyIndex(const ShardIndex& index) {
  std::set<std::pair<std::string_view, std::string_view>> found;
  for (const OpenedFile& file : files_) {
    for (const HeaderTensor& tensor : file.tensors) found.emplace(tensor.name, file.info.name);
  }
  Result<std::vector<std::string>> missing = index.Missing(found);
  if (!missing.ok()) {
    return std::move(missing).error().AtPath(JoinPath(path_, index_name_));
  }
  missing_ = *std::move(missing);
  for (OpenedFile& file : files_) {
    std::erase_if(file.tensors, [&](const HeaderTensor& tensor) {
      if (index.MayHold(tensor.name, file.info.name)) return false;
      duplicates_.push_back({tensor.name, file.info.name, tensor.end - tensor.begin});
      return true;
    });
  }
  return {};
}

Status Model::OpenIndexed(const Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const ShardIndex index, ReadIndex(directory));
  const std::vector<std::string> names = index.files();
  SEALPOINT_RETURN_IF_ERROR(CheckCount(names.size()));
  for (const std::string& name : names) {
    const Status opened = OpenNamed(directory, name);
    if (opened.code() == Code::kNotFound) {
      if (index.MayMiss(name)) continue;
      return ShardIndex::NoFile().AtPath(JoinPath(path_, name));
    }
    SEALPOINT_RETURN_IF_ERROR(opened);
  }
  SEALPOINT_RETURN_IF_ERROR(ApplyIndex(index));
  SEALPOINT_ASSIGN_OR_RETURN(tensors_, GatherTensors(files_, false, options_.limits));
  return {};
}

Status Model::OpenDirectory(const Directory& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, directory.List());
  std::vector<std::string> names;
  for (const EntryInfo& entry : entries) {
    if (entry.name.starts_with('.')) continue;
    if (entry.name.ends_with(kFileSuffix)) names.push_back(entry.name);
    if (!entry.name.ends_with(kIndexSuffix)) continue;
    if (!index_name_.empty()) {
      return MakeError(Code::kUnsupported, "several indices: ", index_name_, " and ", entry.name,
                       "; expected one; open the files one by one")
          .AtPath(path_);
    }
    index_name_ = entry.name;
  }
  if (!index_name_.empty()) return OpenIndexed(directory);
  if (names.empty()) {
    return MakeError(Code::kNotACheckpoint, "the directory has no file of safetensors")
        .AtPath(path_);
  }
  SEALPOINT_RETURN_IF_ERROR(CheckCount(names.size()));
  for (const std::string& name : names) SEALPOINT_RETURN_IF_ERROR(OpenNamed(directory, name));
  const bool is_sharded = std::ranges::any_of(files_, [](const OpenedFile& file) {
    return FindMetadata(file.info.metadata, kShardingKey) != nullptr;
  });
  const std::string missing = is_sharded ? "" : MissingFile(names);
  if (!missing.empty()) {
    return MakeError(Code::kIncomplete, missing, " is missing, and there is no index")
        .AtPath(path_);
  }
  SEALPOINT_ASSIGN_OR_RETURN(tensors_, GatherTensors(files_, is_sharded, options_.limits));
  return {};
}

Status Model::OpenAll() {
  blocks_ = BlockCache::Create(kBlockBytes, kBlocksMax);
  if (!options_.storage) options_.storage = DefaultStorage();
  if (const auto directory = options_.storage->OpenDirectory(path_); directory.ok()) {
    is_directory_ = true;
    SEALPOINT_RETURN_IF_ERROR(OpenDirectory(**directory));
  } else {
    SEALPOINT_ASSIGN_OR_RETURN(const auto parent,
                               options_.storage->OpenDirectory(storage::ParentPath(path_)));
    const std::string name(storage::LastComponent(path_));
    SEALPOINT_RETURN_IF_ERROR(OpenFile(*parent, name, name));
    SEALPOINT_ASSIGN_OR_RETURN(tensors_, GatherTensors(files_, false, options_.limits));
  }
  for (OpenedFile& file : files_) {
    infos_.push_back(std::move(file.info));
    file.tensors = {};
  }
  return {};
}

const SafetensorsTensor* Model::Find(std::string_view tensor) const {
  const auto found =
      std::ranges::lower_bound(tensors_, tensor, std::less<>(), &SafetensorsTensor::name);
  return found == tensors_.end() || found->name != tensor ? nullptr : &*found;
}

Status Model::Read(std::string_view tensor, const MutableMemoryView& destination) const {
  const SafetensorsTensor* const found = Find(tensor);
  if (found == nullptr) return Read(tensor, Box(), destination);
  if (found->raw_bytes > 0) {
    return Read(tensor, Box{Shape(found->shape.size(), 0), found->shape}, destination);
  }
  if (destination.size_bytes == 0) return {};
  return InvalidArgument("memory has ", destination.size_bytes, " bytes, expected 0")
      .AtTensor(tensor);
}

Status Model::Read(std::string_view tensor, const Box& box,
                   const MutableMemoryView& destination) const {
  const SafetensorsTensor* const found = Find(tensor);
  Status status = found == nullptr ? MakeError(Code::kNotFound, "no such tensor").AtPath(path_)
                                   : ReadChecked(*found, box, destination);
  return std::move(status).AtTensor(tensor);
}

Status Model::ReadChecked(const SafetensorsTensor& tensor, const Box& box,
                          const MutableMemoryView& destination) const {
  const bool is_empty = std::ranges::find(box.extent, 0u) != box.extent.end();
  SEALPOINT_RETURN_IF_ERROR(
      HasElements(tensor.shape, Region(box, is_empty ? Run{} : Run{0, 1})).status());
  if (is_empty) return {};
  const std::uint32_t element_size = DTypeSizeBytes(tensor.dtype);
  SEALPOINT_RETURN_IF_ERROR(
      layout::CheckView(destination, Region::Of(box), tensor.dtype, element_size));
  if (!destination.is_host()) {
    return MakeError(Code::kUnsupported, "destination is not in memory of the host");
  }
  for (const SafetensorsPart& part : tensor.parts) {
    const std::optional<Box> requested = layout::IntersectBoxes(part.box, box);
    if (!requested) continue;
    const OpenedFile& opened = files_[part.file];
    std::shared_ptr<const ReadableFile> file = opened.file;
    if (file == nullptr) {
      SEALPOINT_ASSIGN_OR_RETURN(const auto directory,
                                 options_.storage->OpenDirectory(opened.directory));
      SEALPOINT_ASSIGN_OR_RETURN(file, directory->OpenForRead(opened.entry, IoMode::kBuffered));
    }
    SEALPOINT_RETURN_IF_ERROR(
        CopyFromFile(*file, part, *requested, box, element_size, destination));
  }
  return {};
}

}  // namespace internal::safetensors

Result<std::unique_ptr<SafetensorsModel>> SafetensorsModel::Open(const std::string& path,
                                                                 SafetensorsOptions options) {
  auto model = std::make_unique<internal::safetensors::Model>(path, std::move(options));
  SEALPOINT_RETURN_IF_ERROR(model->OpenAll());
  return std::unique_ptr<SafetensorsModel>(std::move(model));
}

}  // namespace sealpoint
