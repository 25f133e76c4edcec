// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/verify/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/common/text.h"

namespace sealpoint::tools::verify {
namespace {

// What is left over of an attempt that was never committed may be thousands of files.
constexpr std::size_t kNotesMax = 20;

// Violations of one file, which follow one another in a report.
struct FileViolations {
  std::span<const Status> listed;
  std::uint64_t omitted = 0;
};

std::string PlaceOf(const Place& place) {
  std::string out;
  if (!place.rule.empty()) out.append(" ").append(place.rule);
  if (!place.path.empty()) out.append(" ").append(Printable(place.path));
  if (!place.path.empty() && place.offset) out += fmt::format(":{}", *place.offset);
  if (!place.tensor.empty()) out += fmt::format(" tensor \"{}\"", Printable(place.tensor));
  if (!place.object.empty()) out += fmt::format(" object \"{}\"", Printable(place.object));
  return out;
}

std::string PartText(const VerifyPart& part) {
  return fmt::format("part {}/{}", part.number, part.count);
}

// Who has seen a part of the chunks does not know that the checkpoint is valid.
std::string WordOf(const VerifyReport& report) {
  if (report.verdict != Verdict::kCommitted) return std::string(VerdictName(report.verdict));
  return report.part.is_whole() ? "valid" : "no damage found in " + PartText(report.part);
}

std::string BytesOf(const VerifyReport& report) {
  std::string text = BytesText(report.bytes_checked + report.bytes_known);
  if (!report.part.is_whole()) text += " of " + BytesText(report.total_bytes);
  if (report.bytes_known > 0)
    text += fmt::format(", {} read before", BytesText(report.bytes_known));
  return text;
}

std::string SummaryOf(const VerifyReport& report) {
  switch (report.verdict) {
    case Verdict::kCommitted:
      return fmt::format("{}, {}, {}, {}", FormatCount(report.tensor_count, "tensor"),
                         FormatCount(report.blob_count, "blob"), BytesOf(report),
                         FormatSeconds(report.seconds));
    case Verdict::kUncommitted:
      return fmt::format("{} left over", BytesText(report.leftover_bytes));
    default:
      return FormatCount(report.violation_count, "violation");
  }
}

// Takes those of the first file off the front. `omitted`: entries of the report not yet used.
FileViolations TakeFile(std::span<const Status>& violations,
                        std::span<const OmittedViolations>& omitted) {
  const std::string& path = violations.front().place().path;
  const auto end = std::find_if(violations.begin(), violations.end(), [&](const Status& violation) {
    return violation.place().path != path;
  });
  FileViolations file{.listed = {violations.begin(), end}};
  violations = {end, violations.end()};
  if (!omitted.empty() && omitted.front().path == path) {
    file.omitted = omitted.front().count;
    omitted = omitted.subspan(1);
  }
  return file;
}

std::string ViolationText(const Status& violation) {
  const Verdict verdict = VerdictOf(violation);
  const std::string place = PlaceOf(violation.place());
  return fmt::format("{}:{}{} {}", Coloured(VerdictName(verdict), verdict), place,
                     place.empty() ? "" : ":", Printable(violation.message()));
}

void PrintViolations(const VerifyReport& report) {
  std::span<const Status> violations = report.violations;
  std::span<const OmittedViolations> omitted = report.omitted;
  while (!violations.empty()) {
    const FileViolations file = TakeFile(violations, omitted);
    const std::uint64_t count = file.listed.size() + file.omitted;
    if (count <= kViolationsPerFileMax) {
      for (const Status& violation : file.listed) PrintViolation(violation);
    } else {
      Print("{}; and {} more violations in this file (--all lists them)\n",
            ViolationText(file.listed.front()), count - 1);
    }
  }
  std::uint64_t elsewhere = 0;
  for (const OmittedViolations& file : omitted) elsewhere += file.count;
  if (elsewhere > 0) {
    Print("more: {}: {} in other files (--all lists them)\n", Printable(report.path),
          FormatCount(elsewhere, "violation"));
  }
}

void PrintNotes(const VerifyReport& report, bool all) {
  const std::size_t count = report.notes.size();
  const std::size_t listed = all || count <= kNotesMax + 1 ? count : kNotesMax;
  for (std::size_t i = 0; i < listed; ++i) PrintNote(report.path, report.notes[i]);
  if (listed < count) {
    PrintNote(report.path, fmt::format("{} more (--all lists them)", count - listed));
  }
}

}  // namespace

std::string LevelText(VerifyLevel level, const VerifyPart& part) {
  const std::string name(VerifyLevelName(level));
  return part.is_whole() ? name : name + ", " + PartText(part);
}

void PrintViolation(const Status& violation) { Print("{}\n", ViolationText(violation)); }

void PrintNote(const std::string& path, const std::string& text) {
  Print("note: {}: {}\n", Printable(path), Printable(text));
}

void PrintHint(const std::string& path, const std::string& text) {
  if (!text.empty()) Print("hint: {}: {}\n", Printable(path), text);
}

void PrintReport(const VerifyReport& report, const Options& options) {
  if (!options.all) PrintViolations(report);
  if (options.quiet) return;
  PrintNotes(report, options.all);
  Print("{}: {} ({}): {}\n", Printable(report.path), Coloured(WordOf(report), report.verdict),
        LevelText(report.level, report.part), SummaryOf(report));
}

void WriteReport(JsonWriter& json, const VerifyReport& report) {
  json.Field("violation_count", report.violation_count);
  json.Field("verdict", std::string(VerdictName(report.verdict)));
  json.Field("level", std::string(VerifyLevelName(report.level)));
  json.Field("part", report.part.is_whole()
                         ? Json()
                         : Json({{"number", report.part.number}, {"count", report.part.count}}));
  json.Field("attempt", IdToJson(report.attempt));
  json.Field("parent", IdToJson(report.parent));
  json.Field("sequence", report.sequence);
  json.Field("step", StepToJson(report.step));
  json.Field("tensor_count", report.tensor_count);
  json.Field("object_count", report.object_count);
  json.Field("blob_count", report.blob_count);
  json.Field("chunk_count", report.chunk_count);
  json.Field("total_bytes", report.total_bytes);
  json.Field("shared_bytes", report.shared_bytes);
  json.Field("bytes_checked", report.bytes_checked);
  json.Field("bytes_known", report.bytes_known);
  json.Field("seconds", report.seconds);
  json.Field("leftover_bytes", report.leftover_bytes);
  json.BeginArray("notes");
  for (const std::string& note : report.notes) json.Element(note);
  json.End();
}

}  // namespace sealpoint::tools::verify
