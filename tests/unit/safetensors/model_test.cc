// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "sealpoint/object_store.h"
#include "sealpoint/safetensors.h"
#include "tests/support/safetensors/safetensors_file.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/memory_object_store.h"
#include "tests/support/storage/write_file.h"

namespace sealpoint {
namespace {

using testing::CountingBytes;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::SafetensorsFileOf;
using ::testing::SizeIs;

// A file with one tensor of four bytes.
std::string FileOf(const std::string& tensor) {
  return SafetensorsFileOf("{\"" + tensor + R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                           "abcd");
}

class SafetensorsModelTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, std::string_view content) {
    testing::WriteFile(*storage_, path, content);
  }
  void WriteIndex(const std::string& weight_map) {
    Write("m/model.safetensors.index.json", "{\"weight_map\":{" + weight_map + "}}");
  }
  Result<std::unique_ptr<SafetensorsModel>> Open(const std::string& path) {
    options_.storage = storage_;
    return SafetensorsModel::Open(path, options_);
  }

  std::shared_ptr<Storage> storage_ = MemoryStorage();
  SafetensorsOptions options_;
};

TEST_F(SafetensorsModelTest, OpensAFile) {
  Write("d/x.safetensors",
        SafetensorsFileOf(R"({"__metadata__":{"format":"pt"},)"
                          R"("b":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},)"
                          R"("a":{"dtype":"F64","shape":[0],"data_offsets":[4,4]}})",
                          "wxyz"));
  const auto model = Open("d/x.safetensors");
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_EQ((*model)->path(), "d/x.safetensors");
  EXPECT_FALSE((*model)->is_directory());
  EXPECT_EQ((*model)->index_name(), "");
  ASSERT_THAT((*model)->files(), SizeIs(1));
  EXPECT_EQ((*model)->files()[0].name, "x.safetensors");
  EXPECT_THAT((*model)->files()[0].metadata, ElementsAre(Pair("format", "pt")));
  const std::uint64_t begin = (*model)->files()[0].size_bytes - 4;
  EXPECT_THAT(
      (*model)->tensors(),
      ElementsAre(SafetensorsTensor{"a", DType::kF64, {0}, 0, {}},
                  SafetensorsTensor{"b", DType::kBf16, {2, 1}, 4, {{0, begin, {{0, 0}, {2, 1}}}}}));
  EXPECT_EQ((*model)->Find("b"), &(*model)->tensors()[1]);
  EXPECT_EQ((*model)->Find("aa"), nullptr);
  EXPECT_EQ((*model)->Find("c"), nullptr);
}

TEST_F(SafetensorsModelTest, RefusesWhatIsNoSuchFile) {
  Write("d/short", "1234567");
  EXPECT_EQ(Open("d/short").status().code(), Code::kNotACheckpoint);
  Write("d/long", std::string(8, '\xff'));
  EXPECT_EQ(Open("d/long").status().code(), Code::kIncomplete);  // and no limit to be raised
  Write("d/cut", FileOf("a").substr(0, 20));
  EXPECT_EQ(Open("d/cut").status().code(), Code::kIncomplete);
  Write("d/json", SafetensorsFileOf("{]", ""));
  const Status error = Open("d/json").status();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().path, "d/json");
  EXPECT_EQ(Open("d/none").status().code(), Code::kNotFound);
  EXPECT_EQ(Open("none/none").status().code(), Code::kNotFound);
  EXPECT_FALSE(Open("").ok());
}

TEST_F(SafetensorsModelTest, BoundsTheHeader) {
  const std::string file = FileOf("a");
  Write("d/x", file);
  options_.header_size_max_bytes = file.size() - 12;
  EXPECT_TRUE(Open("d/x").ok());
  --options_.header_size_max_bytes;
  const Status error = Open("d/x").status();
  EXPECT_EQ(error.code(), Code::kLimitExceeded);
  EXPECT_EQ(error.place().path, "d/x");
}

// The length of the header reaches exactly to the end of the file, and one byte beyond it.
TEST_F(SafetensorsModelTest, TheHeaderLiesInTheFile) {
  std::string file = SafetensorsFileOf("{}", "");
  Write("d/x", file);
  EXPECT_TRUE(Open("d/x").ok());
  file[0] = 3;
  Write("d/y", file);
  EXPECT_EQ(Open("d/y").status().code(), Code::kIncomplete);
  EXPECT_THAT(Open("d/y").status().message(), HasSubstr("file has 10 bytes, but its header has 3"));
}

TEST_F(SafetensorsModelTest, OpensADirectoryWithAnIndex) {
  Write("m/one.safetensors", FileOf("a"));
  Write("m/sub/two.safetensors", FileOf("b"));
  Write("m/other.safetensors", "not of the model");
  Write("m/config.json", "{}");
  WriteIndex(R"("b":"sub/two.safetensors","a":"one.safetensors")");
  const auto model = Open("m");
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_TRUE((*model)->is_directory());
  EXPECT_EQ((*model)->index_name(), "model.safetensors.index.json");
  EXPECT_THAT((*model)->files(), ElementsAre(Field(&SafetensorsFile::name, "one.safetensors"),
                                             Field(&SafetensorsFile::name, "sub/two.safetensors")));
  EXPECT_THAT((*model)->tensors(), ElementsAre(Field(&SafetensorsTensor::name, "a"),
                                               Field(&SafetensorsTensor::name, "b")));
}

TEST_F(SafetensorsModelTest, OpensADirectoryWithoutAnIndex) {
  Write("m/model-00001-of-00002.safetensors", FileOf("a"));
  Write("m/.hidden.safetensors", "not looked at");
  EXPECT_THAT(Open("m").status().message(), HasSubstr("model-00002-of-00002.safetensors"));
  EXPECT_EQ(Open("m").status().code(), Code::kIncomplete);
  Write("m/model-00002-of-00002.safetensors", FileOf("b"));
  const auto model = Open("m");
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_THAT((*model)->tensors(), SizeIs(2));
  Write("m/x.safetensors", FileOf("b"));
  const Status error = Open("m").status();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().tensor, "b");
  EXPECT_EQ(error.place().path, "m/x.safetensors");
}

TEST_F(SafetensorsModelTest, RefusesADirectoryOfSomethingElse) {
  Write("m/config.json", "{}");
  EXPECT_EQ(Open("m").status().code(), Code::kNotACheckpoint);
}

TEST_F(SafetensorsModelTest, RefusesTwoIndices) {
  Write("m/a.safetensors.index.json", "{}");
  Write("m/b.safetensors.index.json", "{}");
  const Status error = Open("m").status();
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_EQ(error.place().path, "m");
}

TEST_F(SafetensorsModelTest, TheIndexIsRight) {
  Write("m/one.safetensors", FileOf("a"));
  const auto error_of = [this](const std::string& weight_map) {
    const auto directory = storage_->OpenDirectory("m").value();
    static_cast<void>(directory->Remove("model.safetensors.index.json"));
    WriteIndex(weight_map);
    return Open("m").status();
  };
  EXPECT_TRUE(error_of(R"("a":"one.safetensors")").ok());
  // A tensor that is not there.
  Status error = error_of(R"("a":"one.safetensors","b":"one.safetensors")");
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().tensor, "b");
  EXPECT_THAT(error.message(), HasSubstr("one.safetensors, but no file has it"));
  error = error_of(R"("c":"one.safetensors")");
  EXPECT_EQ(error.place().tensor, "c");
  for (const char* const missing : {"two.safetensors", "sub/two.safetensors"}) {
    error = error_of(std::string("\"a\":\"") + missing + "\"");
    EXPECT_EQ(error.code(), Code::kIncomplete);
    EXPECT_EQ(error.place().path, std::string("m/") + missing);
  }
  EXPECT_EQ(error_of(R"("a":"../m/one.safetensors")").code(), Code::kCorrupt);
  EXPECT_EQ(error_of(R"("a":1)").place().path, "m/model.safetensors.index.json");
}

// Official repositories have such, and readers that go by the index read the right one.
TEST_F(SafetensorsModelTest, TheIndexSaysWhichFileHasATensor) {
  Write("m/one.safetensors", FileOf("a"));
  Write("m/two.safetensors",
        SafetensorsFileOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})",
                          "wxyzb"));
  const struct {
    const char* file;
    const char* other;
    const char* bytes;
  } rows[] = {{"one.safetensors", "two.safetensors", "abcd"},
              {"two.safetensors", "one.safetensors", "wxyz"}};
  for (const auto& row : rows) {
    static_cast<void>(storage_->OpenDirectory("m").value()->Remove("model.safetensors.index.json"));
    // That of `b` has to be read, too.
    WriteIndex(std::string("\"a\":\"") + row.file +
               "\",\"b\":\"two.safetensors\",\"c\":\"one.safetensors\"");
    options_.allow_missing = {"c"};
    const auto model = Open("m");
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    std::string read(4, '.');
    ASSERT_TRUE((*model)->Read("a", MutableMemoryView::Host(read.data(), 4)).ok());
    EXPECT_EQ(read, row.bytes);
    EXPECT_THAT((*model)->duplicates(), ElementsAre(SafetensorsDuplicate{"a", row.other, 4}));
  }
}

TEST_F(SafetensorsModelTest, TensorsMayBeMissingIfThatIsAllowed) {
  Write("m/one.safetensors", FileOf("a"));
  WriteIndex(R"("a":"one.safetensors","b":"one.safetensors","c":"two.safetensors")");
  options_.allow_missing = {"b"};
  EXPECT_EQ(Open("m").status().place().path, "m/two.safetensors");
  options_.allow_missing = {"c"};
  Status error = Open("m").status();
  EXPECT_EQ(error.place().tensor, "b");
  EXPECT_THAT(error.message(), HasSubstr("--allow-missing"));
  for (const std::vector<std::string>& allowed :
       {std::vector<std::string>{"b", "c"}, std::vector<std::string>{"*"}}) {
    options_.allow_missing = allowed;
    const auto model = Open("m");
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    EXPECT_THAT((*model)->tensors(), ElementsAre(Field(&SafetensorsTensor::name, "a")));
    EXPECT_THAT((*model)->missing(), ElementsAre("b", "c"));
  }
  options_.allow_missing = {"\\"};
  EXPECT_EQ(Open("m").status().code(), Code::kInvalidArgument);
}

TEST_F(SafetensorsModelTest, ReadsTensorsThatTheIndexDoesNotName) {
  Write("m/one.safetensors",
        SafetensorsFileOf(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                          R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                          "xy"));
  WriteIndex(R"("b":"one.safetensors")");
  const auto model = Open("m");
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_THAT((*model)->tensors(), SizeIs(2));
  EXPECT_NE((*model)->Find("a"), nullptr);
}

TEST_F(SafetensorsModelTest, BoundsIndexTensorsAndFiles) {
  Write("m/one.safetensors", FileOf("a"));
  Write("m/two.safetensors", FileOf("b"));
  options_.limits.tensor_count_max = 2;
  options_.limits.blob_count_max = 2;
  EXPECT_TRUE(Open("m").ok());
  options_.limits.tensor_count_max = 1;
  EXPECT_EQ(Open("m").status().code(), Code::kLimitExceeded);
  options_.limits.tensor_count_max = 2;
  options_.limits.blob_count_max = 1;
  EXPECT_EQ(Open("m").status().code(), Code::kLimitExceeded);
  options_.limits.blob_count_max = 2;
  const std::string index = R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})";
  Write("m/x.safetensors.index.json", index + std::string(100, ' '));
  options_.header_size_max_bytes = index.size() + 100;
  EXPECT_TRUE(Open("m").ok());
  --options_.header_size_max_bytes;
  EXPECT_EQ(Open("m").status().code(), Code::kLimitExceeded);
}

// What a header describes is estimated before it is decoded: 1 KiB for each brace, wherever it is.
TEST_F(SafetensorsModelTest, BoundsTheMemoryOfWhatHeadersDescribe) {
  const auto file = [](std::size_t braces) {
    return SafetensorsFileOf(R"({"__metadata__":{"x":")" + std::string(braces, '{') + "\"}}", "");
  };
  Write("m/below.safetensors", file(65'000));
  EXPECT_TRUE(Open("m/below.safetensors").ok());
  Write("m/above.safetensors", file(67'000));
  const Status error = Open("m/above.safetensors").status();
  EXPECT_EQ(error.code(), Code::kLimitExceeded) << error.ToString();
  EXPECT_EQ(error.place().path, "m/above.safetensors");
  options_.metadata_memory_bytes = 80'000'000;
  EXPECT_TRUE(Open("m/above.safetensors").ok());
  // The scale files of a quantised model: a description of hundreds of bytes for a few.
  options_.metadata_memory_bytes.reset();
  std::string header = "{";
  constexpr int kCount = 70'000;
  for (int i = 0; i < kCount; ++i) {
    header += "\"model.layers.3.mlp.experts." + std::to_string(i) +
              R"(.down_proj.weight_scale":{"dtype":"U8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]},";
  }
  header.back() = '}';
  Write("m/many.safetensors", SafetensorsFileOf(header, std::string(kCount, 'x')));
  EXPECT_TRUE(Open("m/many.safetensors").ok());
}

TEST_F(SafetensorsModelTest, OneDamagedFileIsAnError) {
  Write("m/one.safetensors", FileOf("a"));
  Write("m/two.safetensors", FileOf("b").substr(0, 50));
  const Status error = Open("m").status();
  EXPECT_EQ(error.code(), Code::kIncomplete);
  EXPECT_EQ(error.place().path, "m/two.safetensors");
}

TEST_F(SafetensorsModelTest, ReportsWhatTheStorageReports) {
  Write("m/one.safetensors", FileOf("a"));
  WriteIndex(R"("a":"one.safetensors")");
  auto failing = std::make_shared<testing::FailingStorage>(storage_);
  storage_ = failing;
  for (const auto op : {testing::StorageOp::kList, testing::StorageOp::kOpenForRead}) {
    failing->Fail({.op = op});
    EXPECT_EQ(Open("m").status().code(), Code::kIo);
  }
  // The index, then the length and the text of the header.
  for (int nth = 1; nth <= 3; ++nth) {
    failing->Fail({.op = testing::StorageOp::kRead, .nth = nth});
    EXPECT_EQ(Open("m").status().code(), Code::kIo) << nth;
  }
  EXPECT_TRUE(Open("m").ok());
}

// More files than are kept open.
TEST_F(SafetensorsModelTest, MayHaveManyFiles) {
  for (int i = 0; i < 130; ++i) {
    Write("m/" + std::to_string(i) + ".safetensors", FileOf("t" + std::to_string(i)));
  }
  const auto model = Open("m");
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  for (const SafetensorsTensor& tensor : (*model)->tensors()) {
    std::string bytes(4, '\0');
    const Status status =
        (*model)->Read(tensor.name, MutableMemoryView::Host(bytes.data(), bytes.size()));
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(bytes, "abcd");
  }
}

// Each read is a request there: small tensors come together.
TEST_F(SafetensorsModelTest, ReadsAnObjectStoreInFewRequests) {
  constexpr std::size_t kCount = 40;
  constexpr std::size_t kBytes = 10'000;
  const auto store = std::make_shared<testing::MemoryObjectStore>();
  storage_ = ObjectStorage(store).value();
  std::string header;
  std::string payload;
  for (std::size_t i = 0; i < kCount; ++i) {
    header += (i > 0 ? ",\"" : "{\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[10000],"data_offsets":[)" + std::to_string(i * kBytes) +
              "," + std::to_string((i + 1) * kBytes) + "]}";
    payload += CountingBytes(kBytes, static_cast<unsigned>(i));
  }
  const std::string file = SafetensorsFileOf(header + "}", payload);
  const ByteSpan bytes = AsBytes(file);
  store->Set("m/x.safetensors", {bytes.begin(), bytes.end()});
  for (const std::string path : {"mem://bucket/m", "mem://bucket/m/x.safetensors"}) {
    const auto model = Open(path).value();
    store->ResetCounts();
    for (std::size_t i = 0; i < kCount; ++i) {
      std::string read(kBytes, '.');
      ASSERT_TRUE(
          model->Read(std::to_string(i), MutableMemoryView::Host(read.data(), kBytes)).ok());
      EXPECT_EQ(read, CountingBytes(kBytes, static_cast<unsigned>(i)));
    }
    EXPECT_EQ(store->request_count(), 1) << path;
  }
}

}  // namespace
}  // namespace sealpoint
