// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_stream.h"

#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "sealpoint/id.h"

namespace sealpoint::internal::writer {

Result<format::FileHeader> BlobStream::MakeHeader(const Context& context,
                                                  const BlobWriterOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(const BlobId id, BlobId::Random());
  return format::FileHeader{
      .kind = format::FileKind::kBlob,
      .features = {.compat = (options.fingerprints ? format::kFingerprintFeature : 0) |
                             (context.has_attributes ? format::kAttributeFeature : 0),
                   .incompat = options.has_base ? format::kDeltaFeatures : 0},
      .id = id,
      .attempt = options.attempt,
      .step = options.step};
}

BlobStream::BlobStream(const Context& context, const format::FileHeader& header,
                       transfer::StreamTarget target)
    : target_(target),
      announces_attributes_((header.features.compat & format::kAttributeFeature) != 0),
      layout_(header, context.tensors),
      stream_(*context.engine.pool, *context.engine.io),
      intakes_({.engine = context.engine,
                .copies = context.copies,
                .stream = stream_,
                .chunks = layout_,
                .checks_copies = context.checks_copies},
               target) {
  stream_.SetDrain(context.drain);
}

Result<std::unique_ptr<BlobStream>> BlobStream::Create(const Context& context,
                                                       const format::FileHeader& header,
                                                       WritableFile& file) {
  const transfer::StreamTarget target = file.is_direct() ? transfer::StreamTarget::kDirectFile
                                                         : transfer::StreamTarget::kBufferedFile;
  std::unique_ptr<BlobStream> blob(new BlobStream(context, header, target));
  blob->stream_.Bind(file);
  SEALPOINT_RETURN_IF_ERROR(blob->stream_.Append(blob->layout_.header()));
  return blob;
}

Result<std::unique_ptr<BlobStream>> BlobStream::CreateStaged(const Context& context,
                                                             const format::FileHeader& header) {
  std::unique_ptr<BlobStream> blob(new BlobStream(context, header, transfer::StreamTarget::kNone));
  SEALPOINT_RETURN_IF_ERROR(blob->stream_.Append(blob->layout_.header()));
  return blob;
}

void BlobStream::Bind(WritableFile& file, const AttemptId& attempt) {
  layout_.SetAttempt(attempt);
  intakes_.BeforeWrites();
  // The first buffer cannot have been written yet: the stream had no file.
  stream_.ReplaceFront(layout_.header());
  stream_.Bind(file);
}

Status BlobStream::AddShard(std::uint32_t tensor, const Region& region,
                            transfer::SourceReader& source,
                            const transfer::ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t first_record, AppendShard(source, encoding));
  layout_.DeclareShard(tensor, region, first_record);
  return {};
}

Status BlobStream::AddObject(const ObjectSpec& object, transfer::SourceReader source,
                             const transfer::ShardEncoding& encoding) {
  std::uint32_t first_record = 0;
  if (encoding.raw_size > 0) {
    SEALPOINT_ASSIGN_OR_RETURN(first_record, AppendShard(source, encoding));
  }
  layout_.DeclareObject(object, encoding, first_record);
  return {};
}

Result<std::uint32_t> BlobStream::AppendShard(transfer::SourceReader& source,
                                              const transfer::ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const BlobLayout::ShardPlace place, layout_.AddShard(encoding));
  SEALPOINT_RETURN_IF_ERROR(stream_.AppendZeros(place.padding));
  SEALPOINT_RETURN_IF_ERROR(intakes_.Choose(source, encoding).Begin(source, encoding));
  return place.first_record;
}

Status BlobStream::End() {
  SEALPOINT_RETURN_IF_ERROR(intakes_.Complete());
  SEALPOINT_RETURN_IF_ERROR(layout_.End([this](std::uint64_t zeros, ByteSpan bytes) {
    const Status padded = stream_.AppendZeros(zeros);
    return padded.ok() ? stream_.Append(bytes) : padded;
  }));
  return stream_.Flush();
}

}  // namespace sealpoint::internal::writer
