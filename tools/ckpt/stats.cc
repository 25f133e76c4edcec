// SPDX-License-Identifier: Apache-2.0
//
// ckpt stats: what the values of a checkpoint are.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/content.h"
#include "sealpoint/phases.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/report/stats_store.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::stats {
namespace {

constexpr const char* kFooter =
    "Sums and extremes cover finite values, in double precision. All bytes are verified. Notes "
    "list\n"
    "tensors with non-finite values, with saturated fp8 or fp4 values, and with a long tail of\n"
    "zeros, which may be state that was never written.\n"
    "Exit status: 0 shown, 1 not finite (with --fail-nonfinite), 2 uncommitted, 3 unsupported,\n"
    "4 corrupt, could not be read or nothing found, 5 incomplete, 64 usage, 74 standard output\n"
    "could not be written.";

struct StatsOptions {
  std::string path;
  ContentOptions content;
  std::optional<std::size_t> depth;
  bool fail_nonfinite = false;
  bool store = false;
  bool json = false;
};

// A tensor, or all below a prefix.
struct Row {
  std::string name;
  std::string dtype;
  std::uint64_t tensor_count = 0;
  ValueStatistics values;
};

std::vector<Row> RowsOf(const std::vector<TensorStatistics>& tensors,
                        std::optional<std::size_t> depth) {
  std::vector<Row> rows;
  std::map<std::string, std::size_t> positions;
  for (const TensorStatistics& tensor : tensors) {
    if (!tensor.values) continue;
    const std::string name = depth ? PrefixOf(tensor.name, *depth) : tensor.name;
    const std::string dtype(DTypeName(tensor.dtype));
    const auto [at, is_new] = positions.try_emplace(name, rows.size());
    if (is_new) rows.push_back({.name = name, .dtype = dtype});
    Row& row = rows[at->second];
    if (row.dtype != dtype) row.dtype = "mixed";
    ++row.tensor_count;
    row.values.Add(*tensor.values);
  }
  return rows;
}

// Long enough that nobody expects it of weights, and not all of the tensor, such as moments before
// the first step.
bool HasLongTail(const ValueStatistics& values) {
  constexpr std::uint64_t kLong = 1024;
  return values.zero_tail_count >= kLong && values.zero_tail_count >= values.value_count / 16 &&
         values.zero_tail_count < values.value_count;
}

class Stats {
 public:
  Stats(const StatsOptions& options, std::string_view program)
      : options_(options), program_(program) {}

  ExitStatus Run() {
    const auto tensors = Compute();
    if (!tensors) {
      JsonWriter json;
      return Fail(program_, tensors.error(), "", options_.json ? &json : nullptr,
                  ExitStatus::kUnreadable);
    }
    const std::vector<Row> rows = RowsOf(*tensors, options_.depth);
    std::uint64_t nonfinite = 0;
    for (const Row& row : rows) nonfinite += row.values.nonfinite_count();
    const ExitStatus status =
        options_.fail_nonfinite && nonfinite > 0 ? ExitStatus::kNonfinite : ExitStatus::kValid;
    options_.json ? WriteRows(rows, *tensors, status) : PrintRows(rows, *tensors);
    return status;
  }

 private:
  Result<std::vector<TensorStatistics>> Compute() const {
    const auto checkpoint = Checkpoint::Open(options_.path, {.limits = TypedLimits()});
    if (!checkpoint) return checkpoint.error();
    ProgressLine line;
    ContentOptions options = options_.content;
    options.on_progress = [&line](const PhaseEvent& event) {
      line.Set("statistics", event.bytes_done, event.bytes_total);
    };
    auto tensors = ComputeStatistics(**checkpoint, options);
    if (!tensors || !options_.store) return tensors;
    const StatsStore store = StatsStore::OfCheckpoint(options_.path);
    const Status stored = store.PutValues(ContentKey::Of(**checkpoint), *tensors);
    if (!stored.ok()) return stored;
    return tensors;
  }

  static std::string Short(double value) { return fmt::format("{:.4g}", value); }

  void PrintRows(const std::vector<Row>& rows, const std::vector<TensorStatistics>& tensors) const {
    Table table({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight});
    table.Add({options_.depth ? "prefix" : "tensor", "dtype", "values", "nan", "inf", "zero", "min",
               "max", "mean", "std", "l2"});
    for (const Row& row : rows) {
      const ValueStatistics& values = row.values;
      const bool has_finite = values.finite_count() > 0;
      const auto finite = [&](double value) {  // a sum may pass the greatest double
        return has_finite && std::isfinite(value) ? Short(value) : "-";
      };
      table.Add({Printable(row.name), row.dtype, fmt::format("{}", values.value_count),
                 fmt::format("{}", values.nan_count),
                 fmt::format("{}", values.positive_infinity_count + values.negative_infinity_count),
                 fmt::format("{}", values.zero_count), finite(values.min), finite(values.max),
                 finite(values.mean), finite(values.standard_deviation()), finite(values.l2())});
    }
    table.Print();
    for (const TensorStatistics& tensor : tensors) PrintNotes(tensor);
  }

  static void PrintNotes(const TensorStatistics& tensor) {
    const std::string name = Printable(tensor.name);
    if (!tensor.values) {
      Print("note: {}: the dtype is not registered, values are unknown\n", name);
      return;
    }
    const ValueStatistics& values = *tensor.values;
    if (values.nonfinite_count() > 0) {
      Print("note: {}: {} NaN, {} +Inf, {} -Inf\n", name, values.nan_count,
            values.positive_infinity_count, values.negative_infinity_count);
    }
    if (values.saturated_count > 0) {
      Print("note: {}: {} with the greatest magnitude of the dtype\n", name,
            FormatCount(values.saturated_count, "value"));
    }
    if (HasLongTail(values)) {
      Print("note: {}: the last {} of {} are zero\n", name,
            FormatCount(values.zero_tail_count, "value"), values.value_count);
    }
  }

  static Json NumberToJson(const ValueStatistics& values, double value) {
    return values.finite_count() == 0 || !std::isfinite(value) ? Json() : Json(value);
  }

  static void WriteRow(const Row& row, JsonWriter& json) {
    const ValueStatistics& values = row.values;
    json.BeginObject();
    json.Field("name", row.name);
    json.Field("dtype", row.dtype);
    json.Field("tensor_count", row.tensor_count);
    json.Field("value_count", values.value_count);
    json.Field("nan_count", values.nan_count);
    json.Field("positive_infinity_count", values.positive_infinity_count);
    json.Field("negative_infinity_count", values.negative_infinity_count);
    json.Field("zero_count", values.zero_count);
    json.Field("zero_tail_count", values.zero_tail_count);
    json.Field("saturated_count", values.saturated_count);
    json.Field("min", NumberToJson(values, values.min));
    json.Field("max", NumberToJson(values, values.max));
    json.Field("mean", NumberToJson(values, values.mean));
    json.Field("std", NumberToJson(values, values.standard_deviation()));
    json.Field("l2", NumberToJson(values, values.l2()));
    json.BeginArray("exponents");
    for (const auto& [exponent, count] : values.exponents)
      json.Element(Json::array({exponent, count}));
    json.End();
    json.End();
  }

  void WriteRows(const std::vector<Row>& rows, const std::vector<TensorStatistics>& tensors,
                 ExitStatus status) const {
    JsonWriter json;
    json.BeginObject();
    json.BeginArray(options_.depth ? "prefixes" : "tensors");
    for (const Row& row : rows) WriteRow(row, json);
    json.End();
    json.BeginArray("unknown");
    for (const TensorStatistics& tensor : tensors) {
      if (!tensor.values) json.Element(tensor.name);
    }
    json.End();
    json.Finish(status);
  }

  const StatsOptions& options_;
  const std::string_view program_;
};

class StatsCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Shows statistics of the values of a checkpoint.");
    app.footer(kFooter);
    app.add_option("PATH", options_.path, "Directory of a checkpoint")->required()->type_name("");
    AddContentOptions(app, options_.content);
    app.add_option("--depth", options_.depth,
                   "Group tensors by the first N dot-separated parts of\n"
                   "their names")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    app.add_flag("--fail-nonfinite", options_.fail_nonfinite,
                 "Exit with status 1 if a value is NaN or infinite");
    app.add_flag("--store", options_.store, "Store the statistics in SERIES.stats for ckpt report")
        ->excludes("--match");
    app.add_flag("--json", options_.json, "Print one JSON document, also after an error");
  }
  ExitStatus Run(std::string_view program) override { return Stats(options_, program).Run(); }

 private:
  StatsOptions options_;
};

const CommandEntry kStats("stats", MakeCommand<StatsCommand>);

}  // namespace
}  // namespace sealpoint::tools::stats
