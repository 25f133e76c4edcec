// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string_view>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/interop/match.h"
#include "lib/interop/metadata_objects.h"
#include "lib/interop/model_layout.h"
#include "lib/interop/slabs.h"
#include "lib/storage/path.h"
#include "sealpoint/interop.h"

namespace sealpoint {
namespace internal::interop {
namespace {

constexpr std::string_view kFileSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

class Export {
 public:
  Export(const Checkpoint& checkpoint, const std::string& path, const ExportOptions& options)
      : checkpoint_(checkpoint),
        path_(path),
        options_(options),
        storage_(options.storage ? options.storage : DefaultStorage()),
        is_file_(path.ends_with(kFileSuffix)) {}

  Result<ExportReport> Execute() {
    SEALPOINT_RETURN_IF_ERROR(CheckBufferSize(options_.buffer_size_bytes));
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<PlannedFile> files, LayOut());
    const std::string folder = is_file_ ? storage::ParentPath(path_) : path_;
    if (!is_file_) SEALPOINT_RETURN_IF_ERROR(storage_->CreateDirectories(folder));
    SEALPOINT_ASSIGN_OR_RETURN(directory_, storage_->OpenDirectory(folder));
    SEALPOINT_RETURN_IF_ERROR(CheckDestination(files));
    std::vector<std::string> names;
    for (const PlannedFile& file : files) names.push_back(file.name);
    SEALPOINT_ASSIGN_OR_RETURN(const auto made, NewFiles::Create(*directory_, std::move(names)));
    for (std::size_t i = 0; i < files.size(); ++i) {
      SEALPOINT_ASSIGN_OR_RETURN(const auto file, made->Begin(i));
      SEALPOINT_RETURN_IF_ERROR(WriteFile(files[i], *file));
    }
    SEALPOINT_RETURN_IF_ERROR(made->Publish());
    return std::move(report_);
  }

 private:
  Result<std::vector<PlannedFile>> LayOut() {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < checkpoint_.tensor_count(); ++i) {
      names.push_back(checkpoint_.tensor_name(i));
    }
    std::vector<TensorInfo> tensors;
    if (options_.match.empty()) {
      tensors = checkpoint_.tensors();
    } else {
      SEALPOINT_ASSIGN_OR_RETURN(tensors, checkpoint_.MatchTensors(options_.match));
    }
    for (const TensorInfo& tensor : tensors) report_.raw_bytes += tensor.raw_bytes;
    report_.tensor_count = tensors.size();
    std::vector<NamedObject> objects;
    if (options_.match.empty() && !options_.tensors_only) {
      for (ObjectInfo& object : checkpoint_.objects()) {
        SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, checkpoint_.ReadObject(object.name));
        objects.push_back({object.name, object.media_type, std::move(bytes)});
      }
    }
    report_.object_count = objects.size();
    Result<safetensors::StringPairs> metadata = MetadataOfObjects(objects, names);
    if (!metadata.ok()) return std::move(metadata).error().AtPath(checkpoint_.path());
    return LayOutModel({.file_name = is_file_ ? std::string(storage::LastComponent(path_)) : "",
                        .shard_size_max_bytes = options_.shard_size_max_bytes,
                        .header_size_max_bytes = options_.header_size_max_bytes},
                       *std::move(metadata), std::move(tensors));
  }

  // Before the first byte is written: names, and the room for all.
  Status CheckDestination(const std::vector<PlannedFile>& files) const {
    SEALPOINT_ASSIGN_OR_RETURN(const auto entries, directory_->List());
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::string> left, NewFiles::Left(*directory_));
    const std::string_view own = is_file_ ? storage::LastComponent(path_) : std::string_view();
    for (const EntryInfo& entry : entries) {
      const bool is_taken =
          is_file_ ? entry.name == own
                   : entry.name.ends_with(kFileSuffix) || entry.name.ends_with(kIndexSuffix);
      if (!is_taken || std::ranges::binary_search(left, entry.name)) continue;
      return MakeError(Code::kAlreadyExists, "destination exists")
          .AtPath(JoinPath(directory_->path(), entry.name));
    }
    std::uint64_t size = 0;
    for (const PlannedFile& file : files) size += file.size();
    SEALPOINT_ASSIGN_OR_RETURN(const SpaceInfo space, directory_->FreeSpace());
    if (space.free_bytes >= size) return {};
    return MakeError(Code::kNoSpace, space.free_bytes, " bytes are free, expected at least ", size)
        .AtPath(directory_->path());
  }

  Status WriteFile(const PlannedFile& planned, WritableFile& file) {
    SEALPOINT_RETURN_IF_ERROR(file.WriteAt(0, AsBytes(planned.head)));
    std::vector<Extent> extents;
    for (const TensorInfo& tensor : planned.tensors) {
      extents.push_back({.size = tensor.raw_bytes, .unit = tensor.element_size});
    }
    std::uint64_t at = planned.head.size();
    Slabs slabs(extents, options_.buffer_size_bytes);
    for (std::vector<ExtentPart> pieces = slabs.Next(); !pieces.empty(); pieces = slabs.Next()) {
      SEALPOINT_RETURN_IF_ERROR(ReadPieces(planned.tensors, pieces));
      SEALPOINT_RETURN_IF_ERROR(file.WriteAt(at, buffer_));
      at += buffer_.size();
      done_bytes_ += buffer_.size();
      if (options_.on_progress) options_.on_progress(done_bytes_);
    }
    SEALPOINT_RETURN_IF_ERROR(file.Sync());
    SEALPOINT_RETURN_IF_ERROR(file.Close());
    report_.files.emplace_back(planned.name, planned.size());
    return {};
  }

  // Verified, one behind the other.
  Status ReadPieces(const std::vector<TensorInfo>& tensors, const std::vector<ExtentPart>& pieces) {
    std::uint64_t size = 0;
    for (const ExtentPart& piece : pieces) size += piece.size();
    buffer_.resize(size);
    ReadRequest request;
    std::uint64_t at = 0;
    for (const ExtentPart& piece : pieces) {
      const TensorInfo& tensor = tensors[piece.extent];
      const Run run{piece.begin / tensor.element_size, piece.end / tensor.element_size};
      request.Add(tensor.name, Region(Region::Whole(tensor.shape).box, run),
                  MutableMemoryView::Host(buffer_.data() + at, piece.size()));
      at += piece.size();
    }
    return checkpoint_.Load(request, LoadContract::Partial(), options_.read).status();
  }

  const Checkpoint& checkpoint_;
  const std::string& path_;
  const ExportOptions& options_;
  const std::shared_ptr<Storage> storage_;
  const bool is_file_;
  std::unique_ptr<Directory> directory_;
  Bytes buffer_;
  std::uint64_t done_bytes_ = 0;
  ExportReport report_;
};

}  // namespace
}  // namespace internal::interop

Result<ExportReport> ExportSafetensors(const Checkpoint& checkpoint, const std::string& path,
                                       const ExportOptions& options) {
  return internal::interop::Export(checkpoint, path, options).Execute();
}

}  // namespace sealpoint
