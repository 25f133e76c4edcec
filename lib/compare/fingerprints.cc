// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/compare/node.h"
#include "lib/compare/select_tensors.h"
#include "lib/fingerprint/part.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/tensor_stream/stream.h"
#include "sealpoint/content.h"

// spec/fingerprint.md.

namespace sealpoint {
namespace internal::compare {
namespace {

namespace stream = internal::tensor_stream;

// In the order of the numbers.
Result<std::vector<Fingerprint>> Compute(const Checkpoint& checkpoint,
                                         const std::vector<std::size_t>& tensors,
                                         const ContentOptions& options) {
  const std::vector<stream::Piece> pieces = stream::WholeTensors(checkpoint, tensors);
  pipeline::ByteMeter meter(pipeline::ReportTo(options.on_progress, Phase::kCompare),
                            stream::RawBytes(pieces));
  std::vector<TensorInfo> infos(checkpoint.tensor_count());
  for (const std::size_t tensor : tensors) infos[tensor] = checkpoint.tensor(tensor);
  std::vector<Fingerprint> sums(infos.size());
  SEALPOINT_RETURN_IF_ERROR(stream::ForEachPiece<Fingerprint>(
      std::array{stream::Side{checkpoint}}, pieces, options.threads, meter,
      [&](const stream::Piece& piece, const std::array<ByteSpan, 1>& bytes) {
        const TensorInfo& info = infos[piece.tensor];
        return fingerprint::Part(info.shape, info.element_size, piece.region).Of(0, bytes[0]);
      },
      [&](const stream::Piece& piece, const Fingerprint& part) { sums[piece.tensor] += part; }));
  std::vector<Fingerprint> fingerprints;
  for (const std::size_t tensor : tensors) fingerprints.push_back(sums[tensor]);
  return fingerprints;
}

ContentFingerprint Join(const Checkpoint& checkpoint, const std::vector<std::size_t>& tensors,
                        const std::vector<Fingerprint>& fingerprints) {
  ContentFingerprint content;
  Node node;
  node.Begin("SPF1 content");
  node.AddNumber(std::uint64_t{tensors.size()});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorInfo info = checkpoint.tensor(tensors[i]);
    node.AddTensor(info);
    for (const std::uint64_t value : fingerprints[i].values()) node.AddNumber(value);
    content.tensors.push_back({.name = std::move(info.name), .fingerprint = fingerprints[i]});
  }
  content.digest = node.Finish();
  return content;
}

}  // namespace
}  // namespace internal::compare

std::string ContentFingerprint::ToString() const { return "spfc1:" + digest.ToHex(); }

Result<ContentFingerprint> ComputeContentFingerprint(const Checkpoint& checkpoint,
                                                     const ContentOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::size_t> tensors,
                             internal::compare::SelectTensors(checkpoint, options));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Fingerprint> fingerprints,
                             internal::compare::Compute(checkpoint, tensors, options));
  return internal::compare::Join(checkpoint, tensors, fingerprints);
}

Result<ContentFingerprint> StoredContentFingerprint(const Checkpoint& checkpoint,
                                                    const ContentOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::size_t> tensors,
                             internal::compare::SelectTensors(checkpoint, options));
  std::vector<Fingerprint> fingerprints;
  for (const std::size_t tensor : tensors) {
    const TensorInfo info = checkpoint.tensor(tensor);
    if (!info.fingerprint) {
      return internal::MakeError(Code::kNotFound, "the writer stored no fingerprint")
          .AtTensor(info.name);
    }
    fingerprints.push_back(*info.fingerprint);
  }
  return internal::compare::Join(checkpoint, tensors, fingerprints);
}

Result<std::vector<Status>> CheckFingerprints(const Checkpoint& checkpoint,
                                              const ContentOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(std::vector<std::size_t> tensors,
                             internal::compare::SelectTensors(checkpoint, options));
  std::erase_if(tensors, [&](std::size_t i) { return !checkpoint.tensor(i).fingerprint; });
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Fingerprint> fingerprints,
                             internal::compare::Compute(checkpoint, tensors, options));
  std::vector<Status> violations;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo info = checkpoint.tensor(tensors[i]);
    if (fingerprints[i] == info.fingerprint) continue;
    violations.push_back(internal::RuleError(Code::kCorrupt, "R-FPR-03", "the elements have ",
                                             fingerprints[i].ToString(), ", the writer stored ",
                                             info.fingerprint->ToString())
                             .AtTensor(info.name));
  }
  return violations;
}

}  // namespace sealpoint
