// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/staged_writer.h"

#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::internal::writer {

StagedWriter::StagedWriter(pipeline::EngineParts& engine, std::uint64_t reserved_buffer_count,
                           BlobWriterOptions options, std::uint64_t part_size_bytes)
    : StateWriter(std::make_unique<Core>(engine, std::move(options))),
      engine_(engine),
      part_size_bytes_(part_size_bytes),
      reserved_buffer_count_(reserved_buffer_count) {}

StagedWriter::~StagedWriter() {
  // In a forked child nobody brings what the buffers would wait for: their memory is left.
  if (!engine_.CheckUsable().ok()) {
    for (auto& blob : blobs_) blob.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  if (core_) StopCopies();
  blobs_.clear();
  engine_.ConvertReservation(reserved_buffer_count_, 0);
}

Result<StateWriter::OpenedBlob> StagedWriter::OpenBlob() {
  const BlobStream::Context context = BlobContext();
  SEALPOINT_ASSIGN_OR_RETURN(const format::FileHeader header,
                             BlobStream::MakeHeader(context, core_->options));
  SEALPOINT_ASSIGN_OR_RETURN(auto blob, BlobStream::CreateStaged(context, header));
  blobs_.push_back(std::move(blob));
  return OpenedBlob{.number = blobs_.size() - 1, .stream = blobs_.back().get()};
}

Status StagedWriter::CloseFull(const OpenedBlob& full) {
  core_->full.push_back(full);
  return {};
}

void StagedWriter::Drop(const std::set<std::string>& groups) {
  std::vector<OpenedBlob> kept = Blobs();
  std::erase_if(kept, [&](const OpenedBlob& blob) { return groups.contains(blob.group); });
  std::vector<std::unique_ptr<BlobStream>> streams;
  for (OpenedBlob& blob : kept) {
    streams.push_back(std::move(blobs_[blob.number]));
    blob.number = streams.size() - 1;
  }
  core_->full = std::move(kept);
  core_->open.clear();
  blobs_ = std::move(streams);
}

StagedWriter::Bound StagedWriter::Bind(std::unique_ptr<Directory> directory,
                                       const AttemptId& attempt) && {
  core_->options.attempt = attempt;
  // Nothing may be added to what was staged: from now on it is being written.
  core_->full = Blobs();
  core_->open.clear();
  Bound bound{.writer = std::unique_ptr<BlobWriterImpl>(
                  new BlobWriterImpl(std::move(core_), std::move(directory), part_size_bytes_)),
              .status = {}};
  BlobWriterImpl& writer = *bound.writer;
  bound.status = writer.Run([&] {
    engine_.ConvertReservation(std::exchange(reserved_buffer_count_, 0), blobs_.size(),
                               part_size_bytes_);
    return writer.TakeOver(std::move(blobs_));
  });
  if (bound.status.ok()) writer.AwaitWrites();
  return bound;
}

}  // namespace sealpoint::internal::writer
