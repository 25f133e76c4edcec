// SPDX-License-Identifier: Apache-2.0
//
// Proves that no pickle, no file of torch.save or GGUF and no metadata of
// torch.distributed.checkpoint makes the readers of other formats crash, read beyond the bytes,
// take time or memory without bound or blame anything but the bytes; and that what they accept has
// tensors of known sizes and values that can be printed.
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fuzz/support/stored_zip.h"
#include "fuzz/support/target.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/interop/foreign/known_classes.h"
#include "lib/interop/foreign/pickle.h"
#include "sealpoint/interop.h"
#include "sealpoint/storage.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint::fuzz {
namespace {

namespace foreign = internal::foreign;
using foreign::Pickled;

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
    Require(!foreign::KindName(value.kind).empty(), "a value of no kind");
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
    foreign::Budget budget;
    foreign::PickleDecoder decoder(data, foreign::IsKnownMetadataClass, budget, "p", 0,
                                   keeps_unknown);
    WalkValues(decoder.Decode(), data.size());
  } catch (const foreign::Failure& failure) {
    RequireBlame(failure.status, false);
  }
}

std::uint64_t NodeCount(const ForeignCheckpoint& state) {
  std::uint64_t count = 0;
  std::vector<const ForeignNode*> pending = {&state.tree};
  while (!pending.empty()) {
    const ForeignNode& node = *pending.back();
    pending.pop_back();
    ++count;
    if (node.if_list() != nullptr) {
      for (const ForeignNode& child : *node.if_list()) pending.push_back(&child);
    } else if (node.if_object() != nullptr) {
      for (const auto& [key, child] : *node.if_object()) pending.push_back(&child);
    } else if (node.if_unread() != nullptr) {
      Require(node.if_unread()->position < state.unread.size(), "an error that is not there");
    }
  }
  return count;
}

// Parts lie within their files, and say which elements they are.
void CheckParts(const ForeignCheckpoint& state, const std::string& name,
                const ForeignOptions& options) {
  const auto parts = ResolveParts(state, name, options);
  if (!parts.ok()) return RequireBlame(parts.error(), true);
  for (const ForeignPart& part : *parts) {
    Require(!part.is_item && part.file < state.paths.size(), "a part of no file");
    Require(part.begin <= part.entry_size, "a part begins beyond its entry");
    const std::size_t ndim = part.box.extent.size();
    Require(ndim == state.tensors.at(name).shape.size() && part.box.offset.size() == ndim &&
                (!part.strides || part.strides->size() == ndim),
            "a part of other dimensions");
  }
}

void CheckState(const ForeignCheckpoint& state, const ForeignOptions& options) {
  std::uint64_t text = 0;
  for (const auto& [name, tensor] : state.tensors) {
    const Result<std::uint64_t> count = ElementCount(tensor.shape);
    Require(count.ok() && *count <= ~std::uint64_t{0} / DTypeSizeBytes(tensor.dtype),
            "a tensor has more bytes than a number holds");
    Require(!tensor.parts.empty() || *count == 0, "a tensor without parts");
    CheckParts(state, name, options);
    text += name.size();
  }
  const auto values = ForeignValues(state);
  if (!values.ok()) return RequireBlame(values.error(), true);
  for (const ForeignValue& value : *values) {
    Require(!value.brief.empty() && value.brief.size() <= 60, "a value is not brief");
    text += value.name.size();
  }
  for (const std::string& note : state.notes) text += note.size();
  Require(text <= kTextMax, "a few bytes unfold to many names");
  Require(NodeCount(state) <= kNodesMax, "a few bytes unfold to many values");
  Require(!state.files.empty() && !state.digest.empty(), "a state of no files");
}

void CheckPath(const std::shared_ptr<Storage>& storage, const std::string& path,
               bool is_directory) {
  for (const bool goes_on : {false, true}) {
    const ForeignOptions options{.storage = storage, .drop_unknown = !goes_on, .goes_on = goes_on};
    foreign::SourceFiles files(options);
    const auto state = foreign::ReadPath(path, is_directory, files);
    if (!state.ok()) {
      RequireBlame(state.error(), is_directory);
    } else if (state->has_value()) {
      CheckState(**state, options);
    }
  }
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
