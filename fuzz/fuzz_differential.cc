// SPDX-License-Identifier: Apache-2.0
//
// Proves that two readers which were written from the specification alone agree on every damaged
// checkpoint: on the verdict, on code, rule and file of violations, and on each byte of content.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/support/container.h"
#include "fuzz/support/damage.h"
#include "fuzz/support/second_reader.h"
#include "fuzz/support/target.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/digest.h"
#include "sealpoint/verify.h"
#include "tests/conformance/load_all.h"

namespace sealpoint::fuzz {
namespace {

constexpr std::uint64_t kContentMaxBytes = 1 * kMiB;  // the second reader is slow

std::string FileOf(const Status& error) {
  const std::string& path = error.place().path;
  return path == "c" ? "" : path.substr(2);
}

// Nothing if the content is too large to be compared.
std::optional<Opinion> OwnOpinion(const std::map<std::string, Bytes>& files) {
  const auto storage = MemoryStorage();
  testing::StoreFiles(*storage, "c", files);
  const auto checkpoint = Checkpoint::Open("c", {.storage = storage});
  if (checkpoint.ok() && (*checkpoint)->raw_bytes() > kContentMaxBytes) return std::nullopt;
  const VerifyReport report = Verify("c", {.storage = storage}).value();
  Opinion opinion{
      .verdict = std::string(VerdictName(report.verdict)), .violations = {}, .content = {}};
  for (const Status& violation : report.violations) {
    opinion.violations.insert(std::string(CodeName(violation.code())) + " " +
                              std::string(violation.place().rule) + " " + FileOf(violation));
  }
  if (report.verdict != Verdict::kCommitted) return opinion;
  const testing::CorpusContent content = testing::LoadAll(**checkpoint).value();
  for (const auto& [name, bytes] : content.tensors) {
    opinion.content["tensor " + name] = ComputeDigest(bytes).ToHex();
  }
  for (const auto& [name, bytes] : content.objects) {
    opinion.content["object " + name] = ComputeDigest(bytes).ToHex();
  }
  return opinion;
}

std::set<std::string> FilesOf(const Opinion& opinion) {
  std::set<std::string> files;
  for (const std::string& violation : opinion.violations) {
    files.insert(violation.substr(violation.rfind(' ') + 1));
  }
  return files;
}

// The meaning of an index is checked in one step, of which a reader may report any rule that is
// broken: one change of a number, such as that of a blob's records, may break several.
std::set<std::string> WithOneRuleForMeaning(const std::set<std::string>& violations) {
  constexpr std::string_view kRule = "R-IDX-";
  std::set<std::string> all;
  for (std::string violation : violations) {
    const std::size_t at = violation.find(kRule);
    const bool is_meaning =
        at != std::string::npos && violation.compare(at + kRule.size(), 2, "04") >= 0;
    if (is_meaning) violation.replace(at + kRule.size(), 2, "04");
    all.insert(std::move(violation));
  }
  return all;
}

// If a file has several violations, a reader may report any of those found in the first failing
// step, and may or may not reach the next ones (reader-rules.md, sections 3 and 4). So one reader
// may list more, but it must list what the other one lists: code, rule and file if only one rule
// can be broken, else the file.
bool Agree(const Opinion& a, const Opinion& b, bool is_one_change) {
  if (a.content != b.content || a.violations.empty() != b.violations.empty()) return false;
  if (is_one_change && a.verdict != b.verdict) return false;
  const std::set<std::string> ours =
      is_one_change ? WithOneRuleForMeaning(a.violations) : FilesOf(a);
  const std::set<std::string> theirs =
      is_one_change ? WithOneRuleForMeaning(b.violations) : FilesOf(b);
  return std::ranges::includes(ours, theirs) || std::ranges::includes(theirs, ours);
}

void Compare(const Suspect& suspect) {
  static std::unique_ptr<SecondReader> reader = SecondReader::Start();
  const std::optional<Opinion> own = OwnOpinion(suspect.files);
  if (!reader || !own) return;
  const std::optional<Opinion> other = reader->Check(suspect.files);
  if (!other) {
    reader = SecondReader::Start();
    return;
  }
  Require(Agree(*own, *other, suspect.is_one_change),
          "the readers disagree; ours:\n" + own->ToString() + "the second:\n" + other->ToString());
}

}  // namespace
}  // namespace sealpoint::fuzz

// The first byte chooses between the inputs of fuzz_open and of fuzz_container, which follow.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::InputReader input(fuzz::AsInput(data, size));
  const bool is_container = input.TakeBool();
  const fuzz::Suspect suspect =
      is_container ? fuzz::MakeContainer(input.rest()) : fuzz::MakeDamaged(input.rest());
  fuzz::Compare(suspect);
  return 0;
}
