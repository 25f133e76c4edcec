// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/dcp_metadata.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "lib/interop/foreign/arguments.h"
#include "lib/interop/foreign/budget.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/known_classes.h"
#include "lib/interop/foreign/pickle.h"
#include "lib/interop/foreign/torch_zip.h"
#include "lib/storage/path.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;
using Members = std::map<std::string_view, const Pickled*>;
using PlaceKey = std::pair<std::string, std::optional<Shape>>;

// What the parts of metadata cost in memory, in bytes, beside their text and what the pickle's
// decoder counts.
constexpr std::uint64_t kTensorCost = 1024;
constexpr std::uint64_t kPlaceCost = 512;
constexpr std::uint64_t kChunkCost = 512;
constexpr std::uint64_t kPathCost = 128;
constexpr std::uint64_t kPartCost = 128;
constexpr std::size_t kNameShownMax = 80;
constexpr std::size_t kTypeShownMax = 200;
constexpr std::size_t kPathPartsMax = 200;
constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata.";

[[noreturn]] void Malformed(const std::string& message) { throw std::invalid_argument(message); }

[[noreturn]] void OfOtherKind(std::string_view what, const Pickled& found,
                              std::string_view expected) {
  Malformed(StrCat(what, " is of kind ", KindName(found), ", expected ", expected));
}

const Pickled& Member(const Members& members, std::string_view name) {
  const auto found = members.find(name);
  if (found == members.end()) Malformed(StrCat(name, " is missing"));
  return *found->second;
}

// Null if it is missing, or None.
const Pickled* Optional(const Members& members, std::string_view name) {
  const auto found = members.find(name);
  return found == members.end() || found->second->is(Kind::kNone) ? nullptr : found->second;
}

const PickledItems& ItemsOf(const Pickled& value) {
  if (!value.is_sequence()) OfOtherKind("a value", value, "list");
  return value.parts()->items;
}

std::string TextOfName(const Pickled& value) {
  if (!value.is(Kind::kText)) OfOtherKind("a name", value, "str");
  if (!IsText(value.text, false)) Malformed("a name has surrogates, expected UTF-8");
  return std::string(value.text);
}

ValuePath PathOf(const Pickled& value) {
  ValuePath path;
  for (const Pickled* const part : ItemsOf(value)) {
    if (part->is(Kind::kInt)) {
      path.emplace_back(part->number);
    } else {
      path.emplace_back(TextOfName(*part));
    }
  }
  if (path.empty()) Malformed("a path is empty");
  return path;
}

// A dtype that the format lacks, of a tensor that is then left out.
struct UnknownDType {
  std::string name;
};

class MetadataReader {
 public:
  MetadataReader(const SourceFile& file, const ForeignOptions& options)
      : path_(file.path()), budget_(file.budget()), options_(options) {}

  DcpMetadata Read(const Pickled& root) {
    if (!root.is(Kind::kObject) || !root.text.ends_with("Metadata")) {
      Malformed(StrCat("it holds a ", KindName(root)));
    }
    const Members members = MembersOf(root);
    for (const auto& [index, info] : PairsOf(Member(members, "storage_data"))) {
      auto [key, place] = PlaceOf(*index, *info);
      places_[std::move(key)] = std::move(place);
    }
    for (const auto& [key, stored] : PairsOf(Member(members, "state_dict_metadata"))) {
      std::string name = TextOfName(*key);
      Cost(kTensorCost + CostOfText(name));
      Add(name, *stored);
    }
    if (const Pickled* const planner_data = Optional(members, "planner_data")) {
      for (const auto& [name, path] : PairsOf(*planner_data)) {
        const std::string key = TextOfName(*name);
        const std::size_t part_count = ItemsOf(*path).size();
        if (part_count > kPathPartsMax) {
          Fail(Code::kLimitExceeded, path_, "a path has ", part_count, " parts, expected ",
               kPathPartsMax, " at most");
        }
        const ValuePath& parts = metadata_.paths[key] = PathOf(*path);
        Cost(kPathCost + kPartCost * part_count + foreign::TextOf(parts).size());
      }
    }
    if (const Pickled* const data = Optional(members, "mcore_data")) AddTrueShapes(*data);
    return std::move(metadata_);
  }

 private:
  // The members of an object of a dataclass.
  Members MembersOf(const Pickled& described) {
    if (!described.is(Kind::kObject)) OfOtherKind("a value", described, "object");
    const Pickled* const state = described.parts()->state;
    Members members;
    if (state == nullptr) return members;
    if (!state->is(Kind::kMapping)) OfOtherKind("a state", *state, "mapping");
    CostOfParts(state->parts()->pairs.size());
    for (const auto& [key, value] : state->parts()->pairs) {
      if (key->is(Kind::kText)) members[key->text] = value;
    }
    return members;
  }

  // What is walked over: pickles name one list in many places.
  void CostOfParts(std::size_t count) { Cost(CappedMul(count, kPartCost)); }
  void Cost(std::uint64_t bytes) { budget_.Add(bytes, path_); }

  std::pair<PlaceKey, DcpPlace> PlaceOf(const Pickled& index, const Pickled& info) {
    const Members key = MembersOf(index);
    const Members value = MembersOf(info);
    Cost(kPlaceCost);
    std::optional<Shape> offset;
    if (const Pickled* const stored = Optional(key, "offset")) offset = SizesOf(*stored);
    DcpPlace place{.file = std::string(Member(value, "relative_path").text),
                   .begin = NaturalOf(Member(value, "offset")),
                   .size = NaturalOf(Member(value, "length")),
                   .transforms = {}};
    for (const Pickled* const name : {&Member(value, "relative_path"), &Member(key, "fqn")}) {
      if (!name->is(Kind::kText)) OfOtherKind("a name in storage_data", *name, "str");
    }
    if (files_.insert(place.file).second) {
      CheckInside(place.file, path_);
      CheckLinks(storage::ParentPath(path_), place.file);
    }
    if (const Pickled* const transforms = Optional(value, "transform_descriptors")) {
      CostOfParts(ItemsOf(*transforms).size());
      for (const Pickled* const transform : ItemsOf(*transforms)) {
        if (!transform->is(Kind::kText)) OfOtherKind("a transform", *transform, "str");
        place.transforms.emplace_back(transform->text);
      }
    }
    return {PlaceKey(Member(key, "fqn").text, std::move(offset)), std::move(place)};
  }

  void Add(const std::string& name, const Pickled& stored) {
    if (metadata_.tensors.contains(name) || metadata_.objects.contains(name) ||
        metadata_.unread.contains(name) || metadata_.dropped.contains(name)) {
      Malformed(StrCat("'", Printable(name.substr(0, kNameShownMax)), "' is listed twice"));
    }
    try {
      AddDescribed(name, stored);
    } catch (const UnknownDType& unknown) {
      Drop(name, unknown.name);
      return;
    } catch (Failure& failure) {
      const Code code = failure.status.code();
      if (!options_.goes_on || (code != Code::kCorrupt && code != Code::kUnsupported)) throw;
      metadata_.unread.emplace(name, std::move(failure.status));
    }
    metadata_.names.push_back(name);
  }

  void Drop(const std::string& name, const std::string& dtype) {
    metadata_.dropped[name] = dtype;
    const PlaceKey first{name, std::nullopt};
    for (auto at = places_.lower_bound(first); at != places_.end() && at->first.first == name;
         ++at) {
      metadata_.dropped_files.insert(at->second.file);
    }
  }

  void AddDescribed(const std::string& name, const Pickled& stored) {
    const bool is_object = stored.is(Kind::kObject);
    if (is_object && stored.text == std::string(kModule) + "TensorStorageMetadata") {
      metadata_.tensors[name] = TensorOf(name, MembersOf(stored));
    } else if (is_object && stored.text == std::string(kModule) + "BytesStorageMetadata") {
      metadata_.objects[name] = Found(name, std::nullopt);
    } else {
      Malformed(StrCat("'", Printable(name.substr(0, kNameShownMax)), "' is a ", KindName(stored)));
    }
  }

  const DcpPlace& Found(const std::string& name, const std::optional<Shape>& offset) const {
    const auto place = places_.find({name, offset});
    if (place == places_.end()) {
      throw Failure{Status(Code::kCorrupt, StrCat("the metadata names no file for the part",
                                                  offset ? " at " + ShapeToString(*offset) : ""))
                        .AtPath(path_)
                        .AtTensor(name)};
    }
    if (!place->second.transforms.empty()) {
      throw Failure{
          Status(Code::kUnsupported,
                 StrCat("its bytes were transformed by ",
                        Printable(place->second.transforms.front().substr(0, kNameShownMax)),
                        ", expected as torch.save wrote them"))
              .AtPath(path_)
              .AtTensor(name)};
    }
    return place->second;
  }

  DType DTypeOf(const std::string& name, const Pickled& properties) {
    const Pickled* const state = properties.is(Kind::kObject) ? properties.parts()->state : nullptr;
    const Pickled* found = nullptr;
    if (state != nullptr && state->is(Kind::kTuple)) {
      if (state->parts()->items.empty()) Malformed("properties are empty");
      found = state->parts()->items.front();
    } else {
      found = &Member(MembersOf(properties), "dtype");
    }
    const auto dtype = found->is(Kind::kGlobal) ? DTypeOfTorch(found->text) : std::nullopt;
    if (dtype) return *dtype;
    const bool is_class = found->is(Kind::kGlobal);
    const std::string shown = is_class ? Printable(found->text.substr(0, kTypeShownMax)) : "none";
    if (is_class && options_.drop_unknown) throw UnknownDType{shown};
    throw Failure{Status(Code::kUnsupported, StrCat("dtype is ", shown, ", which the format lacks"))
                      .AtPath(path_)
                      .AtTensor(name)};
  }

  DcpTensor TensorOf(const std::string& name, const Members& members) {
    DcpTensor tensor{.dtype = DTypeOf(name, Member(members, "properties")),
                     .shape = SizesOf(Member(members, "size")),
                     .places = {}};
    const PickledItems& chunks = ItemsOf(Member(members, "chunks"));
    Cost(CappedMul(chunks.size(), kChunkCost));
    for (const Pickled* const chunk : chunks) {
      const Members values = MembersOf(*chunk);
      Box box{.offset = SizesOf(Member(values, "offsets")),
              .extent = SizesOf(Member(values, "sizes"))};
      const std::size_t given = box.extent.size();
      // Megatron leaves prepended axes out of sizes.
      if (given < box.offset.size()) {
        box.extent.insert(box.extent.begin(), box.offset.size() - given, 1);
      }
      if (box.offset.size() != box.extent.size() || box.extent.size() != tensor.shape.size()) {
        throw Failure{
            Status(Code::kCorrupt, StrCat("part at ", ShapeToString(box.offset), " has ", given,
                                          " dimensions, expected ", tensor.shape.size()))
                .AtPath(path_)
                .AtTensor(name)};
      }
      const bool is_empty = std::ranges::find(box.extent, 0u) != box.extent.end();
      if (is_empty || tensor.places.contains(box)) continue;
      const DcpPlace& place = Found(name, box.offset);
      tensor.places.emplace(std::move(box), place);
    }
    return tensor;
  }

  void AddTrueShapes(const Pickled& data) {
    for (const auto& [name, described] : PairsOf(data)) {
      CostOfParts(PairsOf(*described).size());
      for (const auto& [key, value] : PairsOf(*described)) {
        const bool is_shape =
            key->is(Kind::kText) && key->text == "nd_reformulated_orig_global_shape";
        if (is_shape && !value->is(Kind::kNone))
          metadata_.true_shapes[TextOfName(*name)] = SizesOf(*value);
      }
    }
  }

  const std::string& path_;
  Budget& budget_;
  const ForeignOptions& options_;
  std::set<std::string> files_;  // that were checked
  std::map<PlaceKey, DcpPlace> places_;
  DcpMetadata metadata_;
};

}  // namespace

DcpMetadata ReadDcpMetadata(const SourceFile& file, const ForeignOptions& options) {
  if (file.size() > kPickleBytesMax) {
    Fail(Code::kLimitExceeded, file.path(), "the file has ", file.size(), " bytes, expected ",
         kPickleBytesMax, " at most");
  }
  const std::uint64_t before = file.budget().used();
  file.budget().Add(file.size(), file.path());
  const std::string data = file.Read(0, file.size());
  PickleDecoder decoder(data, IsKnownMetadataClass, file.budget(), file.path(), 0, false);
  try {
    const Pickled& root = decoder.Decode();
    const std::uint64_t described = file.budget().used() - before;
    DcpMetadata metadata = MetadataReader(file, options).Read(root);
    file.budget().Release(described);
    return metadata;
  } catch (const std::invalid_argument& error) {
    Fail(Code::kCorrupt, file.path(), "not the metadata of a checkpoint: ", error.what());
  }
}

}  // namespace sealpoint::internal::foreign
