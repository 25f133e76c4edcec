// SPDX-License-Identifier: Apache-2.0
#include "tests/support/crash/check.h"

#include <algorithm>
#include <memory>

#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/format/marker.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tests/support/crash/disk.h"
#include "tests/support/crash/runs.h"

namespace sealpoint::testing {
namespace {

bool IsVoid(const CrashFolder& folder) {
  const auto marker = folder.files.find(internal::format::kMarkerName);
  if (marker == folder.files.end()) return false;
  const auto decoded = internal::format::DecodeMarker(marker->second->bytes);
  return decoded.ok() && decoded->kind == internal::format::MarkerKind::kVoid;
}

Status WrongBytes(std::string_view what) {
  return Status(Code::kInternal, "wrong bytes of " + std::string(what));
}

// Compares every byte with what the step determines.
Status ReadAll(const Checkpoint& checkpoint) {
  const Bytes expected = CrashTensorContent(checkpoint.step());
  Bytes bytes(expected.size());
  std::uint64_t scalar = 0;
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(bytes));
  request.Add("scalar", MutableMemoryView::Host(std::span(&scalar, 1)));
  Bytes base = CrashBaseContent();
  const bool has_base = checkpoint.FindTensor("base").has_value();
  std::ranges::fill(base, std::byte{0});
  if (has_base) request.Add("base", MutableMemoryView::Host(base));
  SEALPOINT_RETURN_IF_ERROR(checkpoint.Load(request).status());
  if (has_base && base != CrashBaseContent()) return WrongBytes("base");
  if (bytes != expected) return WrongBytes("w");
  if (scalar != checkpoint.step()) return WrongBytes("scalar");
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes object, checkpoint.ReadObject("rng"));
  const bool is_right = AsText(object) == CrashObjectContent(checkpoint.step());
  return is_right ? Status() : WrongBytes("rng");
}

CrashVerdict FromVerdict(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCommitted:
      return CrashVerdict::kWhole;
    case Verdict::kUncommitted:
      return CrashVerdict::kUncommitted;
    case Verdict::kUnreadable:  // no Sealpoint files
      return CrashVerdict::kNothing;
    default:
      return CrashVerdict::kDamaged;
  }
}

// A single directory below the root.
std::shared_ptr<Storage> StorageOfFolder(const CrashFolder& folder, bool is_bucket) {
  CrashImage image{.is_bucket = is_bucket};
  image.folders["d"] = folder;
  return StorageOf(image);
}

CrashFinding CheckFolder(const CrashFolder& folder, bool is_bucket) {
  const auto storage = StorageOfFolder(folder, is_bucket);
  CrashFinding finding;
  const auto opened = Checkpoint::Open("d", {.storage = storage});
  const Status read = opened.ok() ? ReadAll(**opened) : opened.status();
  if (opened.ok()) finding.step = (*opened)->step();
  finding.detail = read.ToString();
  finding.verdict = read.ok() ? CrashVerdict::kWhole : FromVerdict(VerdictOf(read));
  if (read.code() == Code::kInternal) {
    finding.verdict = CrashVerdict::kWrong;
    return finding;
  }
  const VerifyReport report = Verify("d", {.storage = storage}).value();
  const CrashVerdict verified = FromVerdict(report.verdict);
  if (finding.verdict == CrashVerdict::kWhole && verified == CrashVerdict::kDamaged) {
    // Damage in what a load of everything never touches: a manifest, padding.
    finding.verdict = CrashVerdict::kDamaged;
  } else if (finding.verdict != verified) {
    finding.detail += "; but verification says " + std::string(VerdictName(report.verdict));
    finding.verdict = CrashVerdict::kWrong;
  }
  if (finding.verdict == CrashVerdict::kUncommitted && IsVoid(folder)) {
    finding.verdict = CrashVerdict::kVoid;
  }
  return finding;
}

bool Contains(const std::vector<std::uint64_t>& steps, std::uint64_t step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

}  // namespace

Status ReadEverything(const std::shared_ptr<Storage>& storage, const std::string& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto opened, Checkpoint::Open(directory, {.storage = storage}));
  return ReadAll(*opened);
}

CrashFinding CrashChecker::Look(const CrashImage& image, const std::string& directory) {
  const CrashFolder* const folder = image.Find(directory);
  if (folder == nullptr) return {};
  const auto [found, is_new] = findings_.try_emplace(folder->hash() + (image.is_bucket ? 1 : 0));
  if (is_new) found->second = CheckFolder(*folder, image.is_bucket);
  return found->second;
}

std::vector<CrashFinding> CrashChecker::LookAtAll(const CrashImage& image) {
  const std::string below = std::string(kCrashSeries) + "/";
  std::vector<CrashFinding> findings;
  for (auto folder = image.folders.lower_bound(below);
       folder != image.folders.end() && folder->first.starts_with(below); ++folder) {
    findings.push_back(Look(image, folder->first));
    CrashFinding& finding = findings.back();
    finding.detail = folder->first + ": " + finding.detail;
  }
  return findings;
}

const Result<std::uint64_t>& CrashChecker::NewestStep(const CrashImage& image) {
  std::uint64_t key = 0;
  for (const auto& [path, folder] : image.folders) {
    std::uint64_t of_folder = HashOf(AsBytes(path));
    for (const auto& [name, content] : folder.files) {
      of_folder = MixHashes(of_folder, HashOf(AsBytes(name)));
      const bool is_marker = name == internal::format::kMarkerName;
      of_folder = MixHashes(of_folder, is_marker ? content->hash : content->bytes.size());
    }
    key += MixHashes(of_folder, folder.files.size());
  }
  const auto found = newest_.find(key);
  if (found != newest_.end()) return found->second;
  const auto newest = Series(std::string(kCrashSeries), StorageOf(image)).Newest();
  const auto step = newest.ok() ? Result<std::uint64_t>(newest->entry.step)
                                : Result<std::uint64_t>(newest.error());
  return newest_.emplace(key, step).first->second;
}

std::string CrashChecker::Check(const CrashImage& image, const CrashPromise& promise) {
  std::vector<std::uint64_t> whole;
  for (const CrashFinding& finding : LookAtAll(image)) {
    if (finding.verdict == CrashVerdict::kDamaged || finding.verdict == CrashVerdict::kWrong) {
      return finding.detail;
    }
    if (finding.verdict != CrashVerdict::kWhole) continue;
    if (!Contains(promise.there, finding.step) && !Contains(promise.perhaps, finding.step)) {
      return finding.detail + "it should not be there";
    }
    whole.push_back(finding.step);
  }
  for (const std::uint64_t step : promise.there) {
    if (!Contains(whole, step)) return "step " + std::to_string(step) + " is gone";
  }
  const Result<std::uint64_t>& newest = NewestStep(image);
  if (whole.empty()) return newest.ok() ? "a checkpoint is resumed that is not there" : "";
  if (!newest.ok()) return "resuming: " + newest.error().ToString();
  const std::uint64_t greatest = *std::max_element(whole.begin(), whole.end());
  return *newest == greatest ? "" : "resuming takes another checkpoint";
}

std::string CrashChecker::CheckNothingIsWrong(const CrashImage& image) {
  for (const CrashFinding& finding : LookAtAll(image)) {
    if (finding.verdict == CrashVerdict::kWrong) return finding.detail;
  }
  return "";
}

}  // namespace sealpoint::testing
