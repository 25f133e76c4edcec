// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/blob_writer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/layout/region_algebra.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/writer/blob_file.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint {
namespace internal {
namespace {

class BlobWriterImpl final : public BlobWriter {
 public:
  BlobWriterImpl(EngineParts& engine, std::unique_ptr<Directory> directory,
                 BlobWriterOptions options)
      : engine_(engine), directory_(std::move(directory)), options_(std::move(options)) {}

  ~BlobWriterImpl() override {
    if (!engine_.CheckUsable().ok()) {
      // In a forked child nobody writes what the open files would wait for: their memory is left.
      for (auto& [group, blob] : open_)
        blob.file.release();  // NOLINT(bugprone-unused-return-value)
    } else if (!is_finished_) {
      static_cast<void>(Abandon());
    }
  }

  Status Add(const TensorSpec& tensor, const Region& region,
             const ConstMemoryView& source) override;
  Status AddEmpty(const TensorSpec& tensor) override;
  Status AddObject(std::string_view name, std::string_view media_type, ByteSpan bytes,
                   Codec codec) override;
  Result<std::vector<BlobSummary>> Finish() override;
  Status Abandon() override;

 private:
  // A blob group has at most one open blob at a time.
  struct OpenBlob {
    std::size_t summary_slot = 0;  // creation order
    std::unique_ptr<BlobFile> file;
  };

  // Runs one step of the writer: refuses where it cannot go on, keeps the first error.
  template <typename Step>
  Status Run(const Step& step);

  Status AddChecked(const TensorSpec& tensor, const Region& region, const ConstMemoryView& source);
  // Remembers what is said of a tensor first; InvalidArgument where it is said differently later.
  Status CheckSameAsBefore(const TensorSpec& tensor);
  // The open blob of a group with `room` bytes to spare, after closing a fuller one.
  Result<BlobFile*> BlobWithRoom(const std::string& group, std::uint64_t room);
  Result<BlobFile*> OpenNewBlob(const std::string& group);
  Status CloseBlob(OpenBlob& blob);

  EngineParts& engine_;
  std::unique_ptr<Directory> directory_;
  BlobWriterOptions options_;
  std::map<std::string, OpenBlob> open_;                    // by group
  std::vector<std::pair<BlobId, BlobSummary>> blobs_;       // in order of creation
  std::map<std::string, TensorSpec, std::less<>> tensors_;  // as first added
  std::set<std::string, std::less<>> objects_;
  std::uint64_t bytes_staged_ = 0;
  Status failure_;
  bool is_finished_ = false;
};

template <typename Step>
Status BlobWriterImpl::Run(const Step& step) {
  SEALPOINT_RETURN_IF_ERROR(engine_.CheckUsable());
  if (is_finished_) return InvalidArgument("the blob writer is finished or abandoned");
  if (failure_.ok()) failure_ = step();
  return failure_;
}

ShardEncoding EncodingOf(const TensorSpec& tensor, const Region& region) {
  return {.raw_size = region.element_count() * ElementSize(tensor),
          .chunk_size = tensor.chunk_size_bytes,
          .element_size = ElementSize(tensor),
          .codec = tensor.codec,
          .codec_level = tensor.codec_level};
}

Status BlobWriterImpl::Add(const TensorSpec& tensor, const Region& region,
                           const ConstMemoryView& source) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckTensorSpec(tensor));
    SEALPOINT_RETURN_IF_ERROR(CheckSource(tensor, region, source));
    SEALPOINT_RETURN_IF_ERROR(CheckSameAsBefore(tensor));
    return AddChecked(tensor, region, source).AtTensor(tensor.name);
  });
}

Status BlobWriterImpl::CheckSameAsBefore(const TensorSpec& tensor) {
  const auto found = tensors_.find(tensor.name);
  if (found == tensors_.end()) {
    tensors_.emplace(tensor.name, tensor);
    return Status();
  }
  const TensorSpec& before = found->second;
  const bool agrees = before.dtype == tensor.dtype && before.shape == tensor.shape &&
                      ElementSize(before) == ElementSize(tensor) &&
                      before.chunk_size_bytes == tensor.chunk_size_bytes &&
                      before.placement == tensor.placement;
  if (agrees) return Status();
  return InvalidArgument("added before with another dtype, shape, chunk size or placement")
      .AtTensor(tensor.name);
}

// A shard that no blob can hold whole is cut into runs at chunk borders; the runs of dense memory
// follow each other there, those of strided memory are gathered by SourceReader.
Status BlobWriterImpl::AddChecked(const TensorSpec& tensor, const Region& region,
                                  const ConstMemoryView& source) {
  const std::uint64_t element_size = ElementSize(tensor);
  const std::uint64_t chunk_elements = tensor.chunk_size_bytes / element_size;
  const std::uint64_t to_declare = BlobFile::RoomToDeclare(tensor);
  const std::uint64_t reserved = to_declare + kHeaderSize + kTrailerSize + kFileAlignment;
  const std::uint64_t payload_max =
      options_.size_max_bytes > reserved ? options_.size_max_bytes - reserved : 0;
  const std::uint64_t chunks_max = payload_max / (tensor.chunk_size_bytes + 2 * kRecordSize);
  const std::uint64_t elements_max = std::max<std::uint64_t>(chunks_max, 1) * chunk_elements;
  SourceReader reader(region, static_cast<std::uint32_t>(element_size), source);
  for (std::uint64_t begin = 0; begin < region.element_count(); begin += elements_max) {
    const std::uint64_t end = std::min(region.element_count(), begin + elements_max);
    const Region piece = SubRun(region, begin, end);
    const ShardEncoding encoding = EncodingOf(tensor, piece);
    const std::uint64_t room = to_declare + BlobFile::RoomForBytes(encoding);
    SEALPOINT_ASSIGN_OR_RETURN(BlobFile* const blob, BlobWithRoom(tensor.group, room));
    SEALPOINT_RETURN_IF_ERROR(blob->AddShard(tensor, piece, reader, encoding));
    bytes_staged_ += encoding.raw_size;
    if (options_.on_progress) options_.on_progress(bytes_staged_);
  }
  return Status();
}

Status BlobWriterImpl::AddEmpty(const TensorSpec& tensor) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckTensorSpec(tensor));
    if (!IsEmpty(tensor)) {
      return InvalidArgument("no extent is 0; add its regions").AtTensor(tensor.name);
    }
    SEALPOINT_RETURN_IF_ERROR(CheckSameAsBefore(tensor));
    const std::uint64_t room = BlobFile::RoomToDeclare(tensor);
    SEALPOINT_ASSIGN_OR_RETURN(BlobFile* const blob, BlobWithRoom(tensor.group, room));
    blob->AddEmptyTensor(tensor);
    return Status();
  });
}

Status BlobWriterImpl::AddObject(std::string_view name, std::string_view media_type, ByteSpan bytes,
                                 Codec codec) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckObjectName(name, media_type, codec));
    if (bytes.data() == nullptr && !bytes.empty()) {
      return InvalidArgument("object bytes are null").AtTensor(name);
    }
    if (!objects_.emplace(name).second) {
      return InvalidArgument("object added twice").AtTensor(name);
    }
    const ShardEncoding encoding{.raw_size = bytes.size(),
                                 .chunk_size = kChunkSizeDefaultBytes,
                                 .element_size = 1,
                                 .codec = codec,
                                 .codec_level = 1};
    const std::uint64_t room =
        BlobFile::RoomToDeclare(name, media_type) + BlobFile::RoomForBytes(encoding);
    SEALPOINT_ASSIGN_OR_RETURN(BlobFile* const blob, BlobWithRoom("", room));
    SEALPOINT_RETURN_IF_ERROR(blob->AddObject(name, media_type, SourceReader(bytes), encoding));
    bytes_staged_ += encoding.raw_size;
    if (options_.on_progress) options_.on_progress(bytes_staged_);
    return Status();
  });
}

Result<BlobFile*> BlobWriterImpl::BlobWithRoom(const std::string& group, std::uint64_t room) {
  const auto found = open_.find(group);
  if (found == open_.end()) return OpenNewBlob(group);
  BlobFile& current = *found->second.file;
  if (current.projected_size() + room <= options_.size_max_bytes) return &current;
  SEALPOINT_RETURN_IF_ERROR(CloseBlob(found->second));
  open_.erase(found);
  return OpenNewBlob(group);
}

Result<BlobFile*> BlobWriterImpl::OpenNewBlob(const std::string& group) {
  SEALPOINT_ASSIGN_OR_RETURN(
      auto file, BlobFile::Create(engine_, *directory_, options_.attempt, options_.step));
  OpenBlob blob{.summary_slot = blobs_.size(), .file = std::move(file)};
  blobs_.emplace_back(blob.file->id(), BlobSummary());
  return open_.emplace(group, std::move(blob)).first->second.file.get();
}

Status BlobWriterImpl::CloseBlob(OpenBlob& blob) {
  SEALPOINT_ASSIGN_OR_RETURN(blobs_[blob.summary_slot].second, blob.file->Finish(options_.limits));
  return Status();
}

Result<std::vector<BlobSummary>> BlobWriterImpl::Finish() {
  const Status status = Run([&]() -> Status {
    for (auto& [group, blob] : open_) SEALPOINT_RETURN_IF_ERROR(CloseBlob(blob));
    return blobs_.empty() ? Status() : directory_->Sync();
  });
  if (!status.ok()) return status;
  is_finished_ = true;
  open_.clear();
  std::vector<BlobSummary> summaries;
  summaries.reserve(blobs_.size());
  for (const auto& [id, summary] : blobs_) summaries.push_back(summary);
  return summaries;
}

Status BlobWriterImpl::Abandon() {
  SEALPOINT_RETURN_IF_ERROR(engine_.CheckUsable());
  is_finished_ = true;
  open_.clear();
  Status first;
  for (const auto& [id, summary] : blobs_) {
    Status status = directory_->Remove(BlobName(id));
    if (first.ok() && !status.ok() && status.code() != Code::kNotFound) first = std::move(status);
  }
  blobs_.clear();
  return first;
}

}  // namespace
}  // namespace internal

Result<std::unique_ptr<BlobWriter>> BlobWriter::Create(Engine& engine, const std::string& directory,
                                                       BlobWriterOptions options) {
  internal::EngineParts& parts = engine.parts();
  SEALPOINT_RETURN_IF_ERROR(parts.CheckUsable());
  if (options.size_max_bytes < kMiB) {
    return internal::InvalidArgument("size_max_bytes is ", options.size_max_bytes,
                                     ", at least 1 MiB");
  }
  SEALPOINT_ASSIGN_OR_RETURN(auto opened, parts.storage->OpenDirectory(directory));
  return std::unique_ptr<BlobWriter>(
      std::make_unique<internal::BlobWriterImpl>(parts, std::move(opened), std::move(options)));
}

}  // namespace sealpoint
