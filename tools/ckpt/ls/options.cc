// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/ls/options.h"

#include "tools/ckpt/content.h"

namespace sealpoint::tools::ls {
namespace {

constexpr const char* kFooter =
    "In a PATTERN `*` matches any characters, `?` a single one, and a backslash escapes the next.\n"
    "Verdicts are at the level `files`; use ckpt verify to check the content.\n"
    "Exit status: 0 shown (of a checkpoint: committed), 1 corrupt, 2 uncommitted, 3 unsupported,\n"
    "4 could not be read or nothing found, 5 incomplete, 64 usage, 74 standard output could not\n"
    "be written.";

class Adder {
 public:
  Adder(CLI::App& app, Options& options) : app_(app), options_(options) {}

  void AddAll() {
    app_.description(
        "Shows the contents of a checkpoint or of a series. Reads payload only for\n"
        "--values and --object, and verifies it before printing.");
    app_.footer(kFooter);
    app_.add_option("PATH", options_.path,
                    "A checkpoint of any known format, or a series of\nSealpoint: a directory, a "
                    "file or a URL")
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
    return Choose(AddRepeatable(app_, name, options_.patterns, "PATTERN", description), subject);
  }

  void AddSubjects() {
    tensor_ = AddPatterns("--tensor", Subject::kTensors,
                          "Show shards of these tensors, with regions, blobs,\n"
                          "codec and stored size");
    values_ = AddPatterns("--values", Subject::kValues,
                          "Print values of these tensors, the first 256 of each\n"
                          "unless --all is given");
    values_->excludes(tensor_);
    app_.add_option("--box", options_.box,
                    "Restrict --values to a range or an index per\n"
                    "dimension, such as 0:4,7 or 2:")
        ->type_name("RANGE,...")
        ->needs(values_);
    object_ = AddPatterns("--object", Subject::kObject,
                          "Write the bytes of this object to standard output;\n"
                          "with --json describe all matching objects");
    object_->excludes(tensor_)->excludes(values_);
  }

  void AddPlan() {
    plan_ = Choose(app_.add_option("--plan", options_.plan.mesh,
                                   "Show the reads of each rank of a mesh, such as\n"
                                   "data=4,tensor=2. Tensors are placed as stored;\n"
                                   "omitted axes have one rank"),
                   Subject::kPlan)
                ->type_name("AXIS=N,...")
                ->excludes(tensor_)
                ->excludes(values_)
                ->excludes(object_);
    AddRepeatable(app_, "--place", options_.plan.places, "PATTERN=RULE,...",
                  "Placement of matching tensors for --plan, such as\n"
                  "'layers.*=shard(dim 0, tensor), replicate(data)'.\n"
                  "The last matching rule applies")
        ->needs(plan_);
  }

  void AddDetails() {
    app_.add_option("--depth", options_.depth_max, "Maximum depth of the tensor tree")
        ->type_name("N");
    app_.add_flag("-l,--long", options_.is_long,
                  "Show codec, stored size and ratio of each tensor;\n"
                  "reads all chunk tables");
    app_.add_flag("--all", options_.all, "Print all values and all notes");
    app_.add_flag("--json", options_.json, "Print one JSON document, also after an error");
  }

  void AddForeign() {
    AddRepeatable(app_, "--per-rank", options_.per_rank, "PATTERN",
                  "For DCP with metadata per rank: names that each rank\n"
                  "has for itself");
    app_.add_option("--base", options_.base,
                    "For a version of weights that is a delta: the complete\n"
                    "checkpoint that its deltas start from")
        ->type_name("CHECKPOINT");
    app_.add_option_function<std::uint64_t>(
            "--metadata-memory",
            [&options = options_](std::uint64_t bytes) { options.metadata_memory_bytes = bytes; },
            "Memory for metadata of other formats (default: 16\n"
            "times the size in the files, plus 64MiB)")
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
