// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/verify/options.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <random>
#include <string_view>
#include <system_error>

#include "tools/ckpt/content.h"

namespace sealpoint::tools::verify {
namespace {

constexpr const char* kFooter =
    "Levels: files (marker, index, lengths of the blobs), structure (also everything except the\n"
    "chunks), full (also every chunk and padding byte, read past the page cache).\n"
    "One line per violation: VERDICT: RULE FILE:OFFSET tensor|object \"NAME\": MESSAGE. A file\n"
    "with more than 20 violations has a single line with their number, unless --all is given.\n"
    "Exit status: 0 valid, 1 corrupt, 2 uncommitted, 3 unsupported, 4 could not be read or "
    "nothing\n"
    "found, 5 incomplete, 64 usage, 74 standard output or the file of --state could not be\n"
    "written. For several paths 1, 5, 4, 3, 2 win in this order.";

template <typename T>
std::optional<T> NumberOf(std::string_view text) {
  T number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

// P % of the chunks, or a few more: one of the parts, which is drawn.
std::optional<VerifyPart> DrawPart(double percent) {
  if (!(percent > 0 && percent <= 100)) return std::nullopt;
  const double count = 100 / percent;
  if (count > VerifyPart::kCountMax) return std::nullopt;
  VerifyPart part{.count = static_cast<std::uint32_t>(count)};
  std::random_device random;
  part.number = std::uniform_int_distribution<std::uint32_t>(1, part.count)(random);
  return part;
}

std::optional<VerifyPart> PartOf(std::string_view text) {
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    const std::optional<double> percent = NumberOf<double>(text);
    return percent ? DrawPart(*percent) : std::nullopt;
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto number = NumberOf<std::uint32_t>(text.substr(0, slash));
  const auto count = NumberOf<std::uint32_t>(text.substr(slash + 1));
  if (!number || !count || *number == 0 || *number > *count || *count > VerifyPart::kCountMax) {
    return std::nullopt;
  }
  return VerifyPart{.number = *number, .count = *count};
}

void AddCronOptions(CLI::App& app, Options& options) {
  const auto set_part = [&options](const std::string& text) {
    const std::optional<VerifyPart> part = PartOf(text);
    if (!part) {
      throw CLI::ValidationError("--subset",
                                 fmt::format("{}: expected N/T with N from 1 to T, or P%", text));
    }
    options.part = *part;
    options.is_part_drawn = text.ends_with('%');
  };
  app.add_option_function<std::string>("--subset", set_part,
                                       "Check only the N-th of T parts of the chunks, or a\n"
                                       "random part of P %; all other data is always checked")
      ->type_name("N/T|P%");
  app.add_option("--since", options.since,
                 "Check only the first checkpoint of a series that\n"
                 "reached STEP, and all later commits")
      ->type_name("STEP")
      ->check(AtLeast(0));
  app.add_option("--state", options.state,
                 "Record progress in FILE; after an interruption the\n"
                 "same command continues")
      ->type_name("FILE");
  const auto set_limit = [&options](double limit) {
    options.bytes_per_second_max = static_cast<std::uint64_t>(limit * 1e6);
  };
  app.add_option_function<double>("--limit-mb-per-s", set_limit,
                                  "Read at most N MB (10^6 bytes) per second")
      ->type_name("N")
      ->check(CLI::Range(0.1, 1e9));
}

// What CLI11 cannot know of options that belong together.
void CheckTogether(const Options& options) {
  if (options.paths.empty() && options.series.empty()) {
    throw CLI::RequiredError("PATH or --series DIR");
  }
  if (options.since && options.series.empty()) throw CLI::RequiresError("--since", "--series");
  if (!options.state.empty() && options.is_part_drawn) {
    throw CLI::ValidationError("--state", "continues the same part: expected --subset N/T, not P%");
  }
  if (options.fingerprints && !options.part.is_whole()) {
    throw CLI::ExcludesError("--fingerprints", "--subset");
  }
  if (options.level == VerifyLevel::kFull) return;
  if (options.fingerprints) throw CLI::RequiresError("--fingerprints", "--level full");
  if (!options.part.is_whole()) throw CLI::RequiresError("--subset", "--level full");
  if (!options.state.empty()) throw CLI::RequiresError("--state", "--level full");
}

}  // namespace

void AddOptions(CLI::App& app, Options& options) {
  app.description("Verifies checkpoints.");
  app.footer(kFooter);
  app.add_option("PATH", options.paths, "Directories of checkpoints")->type_name("");
  AddRepeatable(app, "--series", options.series, "DIR", "Check every checkpoint of a series");
  AddRepeatable(app, "--base", options.bases, "DIR",
                "Directory of a base that is not beside its delta");
  const std::map<std::string, VerifyLevel> levels = {{"files", VerifyLevel::kFiles},
                                                     {"structure", VerifyLevel::kStructure},
                                                     {"full", VerifyLevel::kFull}};
  const auto set_level = [&options, levels](const std::string& level) {
    options.level = levels.at(level);
  };
  app.add_option_function<std::string>("--level", set_level, "files, structure or full (default)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"files", "structure", "full"}));
  AddCronOptions(app, options);
  AddThreads(app, options.threads);
  app.add_flag("--fingerprints", options.fingerprints,
               "Also compute the fingerprints of the tensors and compare\n"
               "them with those that the writer stored; reads all payload\n"
               "once more");
  app.add_flag("--all", options.all, "List every violation and every note");
  app.add_flag("--json", options.json, "Print one JSON document, also after an error");
  app.add_flag("-q,--quiet", options.quiet, "Print violations only");
  app.callback([&options] { CheckTogether(options); });
}

}  // namespace sealpoint::tools::verify
