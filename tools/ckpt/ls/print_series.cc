// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tools/ckpt/ls/print.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools::ls {
namespace {

// "12 checkpoints: 10 committed, 2 uncommitted"; the numbers add up.
std::string CountsText(const SeriesListing& listing) {
  std::string text = FormatCount(listing.entries.size(), "checkpoint");
  std::string separator = ": ";
  for (const Verdict verdict :
       {Verdict::kCommitted, Verdict::kCorrupt, Verdict::kIncomplete, Verdict::kUnreadable,
        Verdict::kUnsupported, Verdict::kUncommitted}) {
    const auto count =
        std::count_if(listing.entries.begin(), listing.entries.end(),
                      [&](const SeriesEntry& entry) { return entry.verdict == verdict; });
    if (count == 0) continue;
    text += fmt::format("{}{} {}", separator, count, VerdictName(verdict));
    separator = ", ";
  }
  return text;
}

// Such as " (sdc: checked, good up to step 4)".
std::string CorruptionText(const CorruptionState& known) {
  if (known.state.empty()) return "";
  return fmt::format(" (sdc: {}{})", Printable(known.state),
                     known.upto.empty() ? "" : ", good up to step " + Printable(known.upto));
}

void PrintEntry(const SeriesEntry& entry, const CorruptionState& known) {
  const bool has_marker = !entry.attempt.is_zero() && entry.sequence != 0;
  const std::string sequence = has_marker ? fmt::format("{}", entry.sequence) : "-";
  const std::string step =
      has_marker && entry.step != kNoStep ? fmt::format("{}", entry.step) : "-";
  // Padded before it is coloured: escape sequences have no width.
  const std::string verdict = fmt::format("{:<11}", VerdictName(entry.verdict));
  Print("{:>5} {:>10} {:>9}  {}  {}{}{}{}{}{}\n", sequence, step, BytesText(entry.size_bytes),
        Coloured(verdict, entry.verdict), Printable(entry.name), entry.is_kept ? " (kept)" : "",
        entry.is_base ? " (base)" : "", entry.is_delta ? " (delta)" : "",
        entry.is_void ? " (void)" : "", CorruptionText(known));
  if (entry.verdict != Verdict::kCommitted && entry.verdict != Verdict::kUncommitted) {
    Print("      because: {}\n", entry.problem.ToString());
  }
}

void PrintUnfinished(const UnfinishedFile& file) {
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  const std::string begun =
      file.begun_unix_s == 0 ? "" : ", begun " + FormatTime(file.begun_unix_s * kNanoseconds);
  Print("unfinished upload {} of {}{}\n", Printable(file.upload_id), Printable(file.name), begun);
}

}  // namespace

void PrintSeries(const SeriesView& view) {
  const SeriesListing& listing = view.listing;
  Print("series {}: {}\n\n", Printable(view.path), CountsText(listing));
  Print("{}\n", Bold(fmt::format("{:>5} {:>10} {:>9}  {:<11}  {}", "seq", "step", "size", "verdict",
                                 "directory")));
  for (std::size_t i = 0; i < listing.entries.size(); ++i) {
    PrintEntry(listing.entries[i], view.corruption[i]);
  }
  for (const AttemptId& fork : listing.forks) {
    Print("fork: attempt {} shares its parent with another\n", fork.ToHex());
  }
  for (const UnfinishedFile& file : view.unfinished) PrintUnfinished(file);
  if (!view.unfinished_problem.ok()) {
    Print("unfinished uploads: {}\n", view.unfinished_problem.ToString());
  }
  for (const std::string& name : listing.foreign) Print("foreign: {}\n", Printable(name));
  const std::uint64_t more = listing.foreign_count - listing.foreign.size();
  if (more > 0) Print("foreign: {}\n", FormatCount(more, "more name"));
}

}  // namespace sealpoint::tools::ls
