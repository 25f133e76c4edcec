// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/manifest_check.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lib/base/errors.h"

namespace sealpoint::internal::verify {
namespace {

Status AtItem(Status error, const metadata::TensorView& tensor) {
  return std::move(error).AtTensor(tensor.name());
}
Status AtItem(Status error, const metadata::ObjectView& object) {
  return std::move(error).AtObject(object.name());
}

template <typename... Parts>
Status Disagreement(const Parts&... parts) {
  return RuleError(Code::kCorrupt, "R-BLB-07", parts...);
}

std::string TextOf(const std::optional<Fingerprint>& fingerprint) {
  return fingerprint ? fingerprint->ToString() : "none";
}

class Comparison {
 public:
  Comparison(const metadata::Metadata& manifest, const ShardMap& map, std::size_t blob,
             ManifestTotals& totals, const ReportViolation& report)
      : manifest_(manifest),
        map_(map),
        totals_(totals),
        report_(report),
        shards_(map.OfBlob(blob)),
        matched_(shards_.size(), false) {}

  void Run() {
    for (std::size_t i = 0; i < manifest_.tensor_count(); ++i) CompareTensor(manifest_.tensor(i));
    for (std::size_t i = 0; i < manifest_.object_count(); ++i) CompareObject(manifest_.object(i));
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      if (matched_[s]) continue;
      report_(
          map_.AtItemOf(shards_[s], Disagreement("the manifest lacks the shard at record ",
                                                 shards_[s].first_record, " as the index has it")));
    }
  }

 private:
  template <typename View, typename... Parts>
  void Report(const View& item, const Parts&... parts) {
    report_(AtItem(Disagreement(parts...), item));
  }

  void CompareTensor(const metadata::TensorView& tensor) {
    const std::optional<std::size_t> found = map_.index().FindTensor(tensor.name());
    if (!found) return Report(tensor, "the manifest's tensor is not in the index");
    const metadata::TensorView pinned = map_.index().tensor(*found);
    if (tensor.dtype() != pinned.dtype() || tensor.element_size() != pinned.element_size()) {
      Report(tensor, "dtypes of manifest and index differ");
    }
    if (tensor.shape() != pinned.shape()) {
      Report(tensor, "shape ", ShapeToString(tensor.shape()), " in the manifest differs from ",
             ShapeToString(pinned.shape()), " in the index");
    }
    if (tensor.chunk_size() != pinned.chunk_size()) {
      Report(tensor, "chunk sizes of manifest and index differ");
    }
    if (tensor.attributes() != pinned.attributes()) {
      report_(
          AtItem(RuleError(Code::kCorrupt, "R-ATT-06", "attributes of manifest and index differ"),
                 pinned));
    }
    totals_.SawTensor(*found, tensor);
    tensor.ForEachShard([&](std::size_t s, const Region& region) {
      MatchShard(tensor, ShardMap::TensorItem(*found), tensor.shard_ref(s).first_record,
                 ShardMap::RegionDigest(region));
    });
  }

  void CompareObject(const metadata::ObjectView& object) {
    const std::optional<std::size_t> found = map_.index().FindObject(object.name());
    if (!found) return Report(object, "the manifest's object is not in the index");
    const metadata::ObjectView pinned = map_.index().object(*found);
    if (object.media_type() != pinned.media_type()) {
      Report(object, "media types of manifest and index differ");
    }
    if (object.size() != pinned.size()) {
      Report(object, "object sizes of manifest and index differ");
    }
    if (object.chunk_size() != pinned.chunk_size()) {
      Report(object, "chunk sizes of manifest and index differ");
    }
    if (object.size() == 0) {
      totals_.SawObject(*found);
    } else {
      MatchShard(object, ShardMap::ObjectItem(*found), object.shard_ref().first_record, {});
    }
  }

  template <typename View>
  void MatchShard(const View& view, std::uint32_t item, std::uint32_t first_record,
                  const Digest& region_digest) {
    const auto found = std::ranges::equal_range(
        shards_, std::pair(first_record, item), {},
        [](const ShardEntry& shard) { return std::pair(shard.first_record, shard.item); });
    if (found.empty()) {
      Report(view, "the index has no shard of it at record ", first_record);
      return;
    }
    if (found.front().region_digest != region_digest) {
      Report(view, "regions of the shard at record ", first_record,
             " differ in manifest and index");
    }
    matched_[static_cast<std::size_t>(found.begin() - shards_.begin())] = true;
  }

  const metadata::Metadata& manifest_;
  const ShardMap& map_;
  ManifestTotals& totals_;
  const ReportViolation& report_;
  const std::span<const ShardEntry> shards_;
  std::vector<bool> matched_;
};

}  // namespace

ManifestTotals::ManifestTotals(const metadata::Metadata& index)
    : index_(index), tensors_(index.tensor_count()) {
  objects_.reserve(index.object_count());
  for (std::size_t i = 0; i < index.object_count(); ++i) {
    objects_.push_back(index.object(i).size() != 0);
  }
}

void ManifestTotals::SawTensor(std::size_t tensor, const metadata::TensorView& entry) {
  const std::optional<Fingerprint> part = entry.fingerprint();
  const std::lock_guard lock(mutex_);
  Seen& seen = tensors_[tensor];
  seen.is_named = true;
  seen.has_fingerprints = seen.has_fingerprints && part;
  seen.fingerprint += part.value_or(Fingerprint());
  seen.shard_count += entry.shard_count();
}

void ManifestTotals::SawObject(std::size_t object) {
  const std::lock_guard lock(mutex_);
  objects_[object] = true;
}

void ManifestTotals::MissedManifest() {
  const std::lock_guard lock(mutex_);
  missed_manifest_ = true;
}

void ManifestTotals::ForEachViolation(const ReportViolation& report) const {
  const std::lock_guard lock(mutex_);
  if (missed_manifest_) return;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const metadata::TensorView pinned = index_.tensor(i);
    const Seen& seen = tensors_[i];
    // Other shards than those of the index are R-BLB-07, with their blob.
    if (seen.shard_count != pinned.shard_count()) continue;
    if (!seen.is_named) {
      report(AtItem(Disagreement("no manifest has this empty tensor of the index"), pinned));
      continue;
    }
    std::optional<Fingerprint> sum;
    if (seen.has_fingerprints) sum = seen.fingerprint;
    if (sum == pinned.fingerprint()) continue;
    report(
        AtItem(RuleError(Code::kCorrupt, "R-FPR-02", "fingerprint of the index is ",
                         TextOf(pinned.fingerprint()), ", the manifests add up to ", TextOf(sum)),
               pinned));
  }
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    if (objects_[i]) continue;
    report(
        AtItem(Disagreement("no manifest has this empty object of the index"), index_.object(i)));
  }
}

void CompareManifest(const metadata::Metadata& manifest, const ShardMap& map, std::size_t blob,
                     ManifestTotals& totals, const ReportViolation& report) {
  Comparison(manifest, map, blob, totals, report).Run();
}

}  // namespace sealpoint::internal::verify
