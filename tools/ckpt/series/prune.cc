// SPDX-License-Identifier: Apache-2.0
//
// ckpt prune: deletes the checkpoints of a series that no rule keeps.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/series.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/series/rules.h"
#include "tools/ckpt/series/typed_series.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::prune {
namespace {

constexpr const char* kFooter =
    "A checkpoint is kept by any rule and by a KEEP file; the newest two are always kept. Only\n"
    "complete checkpoints count. Uncommitted attempts are left to ckpt clean. Savers and readers "
    "of\n"
    "the series may run at the same time.\n"
    "Exit status: 0 done, or shown, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read,\n"
    "or nothing found, 5 incomplete, 64 usage, or an invalid policy, 74 standard\n"
    "output could not be written.";

struct PruneCommandOptions {
  std::string series;
  RetentionRules rules;
  bool yes = false;
  bool json = false;
};

class Pruning {
 public:
  Pruning(const PruneCommandOptions& options, std::string_view program)
      : options_(options), program_(program) {}

  ExitStatus Run() {
    const Result<RetentionPolicy> policy = PolicyOf(options_.rules);
    if (!policy) return End(policy.error());
    report_ =
        Series(options_.series).Prune(*policy, {.dry_run = !options_.yes, .limits = TypedLimits()});
    if (!report_.status.ok()) return End(report_.status);
    if (report_.decisions.empty()) return End(NoSeries(options_.series));
    return End({});
  }

 private:
  std::string FateOf(const PruneDecision& decision) const {
    if (decision.keep) return "keep";
    if (decision.is_deleted) return "deleted";
    return options_.yes ? "not deleted" : "would delete";
  }

  // Shows what is decided, also beside an error that came while deleting.
  ExitStatus End(const Status& error) {
    if (options_.json) {
      WriteDecisions();
    } else if (!report_.decisions.empty()) {
      PrintDecisions();
    }
    if (!error.ok()) {
      return Fail(program_, error, HintForSeries(options_.series, kSeriesAbove),
                  options_.json ? &json_ : nullptr);
    }
    if (options_.json) json_.Finish(ExitStatus::kValid);
    return ExitStatus::kValid;
  }

  void PrintDecisions() const {
    using Align = Table::Align;
    Table table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kLeft});
    table.Add({"", "checkpoint", "step", "size", "why"});
    std::uint64_t count = 0;
    for (const PruneDecision& decision : report_.decisions) {
      if (!decision.keep && decision.is_deleted == options_.yes) ++count;
      table.Add({FateOf(decision), Printable(decision.entry.name), FormatStep(decision.entry.step),
                 BytesText(decision.entry.size_bytes),
                 Printable(fmt::format("{}", fmt::join(decision.reasons, "; ")))});
    }
    table.Print();
    Print("{} {}, {}{}\n", options_.yes ? "deleted" : "would delete",
          FormatCount(count, "checkpoint"), BytesText(report_.bytes_freed),
          options_.yes || count == 0 ? "" : fmt::format("; {}", kDryRunHint));
  }

  void WriteDecisions() {
    json_.BeginObject();
    json_.Field("dry_run", !options_.yes);
    json_.BeginArray("decisions");
    for (const PruneDecision& decision : report_.decisions) {
      json_.Element({{"name", decision.entry.name},
                     {"verdict", VerdictName(decision.entry.verdict)},
                     {"step", StepToJson(decision.entry.step)},
                     {"attempt", IdToJson(decision.entry.attempt)},
                     {"size_bytes", decision.entry.size_bytes},
                     {"keep", decision.keep},
                     {"is_deleted", decision.is_deleted},
                     {"reasons", decision.reasons}});
    }
    json_.End();
    json_.Field("bytes_freed", report_.bytes_freed);
  }

  const PruneCommandOptions& options_;
  const std::string_view program_;
  PruneReport report_;
  JsonWriter json_;
};

class PruneCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description(
        "Deletes the checkpoints of a series that no rule keeps. Without --yes it only\n"
        "shows them.");
    app.footer(kFooter);
    app.add_option("SERIES", options_.series, "Directory of checkpoints")
        ->required()
        ->type_name("");
    AddRetentionRules(app, options_.rules);
    app.add_flag("--yes", options_.yes, "Delete the checkpoints");
    app.add_flag("--json", options_.json, "Print one JSON document, also after an error");
    // Whoever says nothing must not lose all but the newest two.
    app.callback([this] {
      if (!options_.rules.any()) {
        throw CLI::RequiredError("At least one --keep option or --max-bytes");
      }
    });
  }
  ExitStatus Run(std::string_view program) override { return Pruning(options_, program).Run(); }

 private:
  PruneCommandOptions options_;
};

const CommandEntry kPrune("prune", MakeCommand<PruneCommand>);

}  // namespace
}  // namespace sealpoint::tools::prune
