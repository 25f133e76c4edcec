// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/macros.h"
#include "lib/compare/node.h"
#include "lib/compare/select_tensors.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/tensor_stream/stream.h"
#include "sealpoint/content.h"

// spec/content-digest.md.

namespace sealpoint {
namespace internal::compare {
namespace {

constexpr std::uint64_t kBlockBytes = 64 * kKiB;
// Runs of whole tensors are whole blocks, except for the last.
static_assert(tensor_stream::kRunUnitBytes % kBlockBytes == 0);

std::vector<Digest> BlockDigests(ByteSpan bytes) {
  std::vector<Digest> digests;
  Node node;
  while (!bytes.empty()) {
    const ByteSpan block = bytes.first(std::min(bytes.size(), kBlockBytes));
    node.Begin("SPC1 block");
    node.Add(block);
    digests.push_back(node.Finish());
    bytes = bytes.subspan(block.size());
  }
  return digests;
}

// The digests of tensors, whose blocks come in order.
class TensorDigests {
 public:
  TensorDigests(const Checkpoint& checkpoint, const std::vector<std::size_t>& tensors)
      : checkpoint_(checkpoint), tensors_(tensors) {
    Begin();
  }

  void Add(std::size_t tensor, const std::vector<Digest>& blocks) {
    while (tensors_[done_.size()] != tensor) End();
    node_.Add(blocks);
  }
  std::vector<NamedDigest> Finish() && {
    while (done_.size() < tensors_.size()) End();
    return std::move(done_);
  }

 private:
  void Begin() {
    if (done_.size() == tensors_.size()) return;
    node_.Begin("SPC1 tensor");
    node_.AddTensor(checkpoint_.tensor(tensors_[done_.size()]));
  }
  void End() {
    const std::string_view name = checkpoint_.tensor_name(tensors_[done_.size()]);
    done_.push_back({.name = std::string(name), .digest = node_.Finish()});
    Begin();
  }

  const Checkpoint& checkpoint_;
  const std::vector<std::size_t>& tensors_;
  std::vector<NamedDigest> done_;
  Node node_;
};

Result<NamedDigest> ObjectDigest(const Checkpoint& checkpoint, const ObjectInfo& object) {
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes bytes, checkpoint.ReadObject(object.name));
  Node node;
  node.Begin("SPC1 object");
  node.AddText(object.name);
  node.AddText(object.media_type);
  node.AddNumber(object.size_bytes);
  node.Add(BlockDigests(bytes));
  return NamedDigest{.name = object.name, .digest = node.Finish()};
}

Digest DigestOfAll(const ContentDigest& content) {
  Node node;
  node.Begin("SPC1 content");
  node.AddNumber(std::uint64_t{content.tensors.size()});
  node.AddNumber(std::uint64_t{content.objects.size()});
  for (const auto* list : {&content.tensors, &content.objects}) {
    for (const NamedDigest& named_digest : *list) node.Add(named_digest.digest.bytes);
  }
  return node.Finish();
}

}  // namespace
}  // namespace internal::compare

std::string ContentDigest::ToString() const { return "spc1:" + digest.ToHex(); }

Result<ContentDigest> ComputeContentDigest(const Checkpoint& checkpoint,
                                           const ContentOptions& options) {
  using namespace internal::compare;  // NOLINT: what this file is about
  namespace stream = internal::tensor_stream;
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::size_t> tensors,
                             SelectTensors(checkpoint, options));
  const std::vector<stream::Piece> pieces = stream::WholeTensors(checkpoint, tensors);
  const bool has_objects = options.patterns.empty();
  const std::vector<ObjectInfo> objects =
      has_objects ? checkpoint.objects() : std::vector<ObjectInfo>();
  ContentDigest content;
  content.raw_bytes = stream::RawBytes(pieces);
  for (const ObjectInfo& object : objects) content.raw_bytes += object.size_bytes;
  internal::pipeline::ByteMeter meter(
      internal::pipeline::ReportTo(options.on_progress, Phase::kCompare), content.raw_bytes);
  TensorDigests digests(checkpoint, tensors);
  SEALPOINT_RETURN_IF_ERROR(stream::ForEachPiece<std::vector<Digest>>(
      std::array{stream::Side{checkpoint}}, pieces, options.threads, meter,
      [](const stream::Piece&, const std::array<ByteSpan, 1>& bytes) {
        return BlockDigests(bytes[0]);
      },
      [&](const stream::Piece& piece, const std::vector<Digest>& blocks) {
        digests.Add(piece.tensor, blocks);
      }));
  content.tensors = std::move(digests).Finish();
  for (const ObjectInfo& object : objects) {
    SEALPOINT_ASSIGN_OR_RETURN(NamedDigest digest, ObjectDigest(checkpoint, object));
    content.objects.push_back(std::move(digest));
    SEALPOINT_RETURN_IF_ERROR(meter.Add(object.size_bytes));
  }
  content.digest = DigestOfAll(content);
  return content;
}

}  // namespace sealpoint
