// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tools/ckpt-inspect/print.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {

void PrintSeries(const SeriesView& view) {
  const SeriesListing& listing = view.listing;
  fmt::print("series {}: {} committed, {} not committed\n\n", Printable(view.path),
             view.committed_count, listing.entries.size() - view.committed_count);
  fmt::print("{:>5} {:>10} {:>9}  {:<11}  {}\n", "seq", "step", "size", "verdict", "directory");
  for (const SeriesEntry& entry : listing.entries) {
    const bool has_marker = !entry.attempt.is_zero() && entry.sequence != 0;
    const std::string sequence = has_marker ? fmt::format("{}", entry.sequence) : "-";
    const std::string step =
        has_marker && entry.step != kNoStep ? fmt::format("{}", entry.step) : "-";
    // Padded before it is coloured: escape sequences have no width.
    const std::string verdict = fmt::format("{:<11}", VerdictName(entry.verdict));
    fmt::print("{:>5} {:>10} {:>9}  {}  {}{}{}\n", sequence, step, FormatBytes(entry.size_bytes),
               Coloured(verdict, entry.verdict), Printable(entry.name),
               entry.is_kept ? " (kept)" : "", entry.is_void ? " (void)" : "");
    if (entry.verdict != Verdict::kCommitted && entry.verdict != Verdict::kUncommitted) {
      fmt::print("      because: {}\n", Printable(entry.problem.ToString()));
    }
  }
  for (const AttemptId& fork : listing.forks) {
    fmt::print("fork: attempt {} shares its parent with another\n", fork.ToHex());
  }
  for (const std::string& name : listing.foreign) fmt::print("foreign: {}\n", Printable(name));
}

}  // namespace sealpoint::tools
