// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/dcp_leaves.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/torch_values.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

// The first item of many that share one file's bytes would be read again and again.
class FileBytes {
 public:
  void Take(const SourceFile& file, const DcpPlace& place) {
    const auto left = left_.try_emplace(place.file, file.size()).first;
    if (left->second < place.size) {
      Fail(Code::kCorrupt, file.path(), "the items of the file exceed its size");
    }
    left->second -= place.size;
  }

 private:
  std::map<std::string, std::uint64_t> left_;
};

ForeignNode UnreadOf(Status error, ForeignCheckpoint& state) {
  state.unread.push_back({.error = std::move(error)});
  return ForeignNode::Unread{static_cast<std::uint32_t>(state.unread.size() - 1)};
}

Shape WithoutOnes(const Shape& shape) {
  Shape plain;
  std::ranges::copy_if(shape, std::back_inserter(plain), [](std::uint64_t n) { return n != 1; });
  return plain;
}

// An item may lack axes of one element, or have others.
Shape StridesFor(const Shape& extent, const Shape& shape, const Shape& strides) {
  Shape result;
  std::size_t at = 0;
  for (const std::uint64_t n : extent) {
    while (n > 1 && shape[at] == 1) ++at;
    result.push_back(n > 1 ? strides[at++] : 0);
  }
  return result;
}

std::uint64_t CountOf(const Shape& extent) {
  return ElementCount(extent).value_or(~std::uint64_t{0});
}

// Old Megatron's optimizer states: cells of a grid, each flattened along a last axis, of which the
// part is a run.
void Unflatten(const Shape& stored, const Shape& true_shape, const std::string& path,
               ForeignPart& part) {
  const std::size_t ndim = true_shape.size();
  bool fits = !part.flips_sign && !part.strides && stored.size() == ndim + 1 &&
              part.box.extent.size() == ndim + 1;
  Box place;
  for (std::size_t d = 0; fits && d < ndim; ++d) {
    fits = stored[d] > 0 && true_shape[d] % stored[d] == 0 && part.box.extent[d] == 1;
    if (!fits) break;
    place.extent.push_back(true_shape[d] / stored[d]);
    place.offset.push_back(part.box.offset[d] * place.extent[d]);
  }
  if (!fits || stored[ndim] != CountOf(place.extent)) {
    Fail(Code::kCorrupt, path, "flattened as ", ShapeToString(stored),
         ", expected a grid of equal parts of ", ShapeToString(true_shape));
  }
  const std::uint64_t begin = part.box.offset[ndim];
  part.run = {begin, begin + part.box.extent[ndim]};
  part.box = std::move(place);
}

ForeignPart Resolved(const ForeignPart& item, const ForeignTensor& tensor, const std::string& name,
                     const std::string& path, SourceFiles& files) {
  const auto file = files.Open(path);
  files.budget().Allow(item.entry_size);
  const TorchZip archive(file, item.entry_begin, item.entry_size, false);
  ForeignCheckpoint found;
  const ForeignNode node =
      TorchValues(archive, ForeignOptions(), found).Node(archive.root(), {name});
  const auto corrupt = [&](const std::string& message) {
    throw Failure{
        Status(Code::kCorrupt, message).AtPath(path).AtOffset(item.entry_begin).AtTensor(name)};
  };
  if (found.tensors.size() != 1 || KindOf(node) != "tensor") {
    corrupt(StrCat("the item is a ", KindName(archive.root()), ", expected one tensor"));
  }
  const ForeignTensor& stored = found.tensors.begin()->second;
  if (stored.dtype != tensor.dtype || WithoutOnes(stored.shape) != WithoutOnes(item.box.extent)) {
    corrupt(StrCat("the item is ", DTypeName(stored.dtype), " ", ShapeToString(stored.shape),
                   ", the metadata says ", DTypeName(tensor.dtype), " ",
                   ShapeToString(item.box.extent)));
  }
  ForeignPart part = stored.parts.front();
  if (part.strides) part.strides = StridesFor(item.box.extent, stored.shape, *part.strides);
  part.box = item.box;
  part.file = item.file;
  if (tensor.flattened_shape) Unflatten(*tensor.flattened_shape, tensor.shape, path, part);
  return part;
}

}  // namespace

std::optional<int> RankOf(std::string_view name) {
  constexpr std::string_view kBegin = "__";
  if (!name.starts_with(kBegin) || !name.ends_with(kMetadata)) return std::nullopt;
  name =
      name.substr(kBegin.size(), name.size() - kBegin.size() - std::string_view(kMetadata).size());
  int rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  const bool is_number = error == std::errc() && end == name.data() + name.size() && rank >= 0;
  return is_number ? std::optional(rank) : std::nullopt;
}

TorchZip OpenItem(const std::string& directory, const DcpPlace& place, SourceFiles& files) {
  return {files.Open(JoinPath(directory, place.file)), place.begin, place.size, true};
}

void AddTensor(const std::string& name, const DcpTensor& stored, const Shape* true_shape,
               SourceFiles& files, ForeignCheckpoint& state) {
  std::vector<Box> boxes;
  for (const auto& [box, place] : stored.places) boxes.push_back(box);
  const std::string gap = GapOf(boxes, stored.shape, state.path);
  if (!gap.empty()) {
    throw Failure{Status(Code::kCorrupt, "parts of the tensor do not fit together: " + gap)
                      .AtPath(state.path)
                      .AtTensor(name)};
  }
  ForeignTensor tensor{.dtype = stored.dtype, .shape = stored.shape};
  if (true_shape != nullptr) {
    tensor.flattened_shape = stored.shape;
    tensor.shape = *true_shape;
  }
  tensor.parts.reserve(stored.places.size());
  for (const auto& [box, place] : stored.places) {
    tensor.parts.push_back({.box = box,
                            .file = files.NumberOf(JoinPath(state.path, place.file)),
                            .entry_begin = place.begin,
                            .entry_size = place.size,
                            .is_item = true});
  }
  state.tensors[name] = std::move(tensor);
}

std::optional<ForeignNode> ReadItem(const TorchZip& archive, ValuePath path, bool is_list_of_one,
                                    const SourceFiles& files, ForeignCheckpoint& state) {
  const Pickled* root = &archive.root();
  if (is_list_of_one) {
    if (!root->is(Pickled::Kind::kList) || root->parts()->items.size() != 1) {
      throw Failure{MakeError(Code::kCorrupt, "the item is a ", KindName(*root),
                              ", expected a list of one object, as Megatron stores it")
                        .AtPath(archive.path())
                        .AtOffset(archive.pickle_begin())};
    }
    root = root->parts()->items.front();
  }
  return TorchValues(archive, files.options(), state).NodeOrNothing(*root, std::move(path));
}

ForeignNode::Members ReadLeaves(const DcpMetadata& metadata, bool are_lists_of_one,
                                SourceFiles& files, ForeignCheckpoint& state) {
  ForeignNode::Members leaves;
  for (const auto& [name, dtype] : metadata.dropped) {
    state.notes.push_back(StrCat(Printable(name), " is left out: its dtype is ", dtype));
  }
  for (const auto& [name, error] : metadata.unread) {
    leaves.push_back({name, UnreadOf(error, state)});
  }
  for (const std::string& name : metadata.names) {
    const auto found = metadata.tensors.find(name);
    if (found == metadata.tensors.end() || metadata.unread.contains(name)) continue;
    const auto true_shape = metadata.true_shapes.find(name);
    const bool is_flattened = true_shape != metadata.true_shapes.end();
    auto node = NodeOrUnread(files, state, name, [&]() -> std::optional<ForeignNode> {
      AddTensor(name, found->second, is_flattened ? &true_shape->second : nullptr, files, state);
      return TensorNode(name);
    });
    leaves.push_back({name, *std::move(node)});
  }
  FileBytes bytes;
  for (const std::string& name : metadata.names) {
    const auto found = metadata.objects.find(name);
    if (found == metadata.objects.end() || metadata.unread.contains(name)) continue;
    auto node = NodeOrUnread(files, state, name, [&] {
      const TorchZip archive = OpenItem(state.path, found->second, files);
      bytes.Take(archive.file(), found->second);
      return ReadItem(archive, {name}, are_lists_of_one, files, state);
    });
    if (node) leaves.push_back({name, *std::move(node)});
  }
  return leaves;
}

std::set<std::string> FilesOf(const DcpMetadata& metadata) {
  std::set<std::string> used = metadata.dropped_files;
  for (const auto& [name, stored] : metadata.tensors) {
    for (const auto& [box, place] : stored.places) used.insert(place.file);
  }
  for (const auto& [name, place] : metadata.objects) used.insert(place.file);
  return used;
}

void Describe(const std::set<std::string>& used, SourceFiles& files, ForeignCheckpoint& state) {
  std::map<std::string, std::uint64_t> sizes;
  for (const SourceEntry& entry : files.List(state.path)) sizes[entry.name] = entry.size;
  for (const std::string& name : used) {
    if (sizes.contains(name)) continue;
    std::uint64_t size = 0;
    const std::size_t slash = name.rfind('/');
    if (slash != name.npos) {
      for (const SourceEntry& entry : files.List(JoinPath(state.path, name.substr(0, slash)))) {
        if (entry.name == name.substr(slash + 1)) size = entry.size;
      }
    }
    sizes[name] = size;
  }
  for (const auto& [name, size] : sizes) {
    std::string meaning = "not part of the checkpoint, not read";
    if (used.contains(name)) {
      meaning = size == 0 ? "MISSING or empty, but named by the index"
                          : "tensors and values, each a zip of torch.save";
    } else if (name == kMetadata || RankOf(name)) {
      meaning = "index: a pickle with the location of each tensor";
    } else if (name.ends_with(".distcp")) {
      meaning = "leftover: not named by the index";
    } else if (name == ".metadata.tmp" || name == ".metadata.bck") {
      meaning = "leftover of a save";
    }
    state.files.push_back({name, size, std::move(meaning)});
  }
}

std::set<std::string> OwnNames(const std::set<std::string>& used, std::set<std::string> others) {
  for (const std::string& path : used) others.insert(path.substr(0, path.find('/')));
  return others;
}

}  // namespace sealpoint::internal::foreign

namespace sealpoint {

Result<std::vector<ForeignPart>> ResolveParts(const ForeignCheckpoint& checkpoint,
                                              const std::string& tensor,
                                              const ForeignOptions& options) {
  namespace foreign = internal::foreign;
  const auto found = checkpoint.tensors.find(tensor);
  if (found == checkpoint.tensors.end()) {
    return internal::MakeError(Code::kNotFound, "no such tensor")
        .AtPath(checkpoint.path)
        .AtTensor(tensor);
  }
  std::vector<ForeignPart> parts;
  foreign::SourceFiles files(options, checkpoint.directories);
  try {
    for (const ForeignPart& part : found->second.parts) {
      if (!part.is_item) {
        parts.push_back(part);
        continue;
      }
      files.StartBudget();
      parts.push_back(
          foreign::Resolved(part, found->second, tensor, checkpoint.paths.at(part.file), files));
    }
    return parts;
  } catch (foreign::Failure& failure) {
    return std::move(failure.status).AtTensor(tensor);
  }
}

}  // namespace sealpoint
