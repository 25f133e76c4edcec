// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/make/made.h"

#include <fmt/format.h>

#include <map>

#include "tools/ckpt/content.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools {
namespace {

CLI::Option* AddSize(CLI::App& app, const std::string& name, std::uint64_t& bytes,
                     const std::string& description) {
  return app.add_option(name, bytes, description)
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(true));
}

void PrintMade(const std::string& path, const RepackReport& report, const RepackOptions& options) {
  std::string text =
      fmt::format("{}, {}, {}", FormatCount(report.tensor_count, "tensor"),
                  FormatCount(report.object_count, "object"), BytesText(report.raw_bytes));
  if (!options.dry_run) {
    text += fmt::format("; {}, {}", FormatCount(report.blob_count, "blob"),
                        BytesText(report.total_bytes));
  }
  std::string_view how = report.was_committed ? "already exists:" : "created";
  if (options.dry_run) how = "would create";
  Print("{} {}: {}{}\n", how, Printable(path), text,
        report.is_identical ? "; the same checkpoint, byte for byte" : "");
}

void WriteMade(JsonWriter& json, const std::string& path, const RepackReport& report,
               const RepackOptions& options) {
  json.Field("path", path);
  json.Field("dry_run", options.dry_run);
  json.Field("attempt", IdToJson(report.attempt));
  json.Field("sequence", report.sequence);
  json.Field("step", StepToJson(report.step));
  json.Field("tensor_count", report.tensor_count);
  json.Field("object_count", report.object_count);
  json.Field("blob_count", report.blob_count);
  json.Field("raw_bytes", report.raw_bytes);
  json.Field("total_bytes", report.total_bytes);
  json.Field("is_identical", report.is_identical);
  json.Field("was_committed", report.was_committed);
}

}  // namespace

void AddDestination(CLI::App& app, std::string& to) {
  app.add_option("--out", to, "Directory of the new checkpoint")->required()->type_name("DIR");
}

void AddMemory(CLI::App& app, std::uint64_t& memory_bytes) {
  AddSize(app, "--memory", memory_bytes, "Memory for payload, for all threads together");
}

void AddRepackOptions(CLI::App& app, RepackOptions& options) {
  const std::map<std::string, Codec> codecs = {
      {"none", Codec::kNone}, {"zstd", Codec::kZstd}, {"bytesplit+zstd", Codec::kByteSplitZstd}};
  app.add_option_function<std::string>(
         "--compress",
         [&options, codecs](const std::string& codec) { options.codec = codecs.at(codec); },
         "none, zstd or bytesplit+zstd (default: unchanged)")
      ->type_name("CODEC")
      ->check(CLI::IsMember({"none", "zstd", "bytesplit+zstd"}));
  AddSize(app, "--chunk", options.chunk_size_bytes,
          "Chunk size, such as 1MiB (default: unchanged)");
  app.add_option("--blobs", options.blob_count, "Number of blobs (default: one per thread)")
      ->type_name("N")
      ->check(AtLeast(1));
  AddSize(app, "--blob-size", options.blob_size_max_bytes, "Maximum size of a blob, such as 4GiB");
  AddThreads(app, options.threads);
  AddMemory(app, options.memory_budget_bytes);
  app.add_flag("--dry-run", options.dry_run, "Show the result without writing anything");
}

PhaseCallback ProgressOn(ProgressLine& line, std::string_view what) {
  return [&line, what](const PhaseEvent& event) {
    line.Set(what, event.bytes_done, event.bytes_total);
  };
}

ExitStatus ShowMade(bool is_json, const std::string& path, const RepackReport& report,
                    const RepackOptions& options,
                    const std::function<void(JsonWriter& json)>& more) {
  if (!is_json) {
    PrintMade(path, report, options);
    return ExitStatus::kValid;
  }
  JsonWriter json;
  json.BeginObject();
  WriteMade(json, path, report, options);
  if (more) more(json);
  json.Finish(ExitStatus::kValid);
  return ExitStatus::kValid;
}

}  // namespace sealpoint::tools
