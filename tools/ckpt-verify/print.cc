// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-verify/print.h"

#include <fmt/format.h>

#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

// What is left over of an attempt that was never committed may be thousands of files.
constexpr std::size_t kNotesMax = 20;

std::string PlaceOf(const Place& place) {
  std::string out;
  if (!place.rule.empty()) out.append(" ").append(place.rule);
  if (!place.path.empty()) out.append(" ").append(Printable(place.path));
  if (!place.path.empty() && place.offset) out += fmt::format(":{}", *place.offset);
  if (!place.tensor.empty()) out += fmt::format(" tensor \"{}\"", Printable(place.tensor));
  return out;
}

std::string WordOf(Verdict verdict) {
  return verdict == Verdict::kCommitted ? "valid" : std::string(VerdictName(verdict));
}

std::string SummaryOf(const VerifyReport& report) {
  switch (report.verdict) {
    case Verdict::kCommitted:
      return fmt::format("{}, {}, {}, {}", FormatCount(report.tensor_count, "tensor"),
                         FormatCount(report.blob_count, "blob"), FormatBytes(report.bytes_checked),
                         FormatSeconds(report.seconds));
    case Verdict::kUncommitted:
      return fmt::format("{} left over", FormatBytes(report.leftover_bytes));
    default:
      return FormatCount(report.violations.size(), "violation");
  }
}

}  // namespace

void PrintViolation(const Status& violation) {
  const Verdict verdict = VerdictOf(violation);
  const std::string place = PlaceOf(violation.place());
  fmt::print("{}:{}{} {}\n", Coloured(VerdictName(verdict), verdict), place,
             place.empty() ? "" : ":", Printable(violation.message()));
}

void PrintNote(const std::string& path, const std::string& text) {
  fmt::print("note: {}: {}\n", Printable(path), Printable(text));
}

void PrintReport(const VerifyReport& report, bool verbose) {
  for (const Status& violation : report.violations) PrintViolation(violation);
  if (!verbose) return;
  for (std::size_t i = 0; i < report.notes.size(); ++i) {
    if (i == kNotesMax && report.notes.size() > kNotesMax + 1) {
      PrintNote(report.path, fmt::format("{} more", report.notes.size() - i));
      break;
    }
    PrintNote(report.path, report.notes[i]);
  }
  fmt::print("{}: {} ({}): {}\n", Printable(report.path),
             Coloured(WordOf(report.verdict), report.verdict), VerifyLevelName(report.level),
             SummaryOf(report));
}

Json ReportToJson(const VerifyReport& report) {
  Json violations = Json::array();
  for (const Status& violation : report.violations) violations.push_back(StatusToJson(violation));
  return {{"path", report.path},
          {"verdict", std::string(VerdictName(report.verdict))},
          {"level", std::string(VerifyLevelName(report.level))},
          {"attempt", IdToJson(report.attempt)},
          {"parent", IdToJson(report.parent)},
          {"sequence", report.sequence},
          {"step", StepToJson(report.step)},
          {"tensor_count", report.tensor_count},
          {"object_count", report.object_count},
          {"blob_count", report.blob_count},
          {"chunk_count", report.chunk_count},
          {"bytes_checked", report.bytes_checked},
          {"seconds", report.seconds},
          {"leftover_bytes", report.leftover_bytes},
          {"violations", violations},
          {"notes", report.notes}};
}

}  // namespace sealpoint::tools
