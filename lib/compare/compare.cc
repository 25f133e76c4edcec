// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/compare/chunk_compare.h"
#include "lib/compare/numeric.h"
#include "lib/compare/values.h"
#include "lib/pipeline/byte_meter.h"
#include "lib/pipeline/thread_pool.h"
#include "lib/tensor_stream/stream.h"
#include "sealpoint/content.h"

namespace sealpoint {
namespace internal::compare {
namespace {

using tensor_stream::AppendRuns;
using tensor_stream::Piece;
using tensor_stream::Side;

// A tensor of the first checkpoint, and what is found of it.
struct Pair {
  std::optional<std::size_t> other;  // its number in the second
  bool is_selected = false;
  ContentChange change = ContentChange::kNone;
  bool placement_differs = false;
  bool attributes_differ = false;
  ChunkComparison chunks;
  std::uint64_t changed_bytes = 0;
  DifferenceSums sums;  // of what was read
};

class Comparison {
 public:
  Comparison(const load::CheckpointImpl& first, const load::CheckpointImpl& second,
             const CompareOptions& options)
      : first_(first), second_(second), options_(options), pairs_(first.tensor_count()) {}

  Result<CompareReport> Run() {
    SEALPOINT_RETURN_IF_ERROR(pipeline::CheckThreads("threads", options_.threads));
    if (options_.numeric && options_.digests_only) {
      return InvalidArgument("numeric differences need payload, which digests_only excludes");
    }
    SEALPOINT_RETURN_IF_ERROR(MatchNames());
    SEALPOINT_RETURN_IF_ERROR(Select());
    SEALPOINT_RETURN_IF_ERROR(pipeline::ParallelFor(
        pipeline::ChosenThreads(options_.threads, tensor_stream::kThreadsForAuto), pairs_.size(),
        [this](int, std::size_t tensor) { return CompareTables(tensor); }));
    SEALPOINT_RETURN_IF_ERROR(ReadPayload());
    SEALPOINT_RETURN_IF_ERROR(CompareObjects());
    AddTensors();
    return std::move(report_);
  }

 private:
  Status MatchNames() {
    is_matched_.resize(second_.tensor_count());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const std::string name = NameInSecond(i);
      pairs_[i].other = second_.index().FindTensor(name);
      if (!pairs_[i].other) continue;
      if (is_matched_[*pairs_[i].other]) {
        return InvalidArgument("two tensors of the first checkpoint are named ", name,
                               " in the second, expected one")
            .AtTensor(first_.tensor_name(i));
      }
      is_matched_[*pairs_[i].other] = true;
    }
    return {};
  }
  // What no pattern selects in the second counts as matched: it is not compared.
  Status Select() {
    std::vector<bool> first(pairs_.size(), options_.patterns.empty());
    std::vector<bool> second(is_matched_.size(), options_.patterns.empty());
    for (const std::string& pattern : options_.patterns) {
      const auto in_first = first_.MatchTensorNumbers({pattern});
      const auto in_second = second_.MatchTensorNumbers({pattern});
      if (!in_first && !in_second) return in_first.error();
      for (const std::size_t i : in_first.value_or(std::vector<std::size_t>())) first[i] = true;
      for (const std::size_t i : in_second.value_or(std::vector<std::size_t>())) second[i] = true;
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      Pair& pair = pairs_[i];
      pair.is_selected = first[i] || (pair.other && second[*pair.other]);
    }
    for (std::size_t i = 0; i < second.size(); ++i) is_matched_[i] = is_matched_[i] || !second[i];
    return {};
  }
  std::string NameInSecond(std::size_t tensor) const {
    const std::string_view name = first_.tensor_name(tensor);
    return options_.rename ? options_.rename(name) : std::string(name);
  }

  Status CompareTables(std::size_t tensor) {
    Pair& pair = pairs_[tensor];
    if (!pair.is_selected) return {};
    if (!pair.other) {
      pair.change = ContentChange::kRemoved;
      return {};
    }
    const TensorInfo a = first_.tensor(tensor);
    const TensorInfo b = second_.tensor(*pair.other);
    pair.placement_differs = a.placement != b.placement;
    pair.attributes_differ = a.attributes != b.attributes;
    if (a.dtype != b.dtype || a.element_size != b.element_size) {
      pair.change = ContentChange::kDType;
    } else if (a.shape != b.shape) {
      pair.change = ContentChange::kShape;
    } else if (a.raw_bytes > 0) {
      const bool have_fingerprints = a.fingerprint && b.fingerprint;
      if (have_fingerprints && a.fingerprint == b.fingerprint) return {};
      SEALPOINT_ASSIGN_OR_RETURN(pair.chunks, CompareChunks(first_, tensor, second_, *pair.other));
      if (have_fingerprints && !options_.numeric) {
        // They differ somewhere: that is all that is asked.
        std::vector<Region>& unknown = pair.chunks.unknown;
        pair.chunks.changed.insert(pair.chunks.changed.end(), unknown.begin(), unknown.end());
        unknown.clear();
      }
      for (const Region& region : pair.chunks.changed) {
        pair.changed_bytes += region.element_count() * a.element_size;
      }
    }
    return {};
  }

  // Chunks that changed are read only if it is asked how much.
  std::vector<Piece> PiecesToRead() const {
    std::vector<Piece> pieces;
    if (options_.digests_only) return pieces;
    for (std::size_t tensor = 0; tensor < pairs_.size(); ++tensor) {
      const ChunkComparison& chunks = pairs_[tensor].chunks;
      if (chunks.unknown.empty() && (chunks.changed.empty() || !options_.numeric)) continue;
      const TensorInfo info = first_.tensor(tensor);
      for (const Region& region : chunks.unknown) AppendRuns(tensor, info, region, 2, pieces);
      if (!options_.numeric) continue;
      for (const Region& region : chunks.changed) AppendRuns(tensor, info, region, 2, pieces);
    }
    return pieces;
  }

  Status ReadPayload() {
    const std::vector<Piece> pieces = PiecesToRead();
    const std::uint64_t size = tensor_stream::RawBytes(pieces);
    pipeline::ByteMeter meter(pipeline::ReportTo(options_.on_progress, Phase::kCompare), size);
    report_.payload_bytes_read = 2 * size;
    std::vector<std::size_t> others(pairs_.size());
    for (std::size_t i = 0; i < others.size(); ++i) others[i] = pairs_[i].other.value_or(0);
    return tensor_stream::ForEachPiece<DifferenceSums>(
        std::array{Side{first_}, Side{second_, &others}}, pieces, options_.threads, meter,
        [this](const Piece& piece, const std::array<ByteSpan, 2>& bytes) {
          const metadata::TensorView tensor = first_.index().tensor(piece.tensor);
          const bool numeric = options_.numeric && HasValues(tensor.dtype());
          return SumDifferences(tensor.dtype(), tensor.element_size(), bytes[0], bytes[1], numeric);
        },
        [this](const Piece& piece, const DifferenceSums& sums) {
          pairs_[piece.tensor].sums.Add(sums);
        });
  }

  Status CompareObjects() {
    if (!options_.patterns.empty()) return {};
    std::map<std::string, std::pair<std::optional<std::size_t>, std::optional<std::size_t>>> all;
    for (std::size_t i = 0; i < first_.object_count(); ++i) all[first_.object(i).name].first = i;
    for (std::size_t i = 0; i < second_.object_count(); ++i) all[second_.object(i).name].second = i;
    for (const auto& [name, numbers] : all) {
      SEALPOINT_ASSIGN_OR_RETURN(const ContentChange change,
                                 CompareObject(numbers.first, numbers.second));
      if (change == ContentChange::kNone) {
        ++report_.equal_object_count;
      } else {
        report_.objects.push_back({.name = name, .change = change});
      }
    }
    return {};
  }

  Result<ContentChange> CompareObject(std::optional<std::size_t> first,
                                      std::optional<std::size_t> second) {
    if (!first) return ContentChange::kAdded;
    if (!second) return ContentChange::kRemoved;
    const metadata::ObjectView a = first_.index().object(*first);
    const metadata::ObjectView b = second_.index().object(*second);
    if (a.media_type() != b.media_type()) return ContentChange::kMediaType;
    if (a.size() != b.size()) return ContentChange::kBytes;
    if (options_.digests_only && a.chunk_size() != b.chunk_size()) return ContentChange::kUnknown;
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_equal,
                               ObjectsAreEqual(first_, a, second_, b, report_.table_bytes_read,
                                               report_.payload_bytes_read));
    return is_equal ? ContentChange::kNone : ContentChange::kBytes;
  }

  void AddTensors() {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      Pair& pair = pairs_[i];
      if (!pair.is_selected) continue;
      report_.table_bytes_read += pair.chunks.table_bytes_read;
      CountBytes(i);
      if (pair.change == ContentChange::kNone) ++report_.equal_tensor_count;
      if (pair.change != ContentChange::kNone || pair.placement_differs || pair.attributes_differ) {
        report_.tensors.push_back(Describe(i));
      }
    }
    for (std::size_t i = 0; i < is_matched_.size(); ++i) {
      if (is_matched_[i]) continue;
      report_.tensors.push_back(
          {.second_name = std::string(second_.tensor_name(i)), .change = ContentChange::kAdded});
    }
  }

  // What was read of chunks that changed counts by its elements, too: all payload is then known.
  void CountBytes(std::size_t tensor) {
    Pair& pair = pairs_[tensor];
    const std::uint64_t read_changed =
        pair.sums.changed_count * first_.index().tensor(tensor).element_size();
    pair.changed_bytes = options_.numeric ? read_changed : pair.changed_bytes + read_changed;
    if (options_.digests_only && !pair.chunks.unknown.empty())
      pair.change = ContentChange::kUnknown;
    if (pair.changed_bytes > 0) pair.change = ContentChange::kBytes;
  }

  TensorDifference Describe(std::size_t tensor) const {
    const Pair& pair = pairs_[tensor];
    TensorDifference difference{.name = std::string(first_.tensor_name(tensor)),
                                .change = pair.change,
                                .placement_differs = pair.placement_differs,
                                .attributes_differ = pair.attributes_differ,
                                .changed_bytes = pair.changed_bytes};
    if (pair.other) difference.second_name = second_.tensor_name(*pair.other);
    const bool is_numeric = options_.numeric && pair.change == ContentChange::kBytes &&
                            HasValues(first_.index().tensor(tensor).dtype());
    if (is_numeric) difference.numeric = pair.sums.Result();
    return difference;
  }

  const load::CheckpointImpl& first_;
  const load::CheckpointImpl& second_;
  const CompareOptions& options_;
  std::vector<Pair> pairs_;       // by number of the first's tensor
  std::vector<bool> is_matched_;  // by number of the second's
  CompareReport report_;
};

}  // namespace
}  // namespace internal::compare

bool CompareReport::is_same() const {
  return objects.empty() && std::ranges::all_of(tensors, [](const TensorDifference& one) {
           return one.change == ContentChange::kNone;
         });
}

Result<CompareReport> Compare(const Checkpoint& first, const Checkpoint& second,
                              const CompareOptions& options) {
  const auto* const a = dynamic_cast<const internal::load::CheckpointImpl*>(&first);
  const auto* const b = dynamic_cast<const internal::load::CheckpointImpl*>(&second);
  if (a == nullptr || b == nullptr) {
    return internal::InvalidArgument(
        "unsupported class of Checkpoint, expected that of Checkpoint::Open");
  }
  return internal::compare::Comparison(*a, *b, options).Run();
}

}  // namespace sealpoint
