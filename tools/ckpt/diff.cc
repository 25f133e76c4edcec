// SPDX-License-Identifier: Apache-2.0
//
// ckpt diff: in what two checkpoints differ.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/content.h"
#include "sealpoint/phases.h"
#include "tools/ckpt/command.h"
#include "tools/ckpt/content.h"
#include "tools/common/json.h"
#include "tools/common/limits.h"
#include "tools/common/output.h"
#include "tools/common/text.h"

namespace sealpoint::tools::diff {
namespace {

constexpr const char* kFooter =
    "Chunks with the same boundaries on both sides are compared by their digests, regardless of\n"
    "codecs; their payload is not read, and damage to it is not detected (use ckpt verify).\n"
    "Different placements, mesh, step and provenance are listed, but do not count as a "
    "difference.\n"
    "Different attributes, of tensors and of the checkpoints, do.\n"
    "Exit status: 0 same content, 1 different, 2 uncommitted, 3 unsupported, 4 corrupt, could\n"
    "not be read or nothing found, 5 incomplete, 64 usage, 74 standard output could not be\n"
    "written.";

struct DiffOptions {
  std::string first;
  std::string second;
  std::vector<std::string> maps;  // REGEX=REPL
  CompareOptions compare;
  bool json = false;
};

constexpr std::string_view ChangeName(ContentChange change) {
  switch (change) {
    case ContentChange::kNone:
      return "none";
    case ContentChange::kRemoved:
      return "removed";
    case ContentChange::kAdded:
      return "added";
    case ContentChange::kDType:
      return "dtype";
    case ContentChange::kShape:
      return "shape";
    case ContentChange::kMediaType:
      return "media_type";
    case ContentChange::kBytes:
      return "bytes";
    case ContentChange::kUnknown:
      return "unknown";
  }
  return "bytes";
}

// Ends a search that backtracks for ever, as "(a+)+$" does in names of a's that end otherwise.
struct TooManySteps {};

// A name whose reading is counted: std::regex reads characters only through its iterators.
class CountedReader {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedReader() = default;
  CountedReader(const char* at, std::uint64_t& steps) : at_(at), steps_(&steps) {}
  reference operator*() const {
    constexpr std::uint64_t kStepsMax = 1'000'000;  // some 0.1 s; a name has at most 1024 bytes
    if (++*steps_ > kStepsMax) throw TooManySteps();
    return *at_;
  }
  CountedReader& operator++() {
    ++at_;
    return *this;
  }
  CountedReader operator++(int) {
    CountedReader before = *this;
    ++at_;
    return before;
  }
  CountedReader& operator--() {
    --at_;
    return *this;
  }
  CountedReader operator--(int) {
    CountedReader before = *this;
    --at_;
    return before;
  }
  friend bool operator==(const CountedReader& a, const CountedReader& b) { return a.at_ == b.at_; }

 private:
  const char* at_ = nullptr;
  std::uint64_t* steps_ = nullptr;
};

std::string Replace(const std::string& name, const std::regex& regex,
                    const std::string& replacement) {
  std::uint64_t steps = 0;
  std::string text;
  std::regex_replace(std::back_inserter(text), CountedReader(name.data(), steps),
                     CountedReader(name.data() + name.size(), steps), regex, replacement);
  return text;
}

// The name of A's tensor in B, by the options --map one after the other. What goes wrong on the way
// is written to `failure`, which outlives the options.
Status SetRename(const std::vector<std::string>& maps, CompareOptions& options, Status& failure) {
  struct Rule {
    std::string text;
    std::regex regex;
    std::string replacement;
  };
  std::vector<Rule> rules;
  for (const std::string& map : maps) {
    const std::size_t equals = map.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return {Code::kInvalidArgument, fmt::format("--map {}: not of the form REGEX=REPL", map)};
    }
    try {
      rules.push_back({.text = map,
                       .regex = std::regex(map.substr(0, equals)),
                       .replacement = map.substr(equals + 1)});
    } catch (const std::regex_error& error) {
      return {Code::kInvalidArgument, fmt::format("--map {}: {}", map, error.what())};
    }
  }
  if (rules.empty()) return {};
  options.rename = [rules, &failure](std::string_view name) {
    std::string text(name);
    for (const Rule& rule : rules) {
      if (!failure.ok()) break;
      try {
        text = Replace(text, rule.regex, rule.replacement);
      } catch (const TooManySteps&) {
        failure = Status(Code::kInvalidArgument,
                         fmt::format("--map {}: too many ways to match it in {}; avoid nested "
                                     "repetitions such as (a+)+",
                                     rule.text, Printable(name)));
      }
    }
    return text;
  };
  return {};
}

// A fact about how a checkpoint was saved.
struct Fact {
  std::string name;
  std::string first;
  std::string second;
};

using Provenance = std::vector<std::pair<std::string, std::string>>;

std::string Find(const Provenance& provenance, const std::string& key) {
  for (const auto& [one, value] : provenance) {
    if (one == key) return value;
  }
  return "";
}

std::vector<Fact> DifferentFacts(const Checkpoint& a, const Checkpoint& b) {
  std::vector<Fact> facts;
  const auto add = [&](std::string name, std::string first, std::string second) {
    if (first != second) facts.push_back({std::move(name), std::move(first), std::move(second)});
  };
  add("step", FormatStep(a.step()), FormatStep(b.step()));
  add("mesh", FormatMesh(a.mesh()), FormatMesh(b.mesh()));
  const Provenance of_a = a.provenance();
  const Provenance of_b = b.provenance();
  for (const auto& [key, value] : of_a) add("provenance " + key, value, Find(of_b, key));
  for (const auto& [key, value] : of_b) {
    if (Find(of_a, key).empty()) add("provenance " + key, "", value);
  }
  return facts;
}

std::string AttributeText(const Attributes::Values& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : AttributeToString(found->second);
}

std::vector<Fact> DifferentAttributes(const Attributes& a, const Attributes& b) {
  std::vector<Fact> facts;
  const Attributes::Values of_a = a.values();
  const Attributes::Values of_b = b.values();
  std::set<std::string> names;
  for (const auto* values : {&of_a, &of_b}) {
    for (const auto& [name, value] : *values) names.insert(name);
  }
  for (const std::string& name : names) {
    std::string first = AttributeText(of_a, name);
    std::string second = AttributeText(of_b, name);
    if (first != second) facts.push_back({name, std::move(first), std::move(second)});
  }
  return facts;
}

class Diff {
 public:
  Diff(DiffOptions& options, std::string_view program) : options_(options), program_(program) {}

  ExitStatus Run() {
    const Status status = Compare();
    if (!status.ok()) {
      return Fail(program_, status, "", options_.json ? &json_ : nullptr, ExitStatus::kUnreadable);
    }
    options_.json ? WriteReport() : PrintReport();
    return is_same() ? ExitStatus::kValid : ExitStatus::kDifferent;
  }

 private:
  bool is_same() const {
    return report_.is_same() && first_->attributes() == second_->attributes() &&
           std::ranges::none_of(report_.tensors, &TensorDifference::attributes_differ);
  }

  static void PrintAttributes(std::string_view of, const Attributes& a, const Attributes& b) {
    for (const Fact& one : DifferentAttributes(a, b)) {
      Print("attribute: {}{}: {} and {}\n", of, Printable(one.name), OrNone(one.first),
            OrNone(one.second));
    }
  }

  Status Compare() {
    Status renamed;
    if (Status status = SetRename(options_.maps, options_.compare, renamed); !status.ok()) {
      return status;
    }
    auto first = Checkpoint::Open(options_.first, {.limits = TypedLimits()});
    if (!first) return first.error();
    auto second = Checkpoint::Open(options_.second, {.limits = TypedLimits()});
    if (!second) return second.error();
    first_ = *std::move(first);
    second_ = *std::move(second);
    for (std::size_t i = 0; i < first_->tensor_count() && options_.compare.rename; ++i) {
      static_cast<void>(options_.compare.rename(first_->tensor(i).name));
    }
    if (!renamed.ok()) return renamed;  // before a byte is compared
    ProgressLine line;
    options_.compare.on_progress = [&line](const PhaseEvent& event) {
      line.Set("compare", event.bytes_done, event.bytes_total);
    };
    Result<CompareReport> report = sealpoint::Compare(*first_, *second_, options_.compare);
    if (!report) return report.error();
    report_ = *std::move(report);
    facts_ = DifferentFacts(*first_, *second_);
    return {};
  }

  static std::string Described(const TensorInfo& tensor) {
    return fmt::format("{} {}", DTypeName(tensor.dtype), ShapeToString(tensor.shape));
  }

  void PrintTensor(const TensorDifference& one) const {
    const std::string name = Printable(one.name.empty() ? one.second_name : one.name);
    const std::string renamed =
        one.name.empty() || one.second_name.empty() || one.name == one.second_name
            ? ""
            : fmt::format(" ({})", Printable(one.second_name));
    const auto a = first_->FindTensor(one.name);
    const auto b = second_->FindTensor(one.second_name);
    if (one.change == ContentChange::kRemoved) {
      Print("removed: tensor {}, {}\n", name, Described(*a));
    } else if (one.change == ContentChange::kAdded) {
      Print("added: tensor {}, {}\n", name, Described(*b));
    } else if (one.change == ContentChange::kBytes) {
      Print("changed: tensor {}{}, {} of {}\n", name, renamed, BytesText(one.changed_bytes),
            BytesText(a->raw_bytes));
      if (one.numeric) PrintNumeric(*one.numeric, a->raw_bytes / a->element_size);
    } else if (one.change != ContentChange::kNone) {
      Print("{}: tensor {}{}, {} and {}\n", ChangeName(one.change), name, renamed, Described(*a),
            Described(*b));
    }
    if (one.placement_differs) {
      Print("placement: tensor {}{}, {} and {}\n", name, renamed,
            Printable(fmt::format("{}", fmt::join(a->placement, ", "))),
            Printable(fmt::format("{}", fmt::join(b->placement, ", "))));
    }
    if (one.attributes_differ) {
      PrintAttributes(fmt::format("tensor {}{}: ", name, renamed), a->attributes, b->attributes);
    }
  }

  static void PrintNumeric(const NumericDifference& numeric, std::uint64_t count) {
    Print("  {} of {} elements, max abs {:.6g}, L2 {:.6g}, relative L2 {:.6g}, cosine {:.9g}\n",
          numeric.changed_count, count, numeric.max_abs, numeric.l2, numeric.relative_l2,
          numeric.cosine);
    if (numeric.new_nan_count + numeric.new_infinity_count > 0) {
      Print("  new: {} NaN, {} infinite\n", numeric.new_nan_count, numeric.new_infinity_count);
    }
  }

  static std::string OrNone(const std::string& text) {
    return text.empty() ? "none" : Printable(text);
  }

  void PrintReport() const {
    for (const TensorDifference& tensor_difference : report_.tensors)
      PrintTensor(tensor_difference);
    for (const ObjectDifference& object_difference : report_.objects) {
      Print("{}: object {}\n",
            object_difference.change == ContentChange::kBytes
                ? "changed"
                : ChangeName(object_difference.change),
            Printable(object_difference.name));
    }
    PrintAttributes("", first_->attributes(), second_->attributes());
    for (const Fact& fact : facts_) {
      Print("fact: {}: {} and {}\n", Printable(fact.name), OrNone(fact.first), OrNone(fact.second));
    }
    Print("{}: {} and {} are equal; read {} of tables, {} of payload\n",
          is_same() ? "same content" : "different content",
          FormatCount(report_.equal_tensor_count, "tensor"),
          FormatCount(report_.equal_object_count, "object"), BytesText(report_.table_bytes_read),
          BytesText(report_.payload_bytes_read));
  }

  Json TensorToJson(const TensorDifference& one) const {
    Json json = {{"change", ChangeName(one.change)}};
    const auto add = [&json](const char* side, const std::optional<TensorInfo>& tensor) {
      if (!tensor) return;
      json[side] = {
          {"name", tensor->name},           {"dtype", DTypeName(tensor->dtype)},
          {"shape", tensor->shape},         {"raw_bytes", tensor->raw_bytes},
          {"placement", tensor->placement}, {"attributes", AttributesToJson(tensor->attributes)}};
    };
    add("first", first_->FindTensor(one.name));
    add("second", second_->FindTensor(one.second_name));
    json["placement_differs"] = one.placement_differs;
    json["attributes_differ"] = one.attributes_differ;
    if (one.change == ContentChange::kBytes) json["changed_bytes"] = one.changed_bytes;
    if (!one.numeric) return json;
    const NumericDifference& numeric = *one.numeric;
    json["numeric"] = {{"read_count", numeric.read_count},
                       {"changed_count", numeric.changed_count},
                       {"max_abs", DoubleToJson(numeric.max_abs)},
                       {"l2", DoubleToJson(numeric.l2)},
                       {"relative_l2", DoubleToJson(numeric.relative_l2)},
                       {"cosine", DoubleToJson(numeric.cosine)},
                       {"new_nan_count", numeric.new_nan_count},
                       {"new_infinity_count", numeric.new_infinity_count}};
    return json;
  }

  void WriteReport() {
    json_.BeginObject();
    json_.Field("is_same", is_same());
    json_.Field("attributes", {{"first", AttributesToJson(first_->attributes())},
                               {"second", AttributesToJson(second_->attributes())}});
    json_.BeginArray("tensors");
    for (const TensorDifference& difference : report_.tensors)
      json_.Element(TensorToJson(difference));
    json_.End();
    json_.BeginArray("objects");
    for (const ObjectDifference& object : report_.objects) {
      json_.Element({{"name", object.name}, {"change", ChangeName(object.change)}});
    }
    json_.End();
    json_.BeginArray("facts");
    for (const Fact& fact : facts_) {
      json_.Element({{"name", fact.name}, {"first", fact.first}, {"second", fact.second}});
    }
    json_.End();
    json_.Field("equal_tensor_count", report_.equal_tensor_count);
    json_.Field("equal_object_count", report_.equal_object_count);
    json_.Field("table_bytes_read", report_.table_bytes_read);
    json_.Field("payload_bytes_read", report_.payload_bytes_read);
    json_.Finish(is_same() ? ExitStatus::kValid : ExitStatus::kDifferent);
  }

  DiffOptions& options_;
  const std::string_view program_;
  std::unique_ptr<Checkpoint> first_;
  std::unique_ptr<Checkpoint> second_;
  CompareReport report_;
  std::vector<Fact> facts_;
  JsonWriter json_;
};

class DiffCommand final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.description("Shows the differences between two checkpoints.");
    app.footer(kFooter);
    app.add_option("A", options_.first, "Directory of a checkpoint")->required()->type_name("");
    app.add_option("B", options_.second, "Directory of another checkpoint")
        ->required()
        ->type_name("");
    app.add_flag("--numeric", options_.compare.numeric,
                 "Read the chunks that differ, and measure the differences");
    AddRepeatable(app, "--map", options_.maps, "REGEX=REPL",
                  "Rename tensors of A: replace each match of the regular\n"
                  "expression (ECMAScript)");
    AddThreads(app, options_.compare.threads);
    app.add_flag("--json", options_.json, "Print one JSON document, also after an error");
  }
  ExitStatus Run(std::string_view program) override { return Diff(options_, program).Run(); }

 private:
  DiffOptions options_;
};

const CommandEntry kDiff("diff", MakeCommand<DiffCommand>);

}  // namespace
}  // namespace sealpoint::tools::diff
