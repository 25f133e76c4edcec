// SPDX-License-Identifier: Apache-2.0
//
// ckpt clean: removes what is left of attempts that were never committed.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/series.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/ckpt/series/typed_series.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::clean {
namespace {

constexpr const char* kFooter =
    "Run it only while no save into the series is running: such a save loses its attempt. The "
    "first\n"
    "pass leaves a void marker, so that a slow writer can no longer commit. The next pass removes\n"
    "the directory; by then no writer of that attempt may be alive.\n"
    "Exit status: 0 done, or shown, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read\n"
    "or removed, or nothing found, 5 incomplete, 64 usage, 74 standard output could not be\n"
    "written.";

// An attempt that was never committed.
struct Attempt {
  std::string name;
  bool is_void = false;
  std::uint64_t size_bytes = 0;
  std::uint64_t upload_count = 0;
  std::string left;  // why it stays
  CleanUpReport done;
  Status error;
};

class Cleaning {
 public:
  Cleaning(std::string path, bool yes, bool json, std::string_view program)
      : path_(std::move(path)), yes_(yes), is_json_(json), program_(program), series_(path_) {}

  ExitStatus Run() {
    if (const Status status = Find(); !status.ok()) {
      return Fail(program_, status, HintForSeries(path_, kSeriesAbove),
                  is_json_ ? &json_ : nullptr);
    }
    for (auto& [name, attempt] : attempts_) {
      if (!yes_ || !attempt.left.empty()) continue;
      Remove(attempt);
    }
    is_json_ ? WriteReport() : PrintReport();
    return status_;
  }

 private:
  // A bucket has no directories, but some servers list one whose objects are all gone.
  static bool IsLeftByServer(const SeriesEntry& entry) {
    return entry.path.find("://") != std::string::npos && entry.size_bytes == 0 && !entry.is_void;
  }

  Status Find() {
    const Result<SeriesListing> listing = series_.List();
    if (!listing) return listing.error();
    for (const SeriesEntry& entry : listing->entries) {
      if (entry.verdict != Verdict::kUncommitted || IsLeftByServer(entry)) continue;
      Attempt& attempt = attempts_[entry.name];
      attempt = {.name = entry.name, .is_void = entry.is_void, .size_bytes = entry.size_bytes};
      if (entry.is_kept) attempt.left = "a KEEP file pins it";
      if (entry.is_link) attempt.left = "it is a symbolic link";
    }
    const Result<std::vector<UnfinishedFile>> uploads = series_.ListUnfinished();
    if (!uploads && uploads.error().code() != Code::kUnsupported) return uploads.error();
    if (!uploads) uploads_problem_ = uploads.error();
    if (uploads) CountUploads(*uploads, *listing);
    const bool is_empty = listing->entries.empty() && attempts_.empty();
    return is_empty ? NoSeries(path_) : Status();
  }

  // An attempt may have nothing else.
  void CountUploads(const std::vector<UnfinishedFile>& uploads, const SeriesListing& listing) {
    for (const UnfinishedFile& upload : uploads) {
      if (!upload.name.ends_with(".blob") && !upload.name.ends_with(".index")) continue;
      const std::size_t slash = upload.name.find('/');
      if (slash == std::string::npos) continue;
      const std::string name = upload.name.substr(0, slash);
      Attempt& attempt = attempts_[name];
      attempt.name = name;
      ++attempt.upload_count;
      const auto& entries = listing.entries;
      const auto found = std::ranges::find(entries, name, &SeriesEntry::name);
      if (found != entries.end() && found->verdict != Verdict::kUncommitted) {
        attempt.left = "it has a marker; a lifecycle rule of the bucket aborts such uploads";
      }
    }
  }

  bool IsThere(const std::string& name) const {
    const auto directory = DefaultStorage()->OpenDirectory(JoinPath(path_, name));
    if (!directory) return false;
    const auto names = (*directory)->List();
    return names && !names->empty();
  }

  void Remove(Attempt& attempt) {
    Result<CleanUpReport> done = series_.RemoveUncommitted(attempt.name);
    if (done) {
      attempt.done = *std::move(done);
      if (attempt.is_void && IsThere(attempt.name)) {
        attempt.left = "the void marker stays, because the directory has files of other programs";
      }
      return;
    }
    // It was committed or removed meanwhile, or is not ours.
    const Code code = done.error().code();
    if (code == Code::kInvalidArgument || code == Code::kNotFound) {
      attempt.left = done.error().message();
      return;
    }
    attempt.error = done.error();
    status_ = Worse(status_, StatusOfError(attempt.error));
  }

  static std::string SizeOf(const Attempt& attempt) {
    std::string text = BytesText(attempt.size_bytes);
    if (attempt.upload_count > 0) {
      text += ", " + FormatCount(attempt.upload_count, "unfinished upload");
    }
    return text;
  }

  void PrintAttempt(const Attempt& attempt) const {
    const std::string name = Printable(attempt.name);
    if (!attempt.error.ok()) {
      Flush();
      PrintError(program_, attempt.error.ToString());
    } else if (!attempt.left.empty()) {
      Print("left: {}: {}, {}\n", name, SizeOf(attempt), Printable(attempt.left));
    } else if (attempt.is_void) {
      Print("{}: {}: void, {}{}\n", yes_ ? "removed" : "would remove", name, SizeOf(attempt),
            yes_ ? "" : "; no writer of it may be alive");
    } else {
      Print("{}: {}: never committed, {}\n", yes_ ? "cleaned" : "would clean", name,
            SizeOf(attempt));
    }
  }

  void PrintReport() const {
    bool has_work = false;
    bool has_void = false;
    for (const auto& [name, attempt] : attempts_) {
      PrintAttempt(attempt);
      const bool is_done = attempt.left.empty() && attempt.error.ok();
      has_work |= is_done;
      has_void |= is_done && !attempt.is_void;
    }
    if (!uploads_problem_.ok()) {
      Print("note: unfinished uploads cannot be listed: {}\n", uploads_problem_.ToString());
    }
    if (!has_work) {
      Print("nothing to clean\n");
    } else if (!yes_) {
      Print("{}\n", kDryRunHint);
    } else if (has_void) {
      Print(
          "void markers remain; once no writer of these attempts is alive, repeat the command\n"
          "to remove them\n");
    }
  }

  void WriteReport() {
    json_.BeginObject();
    json_.Field("dry_run", !yes_);
    json_.BeginArray("attempts");
    for (const auto& [name, attempt] : attempts_) {
      const bool is_done = yes_ && attempt.left.empty() && attempt.error.ok();
      Json json = {{"name", name},
                   {"is_void", attempt.is_void},
                   {"size_bytes", attempt.size_bytes},
                   {"upload_count", attempt.upload_count},
                   {"is_removed", is_done},
                   {"bytes_freed", attempt.done.bytes_freed},
                   {"left", attempt.left}};
      if (!attempt.error.ok()) json["error"] = StatusToJson(attempt.error);
      json_.Element(json);
    }
    json_.End();
    json_.Field("uploads_are_seen", uploads_problem_.ok());
    json_.Finish(status_);
  }

  const std::string path_;
  const bool yes_;
  const bool is_json_;
  const std::string_view program_;
  const Series series_;
  std::map<std::string, Attempt> attempts_;  // by name
  Status uploads_problem_;                   // the client of the store cannot list them
  ExitStatus status_ = ExitStatus::kValid;
  JsonWriter json_;
};

class CleanCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description(
        "Removes attempts that were never committed. Without --yes it only shows\n"
        "them.");
    app.footer(kFooter);
    app.add_option("SERIES", series_, "Directory of checkpoints")->required()->type_name("");
    app.add_flag("--yes", yes_, "Remove the attempts");
    app.add_flag("--json", json_, "Print one JSON document, also after an error");
  }
  ExitStatus Run(std::string_view program) override {
    return Cleaning(series_, yes_, json_, program).Run();
  }

 private:
  std::string series_;
  bool yes_ = false;
  bool json_ = false;
};

const CommandEntry kClean("clean", MakeCommand<CleanCommand>);

}  // namespace
}  // namespace sealpoint::tools::clean
