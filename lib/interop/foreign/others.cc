// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/others.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <vector>

#include "lib/base/name_pattern.h"
#include "lib/interop/foreign/bytes.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

using std::string_literals::operator""s;

constexpr std::uint64_t kHeadBytes = 512;
constexpr std::size_t kNamesShownMax = 8;
constexpr std::size_t kLookedIntoMax = 8;

constexpr std::string_view kFromArrays =
    "load it there, and write the arrays by safetensors.numpy.save_file";
constexpr std::string_view kFromFlax =
    "load them by flax.serialization, and write them by safetensors.flax.save_file";
constexpr std::string_view kFromOnnx =
    "write what onnx.numpy_helper.to_array gives of its initializers by "
    "safetensors.numpy.save_file";
// Made from a model for one device, and not meant to be read.
constexpr std::string_view kFromItsModel = "convert the model it was made from";
constexpr std::string_view kFromJoblib =
    "decompress it; sealpoint.save stores what joblib.load returns";
constexpr std::string_view kOldLlama = "a file of llama.cpp in a format before GGUF";
constexpr std::string_view kEngine = "an engine of TensorRT";
constexpr std::string_view kLite = "a model of TensorFlow Lite";

// How files begin, or what they have behind so many bytes; what they are, and the way out.
struct Magic {
  std::size_t at = 0;
  std::string bytes;
  std::string_view what;
  std::string_view way;
};

const std::vector<Magic>& Magics() {
  static const std::vector<Magic> magics = {
      {0, "\x89HDF\r\n\x1a\n"s, "an HDF5 file, such as Keras writes", kFromArrays},
      {0, "\x93NUMPY"s, "an array of numpy (.npy)",
       "sealpoint.save stores what numpy.load returns"},
      {0, "\x1f\x8b"s, "compressed by gzip", "decompress it"},
      {0, "\x28\xb5\x2f\xfd"s, "compressed by zstd", "decompress it"},
      {0, "\x78\x9c"s, "compressed by zlib, as joblib does", kFromJoblib},
      {0, "\xfd\x37zXZ"s, "compressed by xz", kFromJoblib},
      {0, "BZh"s, "compressed by bzip2", kFromJoblib},
      {0, "lmgg"s, kOldLlama, kFromItsModel},
      {0, "fmgg"s, kOldLlama, kFromItsModel},
      {0, "tjgg"s, kOldLlama, kFromItsModel},
      {0, "ftrt"s, kEngine, kFromItsModel},
      {4, "TFL3"s, kLite, kFromItsModel},
      {257, "ustar"s, "a tar archive, such as .nemo",
       "unpack it (tar -xf), and convert the checkpoint in it"},
      {0, "\x80"s, "a plain pickle, which is a program",
       "save its state with torch.save, or its arrays with sealpoint.save"},
  };
  return magics;
}

// Formats whose first bytes say nothing, by the ends of their names.
struct Named {
  std::string_view ending;
  std::string_view what;
  std::string_view way;
};
constexpr Named kNamed[] = {
    {".onnx", "a model of ONNX", kFromOnnx},
    {".msgpack", "weights of Flax", kFromFlax},
    {".mlmodel", "a model of Core ML", kFromItsModel},
    {".engine", kEngine, kFromItsModel},
};

std::string Expected(std::string_view what, std::string_view way) {
  return StrCat(what, ", expected a checkpoint; ", way);
}

// A text that stands in a repository of git for a file that lies elsewhere.
std::optional<Other> PointerOfLfs(std::string_view head) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  constexpr std::string_view kSize = "\nsize ";
  if (!head.starts_with(kBegin)) return std::nullopt;
  std::string size = "a file";
  if (const std::size_t at = head.find(kSize); at != head.npos) {
    std::uint64_t bytes = 0;
    const char* const first = head.data() + at + kSize.size();
    if (std::from_chars(first, head.data() + head.size(), bytes).ec == std::errc()) {
      size = BytesText(bytes);
    }
  }
  return Other{Code::kIncomplete,
               StrCat("a pointer of Git LFS to ", size,
                      "; run `git lfs pull` in its repository to get the file"),
               true};
}

std::optional<Other> Page(std::string_view head) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (head.starts_with(kMark)) head.remove_prefix(kMark.size());
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  const auto begins = [head](std::string_view tag) {
    const auto same = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    };
    return head.size() >= tag.size() && std::ranges::equal(head.substr(0, tag.size()), tag, same);
  };
  if (!begins("<!doctype html") && !begins("<html") && !begins("<?xml")) return std::nullopt;
  return Other{
      Code::kNotACheckpoint,
      "an HTML or XML page, as servers send instead of a missing file; download the file again",
      true};
}

// A folder of another program is one that has names that fit each of the patterns.
struct Folder {
  std::string_view what;
  std::string_view way;
  std::vector<std::string_view> patterns;
  std::size_t count_min = 1;  // of names that fit any of them
  bool is_in_steps = false;   // it may lie in a directory of its step
};

constexpr std::string_view kDeepSpeed = "per-rank files of one DeepSpeed state";
constexpr std::string_view kKeras = "weights of Keras";
constexpr std::string_view kTensorFlow = "a checkpoint of TensorFlow";
constexpr std::string_view kFromTensorFlow =
    "read it by tf.train.load_checkpoint, and write the arrays by safetensors.numpy.save_file";
constexpr std::string_view kZarr = "an array or a group of zarr";
constexpr std::string_view kFromZarr = "sealpoint.save stores the arrays that zarr.open returns";
constexpr std::string_view kOrbax = "a checkpoint of Orbax";
constexpr std::string_view kFromOrbax =
    "`ckpt convert` of the Python package reads a directory of one (pip install "
    "'sealpoint[orbax]')";

const std::vector<Folder>& Folders() {
  static const std::vector<Folder> folders = {
      {"a folder of DeepSpeed", "give one of these directories", {"global_step*"}},
      {kDeepSpeed, kFromDeepSpeed, {"zero_pp_rank_*"}},
      {kDeepSpeed, kFromDeepSpeed, {"mp_rank_*_model_states.pt"}, 2},
      {kDeepSpeed, kFromDeepSpeed, {"layer_*-model_states.pt"}},
      {"a folder of torchtune",
       "its epoch directories hold the models, and recipe_state holds optimizer and progress: "
       "convert both",
       {"recipe_state"}},
      {"a checkpoint of torch_checkpointing, one file per rank",
       "load it there, and save it with torch.distributed.checkpoint",
       {"metadata.pkl", "*.pt"}},
      {kKeras, kFromArrays, {"*.keras"}},
      {kKeras, kFromArrays, {"*.h5"}},
      {"weights of Flax", kFromFlax, {"*.msgpack"}},
      {kTensorFlow, kFromTensorFlow, {"saved_model.pb"}},
      {kLite, kFromItsModel, {"*.tflite"}},
      {"a model of ONNX", kFromOnnx, {"*.onnx"}},
      {kEngine, kFromItsModel, {"*.engine"}},
      {"a model of Core ML", kFromItsModel, {"Manifest.json", "Data"}},
      {"a model of OpenVINO", kFromItsModel, {"openvino_model.xml"}},
      {"arrays of numpy",
       "sealpoint.save(dict(numpy.load(FILE)), DST) stores each file",
       {"*.npz"}},
      {kTensorFlow, kFromTensorFlow, {"*.index", "*.data-*-of-*"}},
      {kOrbax, kFromOrbax, {"_CHECKPOINT_METADATA"}, 1, true},
      {kOrbax, kFromOrbax, {"_METADATA"}, 1, true},
      {kOrbax, kFromOrbax, {"manifest.ocdbt"}, 1, true},
      {kZarr, kFromZarr, {"zarr.json"}},
      {kZarr, kFromZarr, {".zgroup"}},
      {kZarr, kFromZarr, {".zarray"}},
  };
  return folders;
}

bool Fits(std::string_view pattern, std::string_view name) {
  return Take(NamePattern::Parse(pattern)).Matches(name);
}

std::string List(const std::vector<std::string>& names) {
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShownMax); ++i) {
    shown += StrCat(i > 0 ? ", " : "", Printable(names[i]));
  }
  if (names.size() > kNamesShownMax)
    shown += StrCat(" and ", names.size() - kNamesShownMax, " more");
  return shown;
}

// The names by which it is such a folder; none if it is not.
std::vector<std::string> NamesOf(const Folder& folder, const std::vector<SourceEntry>& entries) {
  std::vector<std::string> names;
  for (const std::string_view pattern : folder.patterns) {
    const std::size_t before = names.size();
    for (const SourceEntry& entry : entries) {
      if (IsText(entry.name, false) && Fits(pattern, entry.name)) names.push_back(entry.name);
    }
    if (names.size() == before) return {};
  }
  return names.size() < folder.count_min ? std::vector<std::string>() : names;
}

// Its state lies in several directories and files, and none of them is all of it.
std::optional<Other> FolderOfAccelerate(const std::vector<SourceEntry>& entries) {
  std::vector<std::string> names;
  for (const SourceEntry& entry : entries) {
    if (IsOfAccelerate(entry.name)) names.push_back(entry.name);
  }
  const bool is_one = std::ranges::any_of(
      names, [](const std::string& name) { return name.starts_with("pytorch_model_fsdp"); });
  if (!is_one) return std::nullopt;
  return Other{.what = StrCat("a directory of accelerate for FSDP; its state consists of ",
                              List(names), ", expected one of them; convert each")};
}

// Its logger writes hyper-parameters and metrics; each checkpoint has the hyper-parameters, too.
std::optional<Other> RunOfLightning(const std::string& path,
                                    const std::vector<SourceEntry>& entries, SourceFiles& files) {
  const auto folder = std::ranges::find(entries, "checkpoints", &SourceEntry::name);
  if (folder == entries.end() || folder->kind != EntryKind::kDirectory) return std::nullopt;
  std::vector<std::string> names;
  for (const SourceEntry& entry : files.List(JoinPath(path, folder->name))) {
    if (IsText(entry.name, false) && entry.name.ends_with(".ckpt")) names.push_back(entry.name);
  }
  if (names.empty()) return std::nullopt;
  return Other{.what = StrCat("a run of Lightning, whose checkpoints are in the directory ",
                              folder->name, " (", List(names), "), expected one of them")};
}

std::optional<Other> ByNames(const std::vector<SourceEntry>& entries, bool is_in_steps) {
  for (const Folder& folder : Folders()) {
    if (is_in_steps && !folder.is_in_steps) continue;
    const std::vector<std::string> names = NamesOf(folder, entries);
    if (!names.empty()) {
      return Other{.what = StrCat(folder.what, " (", List(names),
                                  "), expected a supported format; ", folder.way)};
    }
  }
  return std::nullopt;
}

}  // namespace

void Fail(const Other& other, const std::string& path) { Fail(other.code, path, other.what); }

bool IsOfAccelerate(std::string_view name) {
  constexpr std::string_view kPatterns[] = {"pytorch_model_fsdp*", "optimizer_?",
                                            "optimizer_??",        "optimizer*.bin",
                                            "scheduler*.bin",      "sampler*.bin",
                                            "scaler.pt",           "dl_state_dict*.bin",
                                            "random_states_*.pkl", "custom_checkpoint_*.pkl"};
  return IsText(name, false) && std::ranges::any_of(kPatterns, [name](std::string_view pattern) {
           return Fits(pattern, name);
         });
}

std::optional<Other> OtherFile(const SourceFile& file) {
  const std::string head = file.Read(0, std::min(file.size(), kHeadBytes));
  if (head.empty()) {
    return Other{Code::kIncomplete, "an empty file, expected a checkpoint; copy it again"};
  }
  if (auto pointer = PointerOfLfs(head)) return pointer;
  if (auto page = Page(head)) return page;
  for (const Magic& magic : Magics()) {
    if (head.size() > magic.at && head.substr(magic.at).starts_with(magic.bytes)) {
      return Other{.what = Expected(magic.what, magic.way)};
    }
  }
  const auto* const named = std::ranges::find_if(
      kNamed, [&file](const Named& one) { return file.path().ends_with(one.ending); });
  if (named == std::end(kNamed)) return std::nullopt;
  return Other{.what = Expected(named->what, named->way)};
}

std::optional<Other> OtherZip(const Zip& zip) {
  const auto has = [&zip](std::string_view ending) {
    return std::ranges::any_of(zip.entries(), [ending](const auto& entry) {
      return std::string_view("/" + entry.first).ends_with(ending);
    });
  };
  if (has("/model.weights.h5") && has("/config.json")) {
    return Other{.what = Expected("a model of Keras (.keras)", kFromArrays)};
  }
  if (has("/archive_format") || has("/serialized_exported_program.json")) {
    return Other{.what =
                     Expected("a program of torch.export (.pt2)",
                              "save the state_dict of torch.export.load's result with torch.save")};
  }
  const bool is_numpy =
      !zip.entries().empty() && std::ranges::all_of(zip.entries(), [](const auto& entry) {
        return entry.first.ends_with(".npy");
      });
  if (!is_numpy) return std::nullopt;
  return Other{.what = Expected("arrays of numpy (.npz)",
                                "sealpoint.save(dict(numpy.load(SRC)), DST) stores them")};
}

std::optional<Other> OtherFolder(const std::string& path, SourceFiles& files) {
  const std::vector<SourceEntry> entries = files.List(path);
  if (auto found = RunOfLightning(path, entries, files)) return found;
  if (auto found = FolderOfAccelerate(entries)) return found;
  if (auto found = ByNames(entries, false)) return found;
  std::size_t looked = 0;
  for (const SourceEntry& entry : entries) {
    if (entry.kind != EntryKind::kDirectory) continue;
    if (looked++ == kLookedIntoMax) break;
    const std::string inner = JoinPath(path, entry.name);
    auto found = RunOfLightning(inner, files.List(inner), files);
    if (!found) found = ByNames(files.List(inner), true);
    if (found) {
      found->what = StrCat("in ", Printable(entry.name), ": ", found->what);
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace sealpoint::internal::foreign
