// SPDX-License-Identifier: Apache-2.0
//
// ckpt blame: says at which steps of a series tensors changed.
#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/content.h"
#include "sealpoint/phases.h"
#include "sealpoint/series.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/series/typed_series.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::blame {
namespace {

constexpr const char* kFooter =
    "Compares each checkpoint of the newest one's lineage with the one before it, by digests: no\n"
    "payload is read. Checkpoints that cannot be opened are skipped and named.\n"
    "Exit status: 0 shown, 1 shown, but some steps are not comparable, 2 uncommitted,\n"
    "3 unsupported, 4 corrupt, could not be read or nothing found, 5 incomplete, 64 usage,\n"
    "74 standard output could not be written.";

struct BlameOptions {
  std::string pattern;
  std::string series;
  bool read = false;
  int threads = 1;
  bool json = false;
};

// In the order of ContentChange, of which an object has one.
constexpr std::array<std::string_view, 8> kChangeNames = {
    "unchanged",     "absent", "present", "dtype changed",
    "shape changed", "",       "changed", "not comparable"};

std::string_view ChangeName(ContentChange change) {
  return kChangeNames[static_cast<std::size_t>(change)];
}

// Consecutive checkpoints with the same change of a tensor.
struct Range {
  ContentChange change{};
  const SeriesEntry* first = nullptr;
  const SeriesEntry* last = nullptr;
  std::uint64_t count = 0;
  std::optional<TensorInfo> tensor{};  // of one checkpoint, if its dtype or shape is new
};

class Blame {
 public:
  Blame(const BlameOptions& options, std::string_view program)
      : options_(options), program_(program) {}

  ExitStatus Run() {
    if (const Status status = Trace(); !status.ok()) {
      return Fail(program_, status, HintForSeries(options_.series, kSeriesAbove),
                  options_.json ? &json_ : nullptr, ExitStatus::kUnreadable);
    }
    const ExitStatus status = unknown_.empty() ? ExitStatus::kValid : ExitStatus::kDifferent;
    options_.json ? WriteReport(status) : PrintReport();
    return status;
  }

 private:
  using Changes = std::map<std::string, ContentChange>;

  Status Trace() {
    Result<Lineage> lineage = FindLineage(options_.series, program_);
    if (!lineage) return lineage.error();
    lineage_ = *std::move(lineage);
    for (const SeriesEntry& entry : lineage_.entries) {
      if (const Status status = Visit(entry); !status.ok()) return status;
    }
    if (before_ == nullptr) return lineage_.skipped.back().problem;
    if (!histories_.empty()) return {};
    return Status(Code::kNotFound,
                  fmt::format("no tensor of the series matches {}", Printable(options_.pattern)))
        .AtPath(options_.series);
  }

  Status Visit(const SeriesEntry& entry) {
    auto opened = Checkpoint::Open(entry.path, {.limits = TypedLimits()});
    if (!opened) {
      Skip(program_, entry, opened.error(), lineage_);
      return {};
    }
    const auto matched = (*opened)->MatchTensors({options_.pattern});
    if (!matched && matched.error().code() != Code::kNotFound) return matched.error();
    Changes changes;
    for (const auto& [name, ranges] : histories_) changes[name] = ContentChange::kRemoved;
    bool has_pair = false;
    for (const TensorInfo& tensor : matched.value_or(std::vector<TensorInfo>())) {
      const auto known = histories_.find(tensor.name);
      const bool is_pair =
          known != histories_.end() && known->second.back().change != ContentChange::kRemoved;
      changes[tensor.name] = is_pair ? ContentChange::kNone : ContentChange::kAdded;
      has_pair |= is_pair;
    }
    if (has_pair) CompareWith(entry, **opened, changes);
    for (const auto& [name, change] : changes) Append(name, change, entry, **opened);
    if (before_ == nullptr) oldest_ = &entry;
    before_ = &entry;
    checkpoint_ = *std::move(opened);
    ++checkpoint_count_;
    return {};
  }

  // An error says nothing about which of the two is damaged: the pair is not comparable.
  void CompareWith(const SeriesEntry& entry, const Checkpoint& checkpoint, Changes& changes) {
    ProgressLine line;
    const CompareOptions options{.patterns = {options_.pattern},
                                 .digests_only = !options_.read,
                                 .threads = options_.threads,
                                 .on_progress = [&line](const PhaseEvent& event) {
                                   line.Set("blame", event.bytes_done, event.bytes_total);
                                 }};
    const Result<CompareReport> report = Compare(*checkpoint_, checkpoint, options);
    if (report) {
      table_bytes_read_ += report->table_bytes_read;
      payload_bytes_read_ += report->payload_bytes_read;
      for (const TensorDifference& difference : report->tensors) {
        if (difference.name == difference.second_name) {
          changes[difference.name] = difference.change;
        }
      }
      return;
    }
    line.Clear();
    PrintError(program_, fmt::format("{} and {} are not comparable: {}", before_->name, entry.name,
                                     report.error().ToString()));
    for (auto& [name, change] : changes) {
      if (change == ContentChange::kNone) change = ContentChange::kUnknown;
    }
  }

  void Append(const std::string& name, ContentChange change, const SeriesEntry& entry,
              const Checkpoint& checkpoint) {
    std::vector<Range>& ranges = histories_[name];
    if (ranges.empty() && before_ != nullptr) {
      ranges.push_back({ContentChange::kRemoved, oldest_, before_, checkpoint_count_});
    }
    const bool is_redeclared = change == ContentChange::kDType || change == ContentChange::kShape;
    const bool is_event = is_redeclared || change == ContentChange::kAdded;
    if (is_event || ranges.empty() || ranges.back().change != change) {
      ranges.push_back({.change = change, .first = &entry});
      if (is_event) ranges.back().tensor = checkpoint.FindTensor(name);
    }
    ranges.back().last = &entry;
    ++ranges.back().count;
    if (is_redeclared || change == ContentChange::kBytes) changed_.insert(name);
    if (change == ContentChange::kUnknown) unknown_.insert(name);
  }

  static void PrintRange(const Range& range) {
    std::string steps = "step " + FormatStep(range.first->step);
    if (range.count > 1) {
      steps = fmt::format("steps {} to {}, {}", FormatStep(range.first->step),
                          FormatStep(range.last->step), FormatCount(range.count, "checkpoint"));
    }
    if (range.tensor) {
      steps += fmt::format(", {} {}", DTypeName(range.tensor->dtype),
                           ShapeToString(range.tensor->shape));
    }
    Print("  {:<16}{}\n", ChangeName(range.change), steps);
  }

  void PrintReport() const {
    for (const auto& [name, ranges] : histories_) {
      Print("{}\n", Printable(name));
      for (const Range& range : ranges) PrintRange(range);
    }
    Print("{} in {}: {} changed{}; read {} of tables, {} of payload\n",
          FormatCount(histories_.size(), "tensor"), FormatCount(checkpoint_count_, "checkpoint"),
          changed_.size(),
          unknown_.empty() ? "" : fmt::format(", {} not comparable at some steps", unknown_.size()),
          BytesText(table_bytes_read_), BytesText(payload_bytes_read_));
  }

  static Json RangeToJson(const Range& range) {
    Json json = {{"change", ChangeName(range.change)},
                 {"first", EntryToJson(*range.first)},
                 {"last", EntryToJson(*range.last)},
                 {"checkpoint_count", range.count}};
    if (!range.tensor) return json;
    json["dtype"] = DTypeName(range.tensor->dtype);
    json["shape"] = range.tensor->shape;
    return json;
  }

  void WriteReport(ExitStatus status) {
    json_.BeginObject();
    json_.Field("path", options_.series);
    json_.BeginArray("tensors");
    for (const auto& [name, ranges] : histories_) {
      json_.BeginObject();
      json_.Field("name", name);
      json_.BeginArray("ranges");
      for (const Range& range : ranges) json_.Element(RangeToJson(range));
      json_.End();
      json_.End();
    }
    json_.End();
    WriteSkipped(lineage_, json_);
    json_.Field("checkpoint_count", checkpoint_count_);
    json_.Field("changed_count", changed_.size());
    json_.Field("unknown_count", unknown_.size());
    json_.Field("table_bytes_read", table_bytes_read_);
    json_.Field("payload_bytes_read", payload_bytes_read_);
    json_.Finish(status);
  }

  const BlameOptions& options_;
  const std::string_view program_;
  Lineage lineage_;
  std::map<std::string, std::vector<Range>> histories_;  // never empty
  std::unique_ptr<Checkpoint> checkpoint_;               // the last that was opened
  const SeriesEntry* before_ = nullptr;                  // its entry
  const SeriesEntry* oldest_ = nullptr;
  std::set<std::string> changed_;  // tensors
  std::set<std::string> unknown_;  // tensors that are not comparable at some steps
  std::uint64_t checkpoint_count_ = 0;
  std::uint64_t table_bytes_read_ = 0;
  std::uint64_t payload_bytes_read_ = 0;
  JsonWriter json_;
};

class BlameCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Shows at which steps of a series tensors changed.");
    app.footer(kFooter);
    app.add_option("NAME", options_.pattern, "Name or pattern of tensors")
        ->required()
        ->type_name("");
    app.add_option("SERIES", options_.series, "Directory of checkpoints")
        ->required()
        ->type_name("");
    app.add_flag("--read", options_.read,
                 "Read and compare content with different chunk boundaries");
    AddThreads(app, options_.threads);
    app.add_flag("--json", options_.json, "Print one JSON document, also after an error");
  }
  ExitStatus Run(std::string_view program) override { return Blame(options_, program).Run(); }

 private:
  BlameOptions options_;
};

const CommandEntry kBlame("blame", MakeCommand<BlameCommand>);

}  // namespace
}  // namespace sealpoint::tools::blame
