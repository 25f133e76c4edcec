// SPDX-License-Identifier: Apache-2.0
//
// Versions of weights as slime, miles, SGLang and ModelExpress exchange them: a directory each, in
// the form of a model of Hugging Face. A version is complete, or a delta: then the metadata of its
// index names another version, and the files hold differences to that, of the changed tensors
// alone.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/interop/foreign/beside.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/formats.h"
#include "lib/safetensors/json_reader.h"
#include "lib/storage/path.h"
#include "sealpoint/safetensors.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kEncodingKey = "delta_encoding";
constexpr std::string_view kVersionKey = "version";
constexpr std::string_view kBaseVersionKey = "base_version";
constexpr std::uint64_t kIndexSizeMax = 100'000'000;
constexpr std::size_t kChainMax = 1024;
constexpr std::uint64_t kDeltaCost = 128;
constexpr std::size_t kVersionDigits = 6;

using Metadata = std::map<std::string, std::string, std::less<>>;

struct Version {
  std::string path;
  Metadata metadata;

  std::string Get(std::string_view key) const {
    const auto found = metadata.find(key);
    return found == metadata.end() ? "" : found->second;
  }
  bool is_delta() const { return metadata.contains(kEncodingKey); }
};

// Texts and numbers; other values are empty. A version that is written as a number has six digits
// in names.
Metadata ReadMetadata(safetensors::JsonReader& reader) {
  using Kind = safetensors::JsonReader::Kind;
  Metadata metadata;
  std::string key;
  for (reader.BeginObject(); reader.NextKey(key);) {
    const Kind kind = reader.Peek();
    std::string value;
    if (kind == Kind::kString) {
      reader.ReadString(value);
    } else if (kind == Kind::kNumber) {
      value = reader.ReadNumber();
      value.insert(0, kVersionDigits - std::min(kVersionDigits, value.size()), '0');
    } else {
      reader.Skip();
    }
    if (!metadata.emplace(key, std::move(value)).second) reader.Fail("duplicate key");
  }
  return metadata;
}

// No metadata if there is no index, or a malformed one: the reader of safetensors reports that.
Version ReadVersion(const std::string& path, SourceFiles& files) {
  Version version{.path = path};
  if (Take(KindAt(path, *files.storage())) != PathKind::kDirectory) return version;
  const bool has_index = std::ranges::any_of(files.List(path), [](const SourceEntry& entry) {
    return entry.name == kIndexName && entry.is_file;
  });
  if (!has_index) return version;
  const auto file = files.Open(JoinPath(path, std::string(kIndexName)));
  if (file->size() > kIndexSizeMax) {
    Fail(Code::kLimitExceeded, file->path(), "index has ", file->size(), " bytes, expected ",
         kIndexSizeMax, " at most");
  }
  const std::string text = file->Read(0, file->size());
  safetensors::JsonReader reader(text);
  std::string key;
  Metadata metadata;
  for (reader.BeginObject(); reader.NextKey(key);) {
    if (key == "metadata" && reader.Peek() == safetensors::JsonReader::Kind::kObject) {
      metadata = ReadMetadata(reader);
    } else {
      reader.Skip();
    }
  }
  if (reader.status().ok()) version.metadata = std::move(metadata);
  return version;
}

std::string IndexOf(const Version& version) {
  return JoinPath(version.path, std::string(kIndexName));
}

// "12" of "000012".
std::string_view Stripped(std::string_view version) {
  if (version.find_first_not_of("0123456789") != version.npos) return version;
  return version.substr(std::min(version.find_first_not_of('0'), version.size()));
}

void CheckSupported(const Version& delta) {
  const auto check = [&](std::string_view key, std::string_view first, std::string_view second) {
    const std::string found = delta.Get(key);
    if (found == first || (found == second && !second.empty())) return;
    Fail(Code::kUnsupported, IndexOf(delta), key, " is '", Printable(found), "', expected ", first,
         second.empty() ? "" : " or ", second);
  };
  check(kEncodingKey, "xor", "");
  check("compression_format", "zstd", "");
  check("checksum_format", "xxh3-128", "adler32");
  for (const std::string_view key : {kVersionKey, kBaseVersionKey}) {
    const std::string value = delta.Get(key);
    if (!value.empty() && value.find('/') == value.npos) continue;
    Fail(Code::kCorrupt, IndexOf(delta), key, " is '", Printable(value), "', expected a version");
  }
}

// The directories of versions differ in the versions at the ends of their names.
std::string BaseOf(const Version& delta, SourceFiles& files) {
  const std::string version = delta.Get(kVersionKey);
  const std::string base = delta.Get(kBaseVersionKey);
  std::string name(storage::LastComponent(delta.path));
  std::string where = StrCat("; the directory's name does not end in its version, ", version);
  if (name.ends_with(version)) {
    name.replace(name.size() - version.size(), version.size(), base);
    CheckInside(name, IndexOf(delta));
    std::string sibling = JoinPath(storage::ParentPath(delta.path), name);
    if (Take(KindAt(sibling, *files.storage())) == PathKind::kDirectory) return sibling;
    where = StrCat(", expected ", Printable(sibling));
  }
  if (!files.options().base.empty()) return files.options().base;
  Fail(Code::kIncomplete, delta.path, "it is a delta, and its base, version ", Printable(base),
       ", is not beside it", Printable(where),
       "; --base (base) names the complete checkpoint that the deltas start from");
}

void CheckIsVersion(const Version& version, const std::string& expected) {
  const std::string found = version.Get(kVersionKey);
  if (found.empty() || Stripped(found) == Stripped(expected)) return;
  Fail(Code::kCorrupt, IndexOf(version), "version is '", Printable(found),
       "', but the delta on it was made from version '", Printable(expected), "'");
}

// Newest first; the last one is complete.
std::vector<Version> ChainOf(const std::string& path, SourceFiles& files) {
  std::vector<Version> chain = {ReadVersion(path, files)};
  std::set<std::string> seen = {path};
  while (chain.back().is_delta()) {
    const Version& delta = chain.back();
    CheckSupported(delta);
    const std::string base = BaseOf(delta, files);
    if (!seen.insert(base).second) {
      Fail(Code::kCorrupt, IndexOf(delta), "base_version leads back to ", Printable(base),
           ": the versions are deltas of each other");
    }
    if (chain.size() > kChainMax) {
      Fail(Code::kLimitExceeded, path, "more than ", kChainMax,
           " deltas lead to it, convert an older version first");
    }
    Version next = ReadVersion(base, files);
    CheckIsVersion(next, delta.Get(kBaseVersionKey));
    chain.push_back(std::move(next));
  }
  return chain;
}

class DeltaFiles {
 public:
  DeltaFiles(const Version& version, SourceFiles& files, ForeignCheckpoint& state)
      : version_(version),
        files_(files),
        state_(state),
        model_(Take(SafetensorsModel::Open(
            version.path, {.storage = files.storage(),
                           .metadata_memory_bytes = files.options().metadata_memory_bytes}))) {}

  void Add() {
    for (const SafetensorsTensor& stored : model_->tensors()) AddTensor(stored);
  }

  // Only the files of the version itself are named, and read beside it.
  void Name() const {
    state_.files.clear();
    AddFiles(*model_, files_, state_);
    std::set<std::string> format_names = {model_->index_name()};
    for (const SafetensorsFile& file : model_->files()) format_names.insert(file.name);
    ReadBeside({.may_link = true, .index = model_->index_name(), .format_names = format_names},
               files_, state_);
  }

 private:
  void AddTensor(const SafetensorsTensor& stored) {
    const auto found = state_.tensors.find(stored.name);
    if (found == state_.tensors.end()) {
      FailAt(stored, Code::kCorrupt, "its base, version ", Printable(version_.Get(kBaseVersionKey)),
             ", has no such tensor");
    }
    if (stored.dtype != DType::kUInt8 || stored.shape.size() != 1 || stored.parts.size() != 1) {
      FailAt(stored, Code::kCorrupt, DTypeName(stored.dtype), " ", ShapeToString(stored.shape),
             ", expected the bytes of a zstd frame, u8 in one dimension");
    }
    if (found->second.parts.size() != 1) {
      FailAt(stored, Code::kUnsupported, "its base is stored in ", found->second.parts.size(),
             " parts, expected 1");
    }
    const SafetensorsPart& part = stored.parts.front();
    files_.budget().Add(kDeltaCost, PathOf(stored));
    found->second.deltas.push_back({.file = files_.NumberOf(PathOf(stored)),
                                    .begin = part.offset,
                                    .size = stored.raw_bytes,
                                    .checksum = ChecksumOf(stored)});
  }

  // The metadata of a file has the checksums of its tensors, by name.
  std::string ChecksumOf(const SafetensorsTensor& stored) const {
    const auto& metadata = model_->files()[stored.parts.front().file].metadata;
    const auto found = std::ranges::find(
        metadata, stored.name, [](const auto& entry) { return std::string_view(entry.first); });
    const bool is_adler = version_.Get("checksum_format") == "adler32";
    const std::string text = found == metadata.end() ? "" : found->second;
    const bool is_hex = text.find_first_not_of("0123456789abcdef") == text.npos;
    if (!is_hex || text.size() != (is_adler ? 8 : 32)) {
      FailAt(stored, Code::kCorrupt, "its checksum in __metadata__ is '", Printable(text),
             "', expected ", is_adler ? 8 : 32, " hexadecimal digits");
    }
    return text;
  }

  std::string PathOf(const SafetensorsTensor& stored) const {
    return JoinPath(version_.path, model_->files()[stored.parts.front().file].name);
  }

  template <typename... Parts>
  [[noreturn]] void FailAt(const SafetensorsTensor& stored, Code code,
                           const Parts&... parts) const {
    const std::string path = stored.parts.empty() ? version_.path : PathOf(stored);
    throw Failure{MakeError(code, parts...).AtPath(path).AtTensor(stored.name)};
  }

  const Version& version_;
  SourceFiles& files_;
  ForeignCheckpoint& state_;
  const std::unique_ptr<SafetensorsModel> model_;
};

}  // namespace

bool IsDelta(const std::string& path, SourceFiles& files) {
  return ReadVersion(path, files).is_delta();
}

ForeignCheckpoint ReadDelta(const std::string& path, SourceFiles& files) {
  std::vector<Version> chain = ChainOf(path, files);
  std::string full = std::move(chain.back().path);
  chain.pop_back();
  ForeignCheckpoint state = ReadSafetensorsAlone(full, files);
  state.format = "delta";
  state.path = path;
  for (auto version = chain.rbegin(); version != chain.rend(); ++version) {
    DeltaFiles deltas(*version, files, state);
    deltas.Add();
    if (&*version == &chain.front()) deltas.Name();
  }
  state.digest = "checksums of the deltas; none for tensors that no delta changed";
  state.notes.push_back(StrCat("version ", Printable(chain.front().Get(kVersionKey)), ": ",
                               chain.size(), chain.size() == 1 ? " delta" : " deltas", " on ",
                               Printable(full)));
  return state;
}

}  // namespace sealpoint::internal::foreign
