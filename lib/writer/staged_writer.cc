// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/staged_writer.h"

#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::internal {

StagedWriter::StagedWriter(EngineParts& engine, std::uint64_t reserved_buffer_count,
                           BlobWriterOptions options)
    : StateWriter(std::make_unique<Core>(engine, std::move(options))),
      engine_(engine),
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
  SEALPOINT_ASSIGN_OR_RETURN(const FileHeader header,
                             BlobStream::MakeHeader(AttemptId{}, core_->options.step));
  SEALPOINT_ASSIGN_OR_RETURN(auto blob, BlobStream::CreateStaged(BlobContext(), header));
  blobs_.push_back(std::move(blob));
  return OpenedBlob{.number = blobs_.size() - 1, .stream = blobs_.back().get()};
}

Status StagedWriter::PutAside(const OpenedBlob& full) {
  core_->full.push_back(full);
  return {};
}

StagedWriter::Bound StagedWriter::Bind(std::unique_ptr<Directory> directory,
                                       const AttemptId& attempt) && {
  core_->options.attempt = attempt;
  // Nothing may be added to what was staged: from now on it is being written.
  core_->full = Blobs();
  core_->open.clear();
  Bound bound{.writer = std::unique_ptr<BlobWriterImpl>(
                  new BlobWriterImpl(std::move(core_), std::move(directory))),
              .status = {}};
  BlobWriterImpl& writer = *bound.writer;
  bound.status = writer.Run([&] {
    engine_.ConvertReservation(std::exchange(reserved_buffer_count_, 0), blobs_.size());
    return writer.TakeOver(std::move(blobs_));
  });
  if (bound.status.ok()) writer.AwaitWrites();
  return bound;
}

}  // namespace sealpoint::internal
