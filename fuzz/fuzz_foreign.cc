// SPDX-License-Identifier: Apache-2.0
//
// Proves that no pickle, no file of torch.save and no metadata of torch.distributed.checkpoint
// makes the readers of other formats crash, read beyond the bytes, take time or memory without
// bound or blame anything but the bytes; and that what they accept has tensors of known sizes and
// values that can be printed.
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fuzz/support/stored_zip.h"
#include "fuzz/support/target.h"
#include "sealpoint/storage.h"
#include "tests/support/storage/write_file.h"
#include "tools/ckpt-inspect/foreign/failure.h"
#include "tools/ckpt-inspect/foreign/formats.h"
#include "tools/ckpt-inspect/foreign/known_classes.h"
#include "tools/ckpt-inspect/foreign/pickle.h"

namespace sealpoint::fuzz {
namespace {

using tools::ForeignState;
using tools::Pickled;

// What an input of a few KiB may unfold to.
constexpr std::uint64_t kTextMax = 256 * kMiB;
constexpr std::uint64_t kNodesMax = 16'000'000;

void RequireBlame(const Status& error, bool is_directory) {
  const Code code = error.code();
  // Metadata may name a file that is not there or cannot be, and two ranks may disagree.
  const bool is_of_files = code == Code::kNotFound || code == Code::kIo || code == Code::kMismatch;
  Require(code == Code::kNotACheckpoint || code == Code::kIncomplete || code == Code::kCorrupt ||
              code == Code::kUnsupported || code == Code::kLimitExceeded ||
              (is_directory && is_of_files),
          "not the fault of the bytes: " + error.ToString());
  Require(!error.place().path.empty() && !error.message().empty(),
          "an error that says too little: " + error.ToString());
}

// Every value that is reached, each once, has what its kind says.
void WalkValues(const Pickled& root, std::size_t pickle_size) {
  std::unordered_set<const Pickled*> seen;
  std::vector<const Pickled*> pending = {&root};
  while (!pending.empty()) {
    const Pickled& value = *pending.back();
    pending.pop_back();
    if (!seen.insert(&value).second) continue;
    Require(!tools::KindName(value.kind).empty(), "a value of no kind");
    if (value.parts() == nullptr) {
      Require(!value.is_sequence() && !value.is(Pickled::Kind::kObject), "a value without parts");
      continue;
    }
    const Pickled::Parts& parts = *value.parts();
    Require(!value.is(Pickled::Kind::kPersistent) || parts.items.size() == 1, "an id is not one");
    if (value.is(Pickled::Kind::kObject)) {
      Require(parts.args != nullptr && parts.args->is(Pickled::Kind::kTuple), "no arguments");
      pending.push_back(parts.args);
    }
    if (parts.state != nullptr) pending.push_back(parts.state);
    pending.insert(pending.end(), parts.items.begin(), parts.items.end());
    for (const auto& [key, one] : parts.pairs) {
      pending.push_back(key);
      pending.push_back(one);
    }
  }
  Require(seen.size() <= pickle_size + 3, "more values than instructions");
}

void CheckPickle(std::string_view data, bool keeps_unknown) {
  try {
    tools::Budget budget;
    tools::PickleDecoder decoder(data, tools::IsKnownMetadataClass, budget, "p", 0, keeps_unknown);
    WalkValues(decoder.Decode(), data.size());
  } catch (const tools::Failure& failure) {
    RequireBlame(failure.status, false);
  }
}

std::uint64_t NodeCount(const tools::Json& root) {
  std::uint64_t count = 0;
  std::vector<const tools::Json*> pending = {&root};
  while (!pending.empty()) {
    const tools::Json& node = *pending.back();
    pending.pop_back();
    ++count;
    if (!node.is_structured()) continue;
    for (const tools::Json& child : node) pending.push_back(&child);
  }
  return count;
}

void CheckState(const ForeignState& state) {
  std::uint64_t text = 0;
  for (const auto& [name, tensor] : state.tensors) {
    const Result<std::uint64_t> count = ElementCount(tensor.shape);
    Require(count.ok() && *count <= ~std::uint64_t{0} / DTypeSizeBytes(tensor.dtype),
            "a tensor has more bytes than a number holds");
    Require(tensor.part_count > 0 || *count == 0, "a tensor without parts");
    text += name.size();
  }
  for (const tools::ForeignValue& value : state.values) {
    Require(!value.brief.empty() && value.brief.size() <= 60, "a value is not brief");
    text += value.name.size();
  }
  for (const std::string& note : state.notes) text += note.size();
  Require(text <= kTextMax, "a few bytes unfold to many names");
  Require(NodeCount(state.tree) <= kNodesMax, "a few bytes unfold to many values");
  Require(!state.files.empty() && !state.digest.empty(), "a state of no files");
}

void CheckPath(const std::shared_ptr<Storage>& storage, const std::string& path,
               bool is_directory) {
  tools::SourceFiles files(storage);
  const auto state = tools::ReadForeign(path, is_directory, files);
  if (!state.ok()) return RequireBlame(state.error(), is_directory);
  if (state->has_value()) CheckState(**state);
}

void CheckFile(std::string_view content) {
  const std::shared_ptr<Storage> storage = MemoryStorage();
  testing::WriteFile(*storage, "d/f", content);
  CheckPath(storage, "d/f", false);
}

// A directory with one item.
void CheckDirectory(const std::vector<std::pair<std::string, std::string_view>>& metadata,
                    bool is_megatron) {
  const std::shared_ptr<Storage> storage = MemoryStorage();
  for (const auto& [name, content] : metadata) testing::WriteFile(*storage, "d/" + name, content);
  if (is_megatron) {
    testing::WriteFile(*storage, "d/metadata.json", R"({"sharded_backend": "torch_dist"})");
  }
  testing::WriteFile(*storage, "d/__0_0.distcp", ItemOfDcp(is_megatron));
  CheckPath(storage, "d", true);
}

}  // namespace
}  // namespace sealpoint::fuzz

// The first byte chooses: a pickle alone; one within a file of torch.save; a file; the metadata of
// a directory of DCP or of Megatron; that of two ranks, cut where the next two bytes say.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  fuzz::InputReader input(fuzz::AsInput(data, size));
  const unsigned kind = input.Take8();
  const std::string_view rest = AsText(input.rest());
  switch (kind % 6) {
    case 0:
      fuzz::CheckPickle(rest, kind >= 128);
      break;
    case 1:
      fuzz::CheckFile(fuzz::TorchSaved(rest));
      break;
    case 2:
      fuzz::CheckFile(rest);
      break;
    case 3:
    case 4:
      fuzz::CheckDirectory({{".metadata", rest}}, kind % 6 == 4);
      break;
    default: {
      const std::size_t cut = input.Take8() * 256u + input.Take8();
      const std::string_view first = AsText(input.TakePart(cut).rest());
      fuzz::CheckDirectory({{"__0.metadata", first}, {"__1.metadata", AsText(input.rest())}},
                           false);
    }
  }
  return 0;
}
