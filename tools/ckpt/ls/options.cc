// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/ls/options.h"

namespace sealpoint::tools::ls {
namespace {

constexpr const char* kFooter =
    "In a PATTERN `*` matches any characters, `?` one, and a backslash before one makes it match\n"
    "itself. Verdicts are at the level of files; ckpt verify checks the content.\n"
    "Exit status: 0 shown (of a checkpoint: committed), 1 corrupt, 2 uncommitted, 3 unsupported,\n"
    "4 could not be read or nothing found, 5 incomplete, 64 usage, 74 standard output could not\n"
    "be written.";

class Adder {
 public:
  Adder(CLI::App& app, Options& options) : app_(app), options_(options) {}

  void AddAll() {
    app_.description(
        "Shows what a checkpoint, or a series of them, holds. Reads payload only for\n"
        "--values and --object, and prints none that was not verified.");
    app_.footer(kFooter);
    app_.add_option("PATH", options_.path,
                    "A checkpoint of any known format, or a series of\nthose of Sealpoint: a "
                    "directory, a file or a URL")
        ->required()
        ->type_name("");
    AddSubjects();
    AddPlan();
    AddDetails();
    AddForeign();
  }

 private:
  // Its presence makes the subject.
  CLI::Option* Choose(CLI::Option* option, Subject subject) {
    return option->each(
        [&options = options_, subject](const std::string&) { options.subject = subject; });
  }

  CLI::Option* AddPatterns(const char* name, Subject subject, const char* description) {
    return Choose(app_.add_option(name, options_.patterns, description), subject)
        ->type_name("PATTERN")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void AddSubjects() {
    tensor_ = AddPatterns("--tensor", Subject::kTensors,
                          "These tensors: shards, their regions and blobs,\n"
                          "codec and stored size");
    values_ = AddPatterns("--values", Subject::kValues,
                          "The values of these tensors, verified; 256 of each\n"
                          "unless --all is given");
    values_->excludes(tensor_);
    app_.add_option("--box", options_.box,
                    "A part of them: a range or an index per dimension,\n"
                    "such as 0:4,7 or 2:")
        ->type_name("RANGE,...")
        ->needs(values_);
    object_ = AddPatterns("--object", Subject::kObject,
                          "Write the verified bytes of this object to standard\n"
                          "output; with --json describe all that match");
    object_->excludes(tensor_)->excludes(values_);
  }

  void AddPlan() {
    plan_ = Choose(app_.add_option("--plan", options_.plan.mesh,
                                   "What each rank of a mesh would read, such as\n"
                                   "data=4,tensor=2. Tensors are placed as stored;\n"
                                   "an axis that is left out has one rank"),
                   Subject::kPlan)
                ->type_name("AXIS=N,...")
                ->excludes(tensor_)
                ->excludes(values_)
                ->excludes(object_);
    app_.add_option("--place", options_.plan.places,
                    "Other rules for some tensors, such as\n"
                    "'layers.*=shard(dim 0, tensor), replicate(data)'.\n"
                    "Of several that fit a name the last counts")
        ->type_name("PATTERN=RULE,...")
        ->needs(plan_)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void AddDetails() {
    app_.add_option("--depth", options_.depth_max, "Levels of the tree of tensors")->type_name("N");
    app_.add_flag("-l,--long", options_.is_long,
                  "Codec, stored size and ratio of each tensor, which\n"
                  "reads all tables");
    app_.add_flag("--all", options_.all, "All values, all notes");
    app_.add_flag("--json", options_.json, "Print one JSON document, also after an error");
  }

  void AddForeign() {
    app_.add_option("--per-rank", options_.per_rank,
                    "Of a directory of DCP with metadata per rank: each\n"
                    "rank has its own of these names")
        ->type_name("PATTERN")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app_.add_option_function<std::uint64_t>(
            "--metadata-memory",
            [&options = options_](std::uint64_t bytes) { options.metadata_memory_bytes = bytes; },
            "For names, values and places of tensors of other\n"
            "formats (default: 16 times what the files have, and\n"
            "64MiB)")
        ->type_name("SIZE")
        ->transform(CLI::AsSizeValue(true));
  }

  CLI::App& app_;
  Options& options_;
  CLI::Option* tensor_ = nullptr;
  CLI::Option* values_ = nullptr;
  CLI::Option* object_ = nullptr;
  CLI::Option* plan_ = nullptr;
};

}  // namespace

void AddOptions(CLI::App& app, Options& options) { Adder(app, options).AddAll(); }

}  // namespace sealpoint::tools::ls
