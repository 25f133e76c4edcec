// SPDX-License-Identifier: Apache-2.0
//
// ckpt report: a page about a series for people.
#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "sealpoint/bytes.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/report/collect.h"
#include "tools/ckpt/report/new_file.h"
#include "tools/ckpt/report/page.h"
#include "tools/ckpt/report/print_json.h"
#include "tools/ckpt/series/typed_series.h"
#include "tools/common/hint.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::report {
namespace {

constexpr const char* kFooter =
    "The page needs no network and no script. Damaged checkpoints are shown with their errors.\n"
    "Only --norms and --level full read payload; statistics stored in SERIES.stats (by --norms or\n"
    "ckpt stats --store) are always shown. An older page of ckpt report is replaced, any other\n"
    "file only with --force. The --keep options show the effect of ckpt prune and delete nothing.\n"
    "Exit status: 0 all valid, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read or\n"
    "written, or nothing found, 5 incomplete, 64 usage, or refused, 74 standard output could not\n"
    "be written. For several, 1, 5, 4, 3, 2 win in this order.";

struct ReportOptions {
  CollectOptions collect;
  std::string out;
  bool all = false;
  bool force = false;
  bool json = false;
};

class Report {
 public:
  Report(const ReportOptions& options, std::string_view program)
      : options_(options), program_(program) {}

  ExitStatus Run() {
    // Before the work of hours.
    if (const Status status = CheckOut(); !status.ok()) return End(status, Hint(status));
    const Result<ReportData> data = CollectData(options_.collect);
    const std::string& series = options_.collect.series;
    if (!data) return End(data.error(), HintForSeries(series, kSeriesAbove));
    if (data->steps.empty()) {
      const std::string hint = HintForSeries(series, kSeriesAbove);
      if (!hint.empty()) return End(NoSeries(series), hint);
    }
    const std::string page = options_.out.empty() ? "" : MakePage(*data, options_.all);
    if (options_.out == kStandardOutput) {
      Write(page);
      return data->exit_status();
    }
    if (!options_.out.empty()) {
      const Status written = WriteOut(page);
      if (!written.ok()) return End(written, Hint(written));
    }
    if (options_.json) {
      WriteJson(*data, options_.out);
    } else {
      Print("{}: {}, {}\n", Printable(options_.out), FormatCount(data->steps.size(), "checkpoint"),
            BytesText(page.size()));
    }
    return data->exit_status();
  }

 private:
  static constexpr std::string_view kStandardOutput = "-";

  bool WritesFile() const { return !options_.out.empty() && options_.out != kStandardOutput; }

  // Whether there is a file that must not go, or the page cannot be made there at all.
  Status CheckOut() {
    if (!WritesFile()) return {};
    const Result<bool> there = CheckPlace(options_.out);
    if (!there) return there.error();
    is_there_ = *there;
    if (!is_there_ || options_.force) return {};
    const Result<std::string> begin = ReadBegin(options_.out, kPageBegin.size());
    // What has gone meanwhile is in nobody's way.
    if (begin.error().code() == Code::kNotFound || (begin && *begin == kPageBegin)) return {};
    return Status(Code::kAlreadyExists, "this file was not written by ckpt report")
        .AtPath(options_.out);
  }

  Status WriteOut(const std::string& page) {
    if (!is_there_ && !options_.force) {
      const Status made = MakeFile(options_.out, page);
      if (made.code() != Code::kAlreadyExists) return made;
      // It was made meanwhile.
      if (Status status = CheckOut(); !status.ok()) return status;
    }
    return ReplaceFile(options_.out, page);
  }

  static std::string Hint(const Status& status) {
    return status.code() == Code::kAlreadyExists ? "--force replaces it" : "";
  }

  ExitStatus End(const Status& error, const std::string& hint) {
    JsonWriter json;
    return Fail(program_, error, hint, options_.json ? &json : nullptr);
  }

  const ReportOptions& options_;
  const std::string_view program_;
  bool is_there_ = false;
};

class ReportCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Generates an HTML page about a series: sizes, times, norms, verdicts.");
    app.footer(kFooter);
    CollectOptions& collect = options_.collect;
    app.add_option("SERIES", collect.series, "Directory of checkpoints")->required()->type_name("");
    app.add_option("--out", options_.out, "Output file, such as report.html; - for standard output")
        ->type_name("PATH");
    AddLevel(app);
    app.add_flag("--norms", collect.norms,
                 "Compute missing statistics from all values, and store\nthem");
    app.add_flag_callback(
        "--no-store", [&collect] { collect.store = false; }, "Do not store statistics");
    app.add_option("--depth", collect.depth,
                   "Group tensors into layers by the first N parts of their\n"
                   "names (default: at most 24 layers)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024));
    AddRetentionRules(app, collect.rules);
    AddThreads(app, collect.threads);
    app.add_flag(
        "--all", options_.all,
        "List every checkpoint in the table (default: beyond\n200, omit older unremarkable ones)");
    app.add_flag("--force", options_.force, "Replace any existing file");
    app.add_flag("--json", options_.json, "Print one JSON document, also after an error");
    app.callback([this] {
      if (options_.out.empty() && !options_.json) throw CLI::RequiredError("--out or --json");
      if (options_.out == "-" && options_.json) {
        throw CLI::ExcludesError("--out -", "--json");
      }
    });
  }

  ExitStatus Run(std::string_view program) override { return Report(options_, program).Run(); }

 private:
  void AddLevel(CLI::App& app) {
    const std::map<std::string, VerifyLevel> levels = {{"files", VerifyLevel::kFiles},
                                                       {"structure", VerifyLevel::kStructure},
                                                       {"full", VerifyLevel::kFull}};
    app.add_option_function<std::string>(
           "--level",
           [this, levels](const std::string& level) { options_.collect.level = levels.at(level); },
           "files (default), structure or full; see ckpt verify")
        ->type_name("LEVEL")
        ->check(CLI::IsMember({"files", "structure", "full"}));
  }

  ReportOptions options_;
};

const CommandEntry kReport("report", MakeCommand<ReportCommand>);

}  // namespace
}  // namespace sealpoint::tools::report
