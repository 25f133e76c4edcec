// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string_view>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/interop/match.h"
#include "lib/interop/metadata_objects.h"
#include "lib/interop/slabs.h"
#include "lib/layout/region_algebra.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/interop.h"

namespace sealpoint {
namespace internal::interop {
namespace {

constexpr std::string_view kOrigin = "convert.from";

// A part of a tensor, in the order in which the files have them.
struct StoredPart {
  const SafetensorsTensor* tensor;
  const SafetensorsPart* part;
};

class Import {
 public:
  Import(Engine& engine, const SafetensorsModel& model, const std::string& directory,
         const ImportOptions& options)
      : engine_(engine), model_(model), directory_(directory), options_(options) {}

  Result<CommitInfo> Execute() {
    SEALPOINT_RETURN_IF_ERROR(Choose());
    SEALPOINT_RETURN_IF_ERROR(CheckDirectory());
    SEALPOINT_ASSIGN_OR_RETURN(writer_, BlobWriter::Create(engine_, directory_,
                                                           {.attempt = options_.commit.attempt,
                                                            .step = options_.commit.step,
                                                            .limits = options_.commit.limits}));
    Result<CommitInfo> info = WriteAndCommit();
    // If nobody knows of the commit, the blobs may be part of a checkpoint.
    if (!info.ok() && !OutcomeIsUnknown(info.error())) static_cast<void>(writer_->Abandon());
    return info;
  }

 private:
  // The tensors that are requested, and the objects.
  Status Choose() {
    SEALPOINT_RETURN_IF_ERROR(CheckBufferSize(options_.buffer_size_bytes));
    std::vector<std::string_view> names;
    for (const SafetensorsTensor& tensor : model_.tensors()) names.push_back(tensor.name);
    SEALPOINT_ASSIGN_OR_RETURN(chosen_, MatchNames(options_.match, names));
    std::vector<std::string_view> chosen;
    for (const std::size_t i : chosen_) chosen.push_back(names[i]);
    safetensors::StringPairs metadata;
    for (const SafetensorsFile& file : model_.files()) {
      if (!options_.match.empty()) break;
      metadata.insert(metadata.end(), file.metadata.begin(), file.metadata.end());
    }
    Result<std::vector<NamedObject>> objects = ObjectsOfMetadata(metadata, chosen);
    if (!objects.ok()) return std::move(objects).error().AtPath(model_.path());
    objects_ = *std::move(objects);
    return {};
  }

  Status CheckDirectory() {
    SEALPOINT_RETURN_IF_ERROR(engine_.storage().CreateDirectories(directory_));
    SEALPOINT_ASSIGN_OR_RETURN(const auto directory, engine_.storage().OpenDirectory(directory_));
    SEALPOINT_ASSIGN_OR_RETURN(const auto entries, directory->List());
    if (entries.empty()) return {};
    return MakeError(Code::kAlreadyExists, "destination exists and has ", entries.size(),
                     " entries, expected none")
        .AtPath(directory_);
  }

  Result<CommitInfo> WriteAndCommit() {
    for (const std::size_t i : chosen_) {
      const SafetensorsTensor& tensor = model_.tensors()[i];
      if (tensor.raw_bytes == 0) SEALPOINT_RETURN_IF_ERROR(writer_->AddEmpty(SpecOf(tensor)));
    }
    SEALPOINT_RETURN_IF_ERROR(WriteTensors());
    for (const NamedObject& object : objects_) {
      SEALPOINT_RETURN_IF_ERROR(writer_->AddObject(object.name, object.media_type, object.bytes));
    }
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<BlobSummary> summaries, writer_->Finish());
    CommitOptions commit = options_.commit;
    commit.provenance.emplace_back(kOrigin, model_.is_directory() ? "hf" : "safetensors");
    return Commit(engine_.storage(), directory_, commit, summaries);
  }

  TensorSpec SpecOf(const SafetensorsTensor& tensor) const {
    return {.name = tensor.name,
            .dtype = tensor.dtype,
            .shape = tensor.shape,
            .chunk_size_bytes = options_.chunk_size_bytes,
            .codec = options_.codec};
  }

  // In the order of the files, so that they are read from front to back.
  std::vector<StoredPart> PartsInOrder() const {
    std::vector<StoredPart> parts;
    for (const std::size_t i : chosen_) {
      const SafetensorsTensor& tensor = model_.tensors()[i];
      for (const SafetensorsPart& part : tensor.parts) parts.push_back({&tensor, &part});
    }
    std::ranges::sort(parts, {}, [](const StoredPart& stored) {
      return std::pair(stored.part->file, stored.part->offset);
    });
    return parts;
  }

  Status WriteTensors() {
    const std::vector<StoredPart> parts = PartsInOrder();
    std::vector<Extent> extents;
    // Where a tensor is cut, a chunk ends, if one fits into the buffer.
    const std::uint64_t chunk_size =
        options_.chunk_size_bytes <= options_.buffer_size_bytes ? options_.chunk_size_bytes : 0;
    for (const auto& [tensor, part] : parts) {
      const std::uint64_t element_size = DTypeSizeBytes(tensor->dtype);
      extents.push_back({.size = Region::Of(part->box).element_count() * element_size,
                         .unit = std::max(chunk_size, element_size)});
    }
    Slabs slabs(extents, options_.buffer_size_bytes);
    for (std::vector<ExtentPart> pieces = slabs.Next(); !pieces.empty(); pieces = slabs.Next()) {
      for (const ExtentPart& piece : pieces) {
        SEALPOINT_RETURN_IF_ERROR(WritePiece(parts[piece.extent], piece));
        done_bytes_ += piece.size();
        if (options_.on_progress) options_.on_progress(done_bytes_);
      }
    }
    return {};
  }

  Status WritePiece(const StoredPart& stored, const ExtentPart& piece) {
    const std::uint64_t element_size = DTypeSizeBytes(stored.tensor->dtype);
    const Region region(stored.part->box,
                        Run{piece.begin / element_size, piece.end / element_size});
    buffer_.resize(piece.size());
    std::uint64_t at = 0;
    // A run is read box by box, which lie one behind the other in it.
    for (const Box& box : layout::DecomposeRun(region)) {
      const std::uint64_t size = layout::BoxElementCount(box) * element_size;
      SEALPOINT_RETURN_IF_ERROR(model_.Read(stored.tensor->name, box,
                                            MutableMemoryView::Host(buffer_.data() + at, size)));
      at += size;
    }
    return writer_->Add(SpecOf(*stored.tensor), region,
                        MemoryView::Host(buffer_.data(), buffer_.size()));
  }

  Engine& engine_;
  const SafetensorsModel& model_;
  const std::string& directory_;
  const ImportOptions& options_;
  std::vector<std::size_t> chosen_;  // tensors of the model
  std::vector<NamedObject> objects_;
  std::unique_ptr<BlobWriter> writer_;
  Bytes buffer_;
  std::uint64_t done_bytes_ = 0;
};

}  // namespace
}  // namespace internal::interop

Result<CommitInfo> ImportSafetensors(Engine& engine, const SafetensorsModel& model,
                                     const std::string& directory, const ImportOptions& options) {
  return internal::interop::Import(engine, model, directory, options).Execute();
}

}  // namespace sealpoint
