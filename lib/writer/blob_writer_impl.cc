// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_writer_impl.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/layout/region_algebra.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal {
namespace {

ShardEncoding EncodingOf(const TensorSpec& tensor, const Region& region) {
  return {.raw_size = region.element_count() * ElementSize(tensor),
          .chunk_size = tensor.chunk_size_bytes,
          .element_size = ElementSize(tensor),
          .codec = tensor.codec,
          .codec_level = tensor.codec_level};
}

void KeepFirst(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

}  // namespace

Result<std::unique_ptr<BlobWriterImpl>> BlobWriterImpl::Create(EngineParts& engine,
                                                               const std::string& directory,
                                                               BlobWriterOptions options) {
  SEALPOINT_RETURN_IF_ERROR(engine.CheckUsable());
  if (options.size_max_bytes < kMiB) {
    return InvalidArgument("size_max_bytes is ", options.size_max_bytes, ", at least 1 MiB");
  }
  SEALPOINT_ASSIGN_OR_RETURN(auto opened, engine.storage->OpenDirectory(directory));
  return std::make_unique<BlobWriterImpl>(engine, std::move(opened), std::move(options));
}

BlobWriterImpl::~BlobWriterImpl() {
  if (engine_.CheckUsable().ok()) {
    if (!is_finished_) static_cast<void>(Abandon());
    return;
  }
  // In a forked child nobody writes what the open files would wait for: their memory is left.
  for (OpenBlob& blob : full_) blob.file.release();  // NOLINT(bugprone-unused-return-value)
  for (auto& [group, blob] : open_) {
    blob.file.release();  // NOLINT(bugprone-unused-return-value)
  }
}

Status BlobWriterImpl::Bind(std::unique_ptr<Directory> directory, const AttemptId& attempt) {
  return Run([&]() -> Status {
    SEALPOINT_CHECK(!directory_);
    directory_ = std::move(directory);
    options_.attempt = attempt;
    engine_.ConvertReservation(std::exchange(reserved_buffer_count_, 0),
                               full_.size() + open_.size());
    // All of them, also after an error: each owns a slot now.
    Status first;
    for (OpenBlob& blob : full_) KeepFirst(first, BindBlob(blob, attempt));
    for (auto& [group, blob] : open_) KeepFirst(first, BindBlob(blob, attempt));
    return first;
  });
}

void BlobWriterImpl::AwaitWrites() {
  constexpr std::chrono::milliseconds kInterval(20);
  std::vector<BlobFile*> files;
  for (const OpenBlob& blob : full_) files.push_back(blob.file.get());
  for (const auto& [group, blob] : open_) files.push_back(blob.file.get());
  const auto tell = [this](std::uint64_t bytes) {
    if (options_.on_progress) options_.on_progress(std::min(bytes, bytes_staged_));
  };
  for (BlobFile* const file : files) {
    while (!file->WaitForWrites(kInterval)) {
      std::uint64_t bytes = 0;
      for (const BlobFile* const one : files) bytes += one->bytes_written();
      tell(bytes);
    }
  }
  tell(bytes_staged_);
}

Status BlobWriterImpl::BindBlob(OpenBlob& blob, const AttemptId& attempt) {
  SEALPOINT_RETURN_IF_ERROR(blob.file->Bind(*directory_, attempt));
  blobs_[blob.number].has_file = true;
  return {};
}

template <typename Step>
Status BlobWriterImpl::Run(const Step& step) {
  SEALPOINT_RETURN_IF_ERROR(engine_.CheckUsable());
  if (is_finished_) return InvalidArgument("the blob writer is finished or abandoned");
  if (!failure_.ok()) return failure_;
  failure_ = step();
  // After an error the caller may free its memory: nothing may read it any more.
  if (!failure_.ok()) {
    copies_.Stop();
    static_cast<void>(Release());
  }
  return failure_;
}

Status BlobWriterImpl::Add(const TensorSpec& tensor, const Region& region,
                           const MemoryView& source) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckTensorSpec(tensor));
    SEALPOINT_RETURN_IF_ERROR(CheckSource(tensor, region, source));
    if (!defers_copies_) copies_.ForgetStreams();
    Status added = AddChecked(tensor, region, source);
    if (added.ok() && !defers_copies_) added = copies_.WaitForAll();
    if (added.ok() && !defers_copies_) added = Release();
    return std::move(added).AtTensor(tensor.name);
  });
}

Status BlobWriterImpl::AddDeclared(const std::function<Status(const AddOne& add)>& for_each) {
  SEALPOINT_CHECK(defers_copies_);
  return Run([&] {
    return for_each(
        [this](const TensorSpec& tensor, const Region& region, const MemoryView& source) -> Status {
          return AddChecked(tensor, region, source).AtTensor(tensor.name);
        });
  });
}

Status BlobWriterImpl::AwaitCopies() {
  return Run([this]() -> Status {
    ReserveStaging();
    SEALPOINT_RETURN_IF_ERROR(copies_.WaitForAll());
    return Release();
  });
}

Status BlobWriterImpl::Release() {
  Status first;
  for (OpenBlob& blob : full_) KeepFirst(first, blob.file->Release());
  for (auto& [group, blob] : open_) KeepFirst(first, blob.file->Release());
  return first;
}

Result<bool> BlobWriterImpl::Drain() {
  for (auto& [group, blob] : open_) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool has_completed, blob.file->CompleteOldest());
    if (has_completed) return true;
  }
  return false;
}

Result<std::uint32_t> BlobWriterImpl::NumberOf(const TensorSpec& tensor) {
  const TensorFacts now = FactsOf(tensor);
  const std::optional<std::uint32_t> number = tensors_->Find(tensor.name);
  if (!number) return tensors_->Add(now);
  const TensorFacts before = (*tensors_)[*number];
  const auto differs = [&](std::string_view what, const auto& its, const auto& first) {
    return InvalidArgument(what, " is ", its, ", but was ", first,
                           " when the tensor was first added")
        .AtTensor(tensor.name);
  };
  if (before.dtype != now.dtype) {
    return differs("dtype", DTypeName(now.dtype), DTypeName(before.dtype));
  }
  if (before.element_size != now.element_size) {
    return differs("element size", now.element_size, before.element_size);
  }
  if (!std::ranges::equal(before.shape, now.shape)) {
    return differs("shape", ShapeToString(tensor.shape),
                   ShapeToString({before.shape.begin(), before.shape.end()}));
  }
  if (before.chunk_size != now.chunk_size) {
    return differs("chunk size", now.chunk_size, before.chunk_size);
  }
  if (std::ranges::equal(before.placement, now.placement)) return *number;
  return InvalidArgument("placement differs from the one with which the tensor was first added")
      .AtTensor(tensor.name);
}

// A shard that no blob can hold whole is cut into runs at chunk borders; the runs of dense memory
// follow each other there, those of strided memory are gathered by SourceReader.
Status BlobWriterImpl::AddChecked(const TensorSpec& tensor, const Region& region,
                                  const MemoryView& source) {
  const std::uint64_t element_size = ElementSize(tensor);
  const std::uint64_t chunk_elements = tensor.chunk_size_bytes / element_size;
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t number, NumberOf(tensor));
  const std::uint64_t to_declare = BlobLayout::RoomToDeclare(FactsOf(tensor));
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
    const std::uint64_t room = to_declare + BlobLayout::RoomForBytes(encoding);
    SEALPOINT_ASSIGN_OR_RETURN(BlobFile* const blob, BlobWithRoom(tensor.group, room));
    SEALPOINT_RETURN_IF_ERROR(blob->AddShard(number, piece, reader, encoding));
    bytes_staged_ += encoding.raw_size;
    if (options_.on_progress) options_.on_progress(bytes_staged_);
  }
  return {};
}

Status BlobWriterImpl::AddEmpty(const TensorSpec& tensor) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckTensorSpec(tensor));
    if (!IsEmpty(tensor)) {
      return InvalidArgument("no extent is 0; add its regions").AtTensor(tensor.name);
    }
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t number, NumberOf(tensor));
    const std::uint64_t room = BlobLayout::RoomToDeclare(FactsOf(tensor));
    SEALPOINT_ASSIGN_OR_RETURN(BlobFile* const blob, BlobWithRoom(tensor.group, room));
    blob->AddEmptyTensor(number);
    return {};
  });
}

Status BlobWriterImpl::AddObject(std::string_view name, std::string_view media_type, ByteSpan bytes,
                                 Codec codec) {
  return Run([&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(CheckObjectName(name, media_type, codec));
    if (bytes.data() == nullptr && !bytes.empty()) {
      return InvalidArgument("object bytes are null").AtObject(name);
    }
    if (!objects_.emplace(name).second) {
      return InvalidArgument("object added twice").AtObject(name);
    }
    const ShardEncoding encoding{.raw_size = bytes.size(),
                                 .chunk_size = kChunkSizeDefaultBytes,
                                 .element_size = 1,
                                 .codec = codec,
                                 .codec_level = 1};
    const std::uint64_t room =
        BlobLayout::RoomToDeclare(name, media_type) + BlobLayout::RoomForBytes(encoding);
    SEALPOINT_ASSIGN_OR_RETURN(BlobFile* const blob, BlobWithRoom("", room));
    SEALPOINT_RETURN_IF_ERROR(blob->AddObject(name, media_type, SourceReader(bytes), encoding));
    if (!defers_copies_) SEALPOINT_RETURN_IF_ERROR(Release());
    bytes_staged_ += encoding.raw_size;
    if (options_.on_progress) options_.on_progress(bytes_staged_);
    return {};
  });
}

Result<BlobFile*> BlobWriterImpl::BlobWithRoom(const std::string& group, std::uint64_t room) {
  const auto found = open_.find(group);
  if (found == open_.end()) return OpenNewBlob(group);
  BlobFile& current = *found->second.file;
  if (current.projected_size() + room <= options_.size_max_bytes) return &current;
  if (directory_) {
    SEALPOINT_RETURN_IF_ERROR(found->second.file->AppendTail());
    SEALPOINT_RETURN_IF_ERROR(CloseBlob(found->second));
  } else {
    full_.push_back(std::move(found->second));
  }
  open_.erase(found);
  return OpenNewBlob(group);
}

Result<BlobFile*> BlobWriterImpl::OpenNewBlob(const std::string& group) {
  auto created = directory_
                     ? BlobFile::Create(context(), *directory_, options_.attempt, options_.step)
                     : BlobFile::CreateHeld(context(), options_.step);
  SEALPOINT_ASSIGN_OR_RETURN(auto file, std::move(created));
  file->SetDrain([this] { return Drain(); });
  OpenBlob blob{.number = blobs_.size(), .file = std::move(file)};
  blobs_.push_back({.id = blob.file->id(), .has_file = directory_ != nullptr});
  return open_.emplace(group, std::move(blob)).first->second.file.get();
}

// Only now, while the last bytes are being written: before the first one it would delay them all.
void BlobWriterImpl::ReserveStaging() {
  if (expected_.bytes == 0 || open_.empty()) return;
  const bool borrows = directory_ && !open_.begin()->second.file->is_direct();
  const std::uint64_t staged = expected_.bytes - (borrows ? expected_.borrowable_bytes : 0);
  const std::uint64_t needed = staged / engine_.pool->buffer_size_bytes() + 1;
  // What is being copied from a device holds buffers besides those that are being written.
  const bool is_bounded = directory_ && !expected_.has_device_memory;
  const std::uint64_t used_max = open_.size() * FileStream::BuffersMax(*engine_.io);
  // This save has what it needs, so that it cannot fail by this.
  static_cast<void>(engine_.pool->Reserve(is_bounded ? std::min(needed, used_max) : needed));
}

Status BlobWriterImpl::CloseBlob(OpenBlob& blob) {
  SEALPOINT_ASSIGN_OR_RETURN(blobs_[blob.number].summary, blob.file->Finish(options_.limits));
  return {};
}

Result<std::vector<BlobSummary>> BlobWriterImpl::Finish() {
  const Status status = Run([&]() -> Status {
    if (!directory_) return InvalidArgument("the blob writer has no directory yet");
    for (OpenBlob& blob : full_) SEALPOINT_RETURN_IF_ERROR(blob.file->AppendTail());
    for (auto& [group, blob] : open_) SEALPOINT_RETURN_IF_ERROR(blob.file->AppendTail());
    tensors_.reset();
    for (OpenBlob& blob : full_) SEALPOINT_RETURN_IF_ERROR(CloseBlob(blob));
    for (auto& [group, blob] : open_) SEALPOINT_RETURN_IF_ERROR(CloseBlob(blob));
    return blobs_.empty() ? Status() : directory_->Sync();
  });
  if (!status.ok()) return status;
  is_finished_ = true;
  full_.clear();
  open_.clear();
  std::vector<BlobSummary> summaries;
  summaries.reserve(blobs_.size());
  for (BegunBlob& blob : blobs_) summaries.push_back(std::move(blob.summary));
  return summaries;
}

Status BlobWriterImpl::Abandon() {
  SEALPOINT_RETURN_IF_ERROR(engine_.CheckUsable());
  is_finished_ = true;
  if (!copies_.WaitForAll().ok()) copies_.Stop();
  full_.clear();
  open_.clear();
  engine_.ConvertReservation(std::exchange(reserved_buffer_count_, 0), 0);
  Status first;
  for (const BegunBlob& blob : blobs_) {
    if (!blob.has_file) continue;  // a file of that name is another's (R-CMT-15)
    Status status = directory_->Remove(BlobName(blob.id));
    if (status.code() != Code::kNotFound) KeepFirst(first, std::move(status));
  }
  blobs_.clear();
  return first;
}

}  // namespace sealpoint::internal
