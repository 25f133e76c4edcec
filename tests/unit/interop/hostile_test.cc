// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/support/pickle_parts.h"
#include "fuzz/support/stored_zip.h"
#include "lib/base/errors.h"
#include "lib/interop/foreign/node.h"
#include "sealpoint/interop.h"
#include "sealpoint/object_store.h"
#include "tests/support/storage/memory_object_store.h"

// What readers of foreign files take and refuse, by rows.

namespace sealpoint::testing {
namespace {

namespace foreign = internal::foreign;
namespace fs = std::filesystem;
using enum Code;
using std::string_literals::operator""s;
using namespace fuzz;  // the parts of pickles

// What was read, in one line.
std::string Told(const ForeignCheckpoint& found) {
  using internal::StrCat;
  std::string text = StrCat(found.format, " ", foreign::PythonJson(found.tree));
  for (const auto& [name, brief] : ForeignValues(found).value())
    text += StrCat(" ", name, "=", brief);
  for (const auto& [name, tensor] : found.tensors) {
    for (const ForeignPart& part : tensor.parts) {
      text += StrCat(" ", name, "/", part.strides ? ShapeToString(*part.strides) : "dense");
    }
  }
  for (const ForeignLeftOut& file : found.left_out)
    text += StrCat(" -", file.name, ": ", file.reason);
  for (const std::string& note : found.notes) text += StrCat(" *", note);
  for (const ForeignUnread& unread : found.unread) text += StrCat(" ?", unread.error.message());
  return text + (found.step ? StrCat(" @", *found.step) : " @none");
}

// Names and contents; a name that ends so is a link, and its content is where it leads.
using Files = std::vector<std::pair<std::string, std::string>>;
constexpr std::string_view kLink = "@";
constexpr const char* kOut = "a symbolic link out of the directory";

struct Row {
  const char* name;
  Files files;  // one without a name: it is the path; else they lie in a folder
  Code code;
  const char* part;  // of the message, or of what was read
  ForeignOptions options{};
};

const ForeignOptions kDrops{.drop_unknown = true};
const ForeignOptions kGoesOn{.goes_on = true};

void CheckRow(const Row& row, const std::string& path, const ForeignOptions& options) {
  const auto read = ReadForeign(path, options);
  EXPECT_EQ(read.ok() ? kOk : read.status().code(), row.code);
  const std::string told = !read.ok() ? read.status().ToString() : *read ? Told(**read) : "nothing";
  EXPECT_THAT(told, ::testing::HasSubstr(row.part));
  if (!read.ok()) EXPECT_TRUE(read.status().place().path.starts_with(path));
}

// An object store has neither links nor empty directories.
void CheckRowInStore(const Row& row, bool is_file) {
  const auto store = std::make_shared<MemoryObjectStore>();
  for (const auto& [name, content] : row.files) {
    if (name.ends_with(kLink) || name.ends_with('/')) return;
    const ByteSpan bytes = std::as_bytes(std::span(content));
    store->Set(is_file ? "file" : "in/" + name, {bytes.begin(), bytes.end()});
  }
  ForeignOptions options = row.options;
  options.storage = ObjectStorage(store).value();
  CheckRow(row, is_file ? "mem://bucket/file" : "mem://bucket/in", options);
}

void Check(const std::vector<Row>& rows) {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const fs::path root =
      fs::path(::testing::TempDir()) / internal::StrCat(test->test_suite_name(), "-", test->name());
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    fs::remove_all(root);
    fs::create_directories(root / "in");
    std::ofstream(root / "outside") << ItemOfDcp(false);
    const bool is_file = row.files.size() == 1 && row.files.front().first.empty();
    for (const auto& [name, content] : row.files) {
      if (name.ends_with(kLink)) {
        fs::create_symlink(content, root / "in" / name.substr(0, name.size() - kLink.size()));
      } else if (name.ends_with('/')) {
        fs::create_directory(root / "in" / name);
      } else {
        std::ofstream(is_file ? root / "file" : root / "in" / name, std::ios::binary) << content;
      }
    }
    const std::string path = (root / (is_file ? "file" : "in")).string();
    CheckRow(row, path, row.options);
    CheckRowInStore(row, is_file);
  }
  fs::remove_all(root);
}

Files File(std::string content) { return {{"", std::move(content)}}; }
std::string Header(const std::string& json, const std::string& payload = "") {
  return Number(json.size(), 8) + json + payload;
}
std::string WithTree(const std::string& tree) {
  return Header(R"({"__metadata__":{"sealpoint.tree":")" + tree + "\"}}");
}

TEST(HostileSafetensors, Rows) {
  Check({
      {"ten bytes", File(Header("{}")), kOk, "safetensors {}"},
      {"nine bytes", File(Number(1, 8) + "{"), kOk, "nothing"},
      {"other than an object", File(Header("[]")), kOk, "nothing"},
      {"values", File(WithTree(R"({\"l\":[1,null],\"n\":null})")), kOk, " l=[1, null] n=null"},
      {"a list as tree", File(WithTree("[]")), kCorrupt, "the tree is []"},
      {"a tuple as tree", File(WithTree(R"({\"$\":\"tuple\",\"items\":[]})")), kCorrupt,
       "a mapping"},
  });
}

TEST(HostileFiles, OfOtherKinds) {
  const char* const many = "latest_checkpointed_iteration.txt";
  Check({
      {"nothing", File(""), kIncomplete, "an empty file"},
      {"text", File("text"), kOk, "nothing"},
      {"HDF5", File("\x89HDF\r\n\x1a\nxxxx"), kUnsupported, "HDF5"},
      {"numpy", File("\x93NUMPY"), kUnsupported, "numpy"},
      {"gzip", File("\x1f\x8bxxxxxx"), kUnsupported, "gzip"},
      {"zstd", File("\x28\xb5\x2f\xfdxxxx"), kUnsupported, "zstd"},
      {"pickle", File(Pickle(Mapping(""))), kUnsupported, "a plain pickle"},
      {"unfinished", {{"__0_0.distcp", ""}}, kNotACheckpoint, "an unfinished save"},
      {"no iteration", {{many, "7x"}}, kCorrupt, "iteration '7x'"},
  });
}

std::string Gguf(const std::string& rest, unsigned version = 3, unsigned tensors = 0,
                 unsigned keys = 0) {
  return "GGUF" + Number(version, 4) + Number(tensors, 8) + Number(keys, 8) + rest;
}
std::string GgufText(const std::string& text) { return Number(text.size(), 8) + text; }
std::string GgufKey(const std::string& name, const std::string& value) {
  return GgufText(name) + Number(2, 4) + value;
}
std::string GgufTensor(const std::string& name, unsigned type, unsigned extent, unsigned offset) {
  return GgufText(name) + Number(1, 4) + Number(extent, 8) + Number(type, 4) + Number(offset, 8);
}
// One with a tensor of 4 bytes per element, which begins behind 64 bytes.
std::string GgufOf(const std::string& tensor, const std::string& payload) {
  return (Gguf(tensor, 3, 1) + std::string(40, '\0')).substr(0, 64) + payload;
}

TEST(HostileGguf, Rows) {
  const std::string four(16, '\1');
  const std::string split = GgufKey("split.count", Number(2, 2)) + GgufKey("split.no", "\0\0"s);
  Check({
      {"no tensors", File(Gguf("")), kOk, "gguf {}"},
      {"a tensor", File(GgufOf(GgufTensor("w", 0, 4, 0), four)), kOk, "w/dense"},
      {"quantized", File(GgufOf(GgufTensor("w", 2, 32, 0), four + "xx")), kOk, "w/dense"},
      {"version", File(Gguf("", 1)), kUnsupported, "version of GGUF is 1"},
      {"big-endian", File(Gguf("", 0x03000000)), kUnsupported, "big-endian"},
      {"magic alone", File("GGUF"), kIncomplete, "bytes of the file follow"},
      {"keys", File(Gguf("", 3, 0, 1)), kIncomplete, "1 keys of 13 bytes"},
      {"a duplicate key", File(Gguf(GgufKey("a", "\0\0"s) + GgufKey("a", "\0\0"s), 3, 0, 2)),
       kCorrupt, "duplicate key a"},
      {"an offset", File(GgufOf(GgufTensor("w", 0, 4, 4), four)), kCorrupt, "begins 4 bytes"},
      {"half a block", File(GgufOf(GgufTensor("w", 2, 33, 0), four)), kCorrupt, "rows have 33"},
      {"a type", File(GgufOf(GgufTensor("w", 77, 4, 0), four)), kUnsupported, "type 77"},
      {"cut off", File(GgufOf(GgufTensor("w", 0, 5, 0), four)), kIncomplete, "ends at 84"},
      {"bytes after", File(GgufOf(GgufTensor("w", 0, 4, 0), four + four + "x")), kCorrupt,
       "17 bytes follow"},
      {"a part", File(Gguf(split, 3, 0, 2)), kUnsupported, "one of several files of a model"},
      {"a part alone", File(Gguf(split, 3, 0, 2)), kOk, "gguf {}", {.allow_part = true}},
      {"a folder", {{"a.gguf", Gguf("")}, {"b.md", "x"}}, kOk, "gguf {}"},
      {"two models", {{"a.gguf", Gguf("")}, {"b.gguf", Gguf("")}}, kUnsupported, "several GGUF"},
      {"a missing file",
       {{"a-00001-of-00002.gguf", Gguf("")}},
       kIncomplete,
       "lacks a-00002-of-00002.gguf"},
      {"no count",
       {{"a-00001-of-00002.gguf", Gguf("")}, {"a-00002-of-00002.gguf", Gguf("")}},
       kCorrupt,
       "split.count is missing"},
      {"no count of tensors",
       {{"a-00001-of-00002.gguf", Gguf(split, 3, 0, 2)},
        {"a-00002-of-00002.gguf",
         Gguf(GgufKey("split.count", Number(2, 2)) + GgufKey("split.no", Number(1, 2)), 3, 0, 2)}},
       kCorrupt,
       "split.tensors.count is missing"},
  });
}

std::string Saved(const std::string& value) { return TorchSaved(Pickle(value)); }
// A state of one value.
Files Torch(const std::string& value) { return File(Saved(Mapping(Text("v") + value))); }
std::string SetOf(const std::string& item) { return Call(Global("builtins", "set"), List(item)); }
std::string Float(const std::string& shape, const std::string& strides) {
  return Tensor("FloatStorage", "0", 16, shape, strides);
}

std::string Deflated(std::string zip) {
  zip[zip.find("PK\x01\x02") + 10] = 8;
  return zip;
}

// Whose entry is said to begin where no file ends.
std::string FarEntry(std::string zip) {
  return zip.replace(zip.rfind("PK\x01\x02") + 42, 4, "\xf0\xff\xff\xff");
}
std::string FarEnd(std::string zip) {
  const std::string locator = "PK\x06\x07"s + Number(0, 4) + Number(1ULL << 40, 8) + Number(1, 4);
  return zip.insert(zip.rfind("PK\x05\x06"), locator);
}

// References to references: 10 to the power of 30 values.
std::string Unfolding() {
  std::string lists = "]q\0("s + std::string(10, 'N') + "e0";
  for (char i = 0; i < 30; ++i) {
    lists += "]q"s + static_cast<char>(i + 1) + "(";
    for (int n = 0; n < 10; ++n) lists += "h"s + i;
    lists += "e0";
  }
  return TorchSaved("\x80\x02" + lists + Mapping(Text("v") + "h\x1e") + ".");
}

TEST(HostileTorch, Rows) {
  const std::string many = Int(1 << 30) + Int(1 << 30) + Int(1 << 30);
  const std::string unknown = Call(Global("x", "Y"), "");
  const std::string malformed = Call(Global("torch", "Size"), "");
  const char* const no_set = "unhashable value in a set";
  Check({
      {"no bytes of a number", Torch("\x8a\0"s), kOk, R"({"v": 0})"},
      {"turned", Torch(Float(Int(2) + Int(2), Int(1) + Int(2))), kOk, " v/[1, 2]"},
      {"one row", Torch(Float(Int(1) + Int(4), Int(7) + Int(1))), kOk, " v/dense"},
      {"large", Torch(Float(many, Int(0) + Int(0) + Int(0))), kLimitExceeded, "2^64 bytes"},
      {"compressed", File(Deflated(Saved(Mapping("")))), kUnsupported, "compressed by method 8"},
      {"an entry outside", File(FarEntry(Saved(Mapping("")))), kCorrupt, "30 are at 4294967280"},
      {"an end outside", File(FarEnd(Saved(Mapping("")))), kCorrupt, "56 are at 1099511627776"},
      {"a set of a list", Torch(SetOf("]")), kCorrupt, no_set},
      {"a set of a mapping", Torch(SetOf("}")), kCorrupt, no_set},
      {"a set of a set", Torch(SetOf("\x8f")), kCorrupt, no_set},
      {"a class", Torch(unknown), kOk, " ?values of 'x.Y' cannot be represented"},
      {"a class left out", Torch(unknown), kOk, "{} *v is left out: its class is x.Y", kDrops},
      {"malformed", Torch(malformed), kCorrupt, "torch.Size is malformed"},
      {"goes on", Torch(malformed), kOk, " ?an object of torch.Size is malformed", kGoesOn},
  });
}

TEST(HostileTorch, Bounds) {
  Check({
      {"deep", Torch(std::string(150, ']') + std::string(149, 'a')), kOk, R"({"v": [[)"},
      {"deeper", Torch(std::string(250, ']') + std::string(249, 'a')), kLimitExceeded, "nested"},
      {"unfolds", File(Unfolding()), kLimitExceeded, "unfolds to more", kGoesOn},
  });
}

struct Bad {
  std::string pickle;
  Code code;
  const char* part;
};

void CheckEach(const std::vector<Bad>& rows, Files (*make)(const std::string&)) {
  std::vector<Row> whole;
  for (const Bad& row : rows) whole.push_back({row.part, make(row.pickle), row.code, row.part});
  Check(whole);
}

TEST(HostilePickles, Instructions) {
  const auto seven = [](char last) { return std::string(7, '\xff') + last; };
  CheckEach(
      {
          {"", kCorrupt, "ends too early"},
          {".", kCorrupt, "ends with 0 values"},
          {"NN.", kCorrupt, "ends with 2 values"},
          {"(N.", kCorrupt, "ends with"},
          {"\x80\x01N.", kUnsupported, "protocol 1"},
          {"\x80\x09N.", kUnsupported, "protocol 9"},
          {"I3\n.", kUnsupported, "instruction INT"},
          {"P3\n.", kUnsupported, "instruction PERSID"},
          {"(cos\nsystem\no.", kUnsupported, "instruction OBJ"},
          {"(ios\nsystem\n.", kUnsupported, "instruction INST"},
          {"\x82\x01.", kUnsupported, "instruction EXT1"},
          {"\xff.", kUnsupported, "0xff"},
          {"\x95" + seven('\x7f') + ".", kCorrupt, "of a frame"},
          {"\x8d" + seven('\x7f') + "x.", kCorrupt, "bytes left"},
          {"\x8e" + seven('\xff') + "x.", kCorrupt, "bytes left"},
          {"\x8b\xff\xff\xff\x7f.", kLimitExceeded, "integer has"},
          {"\x8b\x01\x08\0\0"s + std::string(2049, 1), kLimitExceeded, "2049 bytes"},
          {"h\x05.", kCorrupt, "recalls value 5"},
          {"j\xff\xff\xff\xff.", kCorrupt, "recalls value 4294967295"},
          {"Na.", kCorrupt, "or pops an empty stack"},
          {"NNa.", kCorrupt, "appends to a NoneType"},
          {"NNNs.", kCorrupt, "sets items of a NoneType"},
          {"}(Nu.", kCorrupt, "sets items of a Dict, 1"},
          {"NNb.", kCorrupt, "sets the state of a NoneType"},
          {"N)R.", kCorrupt, "calls a NoneType with a tuple, expected a class"},
          {"N)\x81.", kCorrupt, "makes an object of a NoneType with a tuple, expected a class"},
          {"u.", kCorrupt, "pickle pops a mark that was never set"},
          {"(N(a.", kCorrupt, "or pops an empty stack"},
          {"NN\x93.", kCorrupt, "is not a string"},
          {"c" + std::string(5000, 'x'), kCorrupt, "name has no end"},
          {Text("\xff") + ".", kCorrupt, "expected UTF-8"},
          {"]q\0h\0a."s, kLimitExceeded, "in a cycle"},
          {"}q\0U\x01xh\0s."s, kUnsupported, "SHORT_BINSTRING"},
          {"}q\0"s + Text("x") + "h\0s."s, kLimitExceeded, "in a cycle"},
          {"}](h\0e]s."s, kCorrupt, "recalls"},
          {"}]Ns.", kUnsupported, "a key is a list"},
          {"}(]tNs.", kCorrupt, "unhashable value in a key"},
          {"}" + Text("\xed\xa0\x80") + "Ns.", kUnsupported, "has surrogates"},
          {"}" + Text("x") + Text("\xed\xa0\x80") + "s.", kUnsupported, "has surrogates"},
          {"}" + Text("x") + "K\x01Qs.", kCorrupt, "persistent id"},
      },
      [](const std::string& pickle) {
        return File(TorchSaved((pickle.starts_with('\x80') ? "" : "\x80\x02") + pickle));
      });
}

TEST(HostilePickles, Objects) {
  const auto of = [](const std::string& module, const std::string& name, const std::string& args) {
    return Call(Global(module, name), args);
  };
  const std::string many = "numpy._core.multiarray";
  const std::string four = "C\x04zzzz";
  const auto array = [&](const char* code) {
    return of("numpy._core.numeric", "_frombuffer",
              four + of("numpy", "dtype", Text(code)) + Tuple(Int(2)) + Text("C"));
  };
  const std::string big = of("numpy", "dtype", Text("f4")) + Tuple(Int(3) + Text(">")) + "b";
  const auto typed = [&](const std::string& type, const std::string& made) {
    return of("torch._tensor", "_rebuild_from_type_v2", type + made + ")" + Int(0));
  };
  CheckEach(
      {
          {of("torch", "Size", Tuple(Int(~0u))), kCorrupt, "an object of torch.Size is malformed"},
          {of("torch", "device", "G12345678"), kCorrupt, "torch.device is malformed"},
          {of("_codecs", "encode", Text("a") + Text("rot13")), kCorrupt, "encode is malformed"},
          {of("builtins", "complex", Text("1+2j")), kCorrupt, "builtins.complex is malformed"},
          {of("builtins", "bytearray", Int(1)), kCorrupt, "builtins.bytearray is malformed"},
          {of(many, "scalar", Int(1) + "C\0"s), kCorrupt, "scalar is malformed"},
          {of(many, "_reconstruct", Int(1)), kCorrupt, "_reconstruct is malformed"},
          {array("f4"), kCorrupt, "4 bytes of an array"},
          {of("torch._utils", "_rebuild_tensor_v2", Int(1) + Int(0) + ")" + ")"), kCorrupt,
           "without a storage"},
          {of("torch._utils", "_rebuild_parameter", Int(1)), kCorrupt, "without a tensor"},
          {of("_io", "BytesIO", "") + Tuple(Int(1) + Int(0) + "N") + "b", kCorrupt,
           "BytesIO is malformed"},
          {"(]\x91", kCorrupt, "unhashable value in a set"},
          {Mapping(of("torch", "Size", Tuple(Int(1))) + "N"), kUnsupported, "a key is"},
      },
      Torch);
  // Whose classes have no form.
  CheckEach({{of("builtins", "getattr", Text("x") + Text("y")), kOk, "builtins.getattr"},
             {of("numpy", "ndarray", Tuple(Int(2))), kOk, "numpy.ndarray"},
             {of("numpy", "dtype", Text("f4") + "\x89\x88"), kOk, "numpy.dtype"},
             {of(many, "scalar", big + four), kOk, "big-endian"},
             {array("O8"), kOk, "numpy.ndarray of O8"},
             {typed(Global("os", "system"), Global("torch", "Tensor")), kOk, "os.system"},
             {typed(Global("torch", "Size"), Global("torch", "Size")), kOk, "torch.Size"},
             {of("megatron.core.x", "Y", Int(1) + Int(2)), kOk, "megatron.core.x.Y"},
             {Global("torch", "FloatStorage"), kOk, "torch.FloatStorage"}},
            Torch);
}

// Parts of a file before 1.6.
std::string Stored(const std::string& count, const std::string& view) {
  const std::string id =
      Text("storage") + Global("torch", "FloatStorage") + Text("0") + Text("cpu");
  return Call(Global("torch._utils", "_rebuild_tensor_v2"),
              Tuple(id + count + view) + "Q" + Int(0) + Tuple(Int(0)) + Tuple(Int(1)) + "\x89" +
                  Ordered(""));
}
Files Legacy(const std::string& value, std::uint64_t count = 4,
             const std::string& little_endian = "\x88") {
  return File("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + Pickle(Int(1001)) +
              Pickle(Mapping(Text("little_endian") + little_endian)) +
              Pickle(Mapping(Text("w") + value)) + Pickle(List(Text("0"))) + Number(count, 8) +
              std::string(4 * count, 'x'));
}

TEST(HostileLegacy, Rows) {
  const char* const none = "pickle names a storage without a class, a key or a size";
  Check({
      {"good", Legacy(Stored(Int(4), "N")), kOk, R"({"w": {"$": "tensor", "name": "w"}})"},
      {"of no elements", Legacy(Stored(Int(0), "N"), 0), kOk, "tensor"},
      {"a count of text", Legacy(Stored(Text("4"), "N")), kCorrupt, none},
      {"a negative count", Legacy(Stored(Int(~0u), "N")), kCorrupt, none},
      {"a view beyond", Legacy(Stored(Int(4), Tuple(Text("8") + Int(3) + Int(2)))), kCorrupt,
       "beyond its storage"},
      {"big-endian", Legacy(Stored(Int(4), "N"), 4, "\x89"), kUnsupported, "big-endian"},
      {"an instruction", Legacy("I3\n"), kUnsupported, "instruction INT"},
  });
}

TEST(HostileFolders, FilesBesideTheModel) {
  const std::string saved = Saved(Mapping(Text("k") + "N"));
  const std::pair<std::string, std::string> model = {"model.safetensors", Header("{}")};
  const char* const other = " -f: of an unsupported kind";
  const auto with = [&](const std::string& content) { return Files{model, {"f", content}}; };
  Check({
      {"state", {model, {"a.pt", saved}}, kOk, R"(hf {"a": {"k": null}})"},
      {"again",
       {model, {"pytorch_model.bin", saved}},
       kOk,
       " -pytorch_model.bin: weights in another form"},
      {"hidden", {model, {".x.pt", saved}}, kOk, " -.x.pt: of an unsupported kind"},
      {"no name", {model, {"\xff.pt", saved}}, kOk, " -\xff.pt: of an unsupported kind"},
      {"named as state", {model, {"a.pt", "text"}}, kOk, " -a.pt: text"},
      {"progress", {model, {"trainer_state.json", "\xff"}}, kOk, ": of an unsupported kind"},
      {"cut", with(std::string(4093, 'a') + "\xf0\x9f\x98\x80"), kOk, " -f: text"},
      {"ends early", with("ab\xff"), kOk, other},
      {"broken within", with(std::string(2000, 'a') + "\xff" + std::string(3000, 'a')), kOk, other},
      {"zero", with("ab\0c"s), kOk, other},
      {"folder", {model, {"f/", ""}}, kOk, " -f: a directory"},
      {"link to nothing", {model, {"f@", "none"}}, kOk, " -f: No such file or directory"},
      {"link to itself", {model, {"f@", "f"}}, kOk, " -f: Too many levels of symbolic links"},
      {"no mapping",
       {{"model.safetensors", WithTree("[]")}, {"a.pt", saved}},
       kCorrupt,
       "a mapping"},
  });
}

// The metadata of an object "o" and a tensor "w" of one element, in these files.
std::string Metadata(const std::string& object_file, const std::string& tensor_file,
                     const std::string& dtype, const std::string& planner) {
  const std::string none = Call(Global("torch", "Size"), Tuple(""));
  const auto place = [](const std::string& name, const std::string& offset,
                        const std::string& file) {
    return Described("MetadataIndex", Text("fqn") + Text(name) + Text("offset") + offset) +
           Global("torch.distributed.checkpoint.filesystem", "_StorageInfo") + ")\x81" +
           Mapping(Text("relative_path") + Text(file) + Text("offset") + Int(0) + Text("length") +
                   Int(ItemOfDcp(false).size())) +
           "b";
  };
  const std::string tensor = Described(
      "TensorStorageMetadata",
      Text("properties") + Described("TensorProperties", Text("dtype") + Global("torch", dtype)) +
          Text("size") + none + Text("chunks") +
          List(Described("ChunkStorageMetadata", Text("offsets") + none + Text("sizes") + none)));
  std::string states;
  std::string places;
  if (!object_file.empty()) {
    states += Text("o") + Described("BytesStorageMetadata", "");
    places += place("o", "N", object_file);
  }
  if (!tensor_file.empty()) {
    states += Text("w") + tensor;
    places += place("w", none, tensor_file);
  }
  return Pickle(Described("Metadata", Text("state_dict_metadata") + Mapping(states) +
                                          Text("storage_data") + Mapping(places) +
                                          Text("planner_data") + planner));
}

TEST(HostileDcp, Rows) {
  const std::string item = ItemOfDcp(false);
  const std::string unequal = TorchSaved("\x80\x02}X\x01\0\0\0aK\x02s."s);
  const auto planned = [&](std::uint64_t index) {
    return Files{
        {"i", item},
        {".metadata", Metadata("i", "", "", Mapping(Text("o") + Tuple(Text("m") + Int(index))))}};
  };
  const auto ranks = [&](bool is_tensor) {
    const auto metadata = [&](const char* file) {
      return is_tensor ? Metadata("", file, "float32", "N") : Metadata(file, "", "", "N");
    };
    return Files{{"i", item},
                 {"j", unequal},
                 {"__0.metadata", metadata("i")},
                 {"__1.metadata", metadata("j")}};
  };
  const char* const differs = "Mismatch: rank 1 stored different bytes than an earlier rank";
  Check({
      {"a list", planned(0), kOk, R"(dcp {"m": [{"a": 1}]})"},
      {"a mapping", planned(1), kOk, R"({"m": {"$": "dict", "items": [[1, {"a": 1}]]}})"},
      {"a path out of it",
       {{".metadata", Metadata("", "../x/y", "qint8", "N")}},
       kCorrupt,
       "a relative path within",
       kDrops},
      {"a link out of it",
       {{"i@", "../outside"}, {".metadata", Metadata("", "i", "float32", "N")}},
       kUnsupported,
       kOut},
      {"a link beside it",
       {{"f@", "../outside"}, {".metadata", Metadata("", "", "", "N")}},
       kOk,
       " -f: a symbolic link"},
      {"objects of ranks", ranks(false), kMismatch, differs},
      {"tensors of ranks", ranks(true), kMismatch, differs},
  });
}

TEST(HostileMegatron, Rows) {
  const auto with = [](const std::string& marker, const std::string& name,
                       const std::string& common) {
    return Files{
        {".metadata", Metadata("", "", "", "N")}, {"metadata.json", marker}, {name, common}};
  };
  const auto step = [&](const std::string& pairs) {
    return with(R"({"sharded_backend": "torch_dist"})", "common.pt", Saved(Mapping(pairs)));
  };
  Check({
      {"of a step", step(Text("iteration") + Int(7)), kOk, " @7"},
      {"of the first step", step(Text("iteration") + Int(0)), kOk, " @0"},
      {"a negative step", step(Text("iteration") + Int(~0u)), kOk, ".iteration=-1 @none"},
      {"no step", step(""), kOk, "megatron {\"common_state/shard_0_1\": {}}"},
      {"no marker", with("{}", "common.pt", "x"), kOk, "dcp {}"},
      {"another format", with(R"({"sharded_backend": "zarr"})", "common.pt", "x"), kUnsupported,
       "'zarr', expected torch_dist"},
      {"a link out of it", with(R"({"sharded_backend": "torch_dist"})", "common.pt@", "../outside"),
       kUnsupported, kOut},
  });
}

}  // namespace
}  // namespace sealpoint::testing
