// SPDX-License-Identifier: Apache-2.0
// How many requests reach the server: what a bucket costs, and what its limits allow.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sealpoint/object_store.h"
#include "tests/s3/save_one.h"
#include "tests/support/object_store/stub.h"

namespace sealpoint::testing {
namespace {

class S3RequestsTest : public ::testing::Test {
 protected:
  Result<CommitInfo> Save(const std::string& name, std::uint64_t size) {
    return SaveOne(storage_, "s3://bucket/" + name, {}, NoiseBytes(1, size));
  }
  StubServer stub_;
  const std::shared_ptr<ObjectStore> store_ = stub_.Store();
  const std::shared_ptr<Storage> storage_ = ObjectStorage(store_).value();
};

TEST_F(S3RequestsTest, OpeningTakesThreeAndOneForEachThousandNames) {
  ASSERT_TRUE(Save("c", 6 * kMiB).ok());
  int names = 3;
  for (const int more : {0, 1000}) {
    for (int i = 0; i < more; ++i) {
      ASSERT_TRUE(store_->Put("c/other-" + std::to_string(names++), {}).ok());
    }
    const int before = stub_.CountAll();
    ASSERT_TRUE(OpenFrom(ObjectStorage(store_).value(), "s3://bucket/c") != nullptr);
    EXPECT_LE(stub_.CountAll() - before, 3 + (names + 999) / 1000) << names << " names";
  }
}

TEST_F(S3RequestsTest, ACommitAddsSixToTheUploads) {
  struct Row {
    const char* name;
    std::uint64_t size;
    int uploads;
  };
  const Row rows[] = {{"small", 5000, 1}, {"large", 12 * kMiB, 1 + 3 + 1}};
  for (const auto& [name, size, uploads] : rows) {
    const int before = stub_.CountAll();
    const auto saved = Save(name, size);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    EXPECT_LE(stub_.CountAll() - before, uploads + 6) << name;
  }
}

class S3CopyTest : public S3RequestsTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(store_->Put(kFrom, content_).ok());
    from_ = store_->Head(kFrom).value();
    from_.key = kFrom;
  }
  Bytes Get(const std::string& key) const {
    Bytes found;
    static_cast<void>(store_->GetFirst(key, 1 * kMiB, found));
    return found;
  }
  static constexpr const char* kFrom = "step 1/a+b&c.blob";  // to be encoded
  const Bytes content_ = NoiseBytes(3, 70000);
  StoredObject from_;
};

TEST_F(S3CopyTest, TakesOneRequestAndNoBytes) {
  const int before = stub_.CountAll();
  const auto etag = store_->Copy(from_, "step 2/copy");
  ASSERT_TRUE(etag.ok()) << etag.error().ToString();
  EXPECT_EQ(*etag, from_.etag);
  EXPECT_EQ(stub_.CountAll() - before, 1);
  EXPECT_EQ(stub_.Count("CopyObject"), 1);
  EXPECT_EQ(Get("step 2/copy"), content_);
}

TEST_F(S3CopyTest, IsRepeatedOrFailsAsTheServerSays) {
  struct Row {
    const char* fault;
    int times;
    Code code;  // kOk: the copy is there
  };
  for (const Row& row : {Row{"slowdown", 1, Code::kOk}, Row{"lost", 1, Code::kOk},
                         Row{"ok_error", 1, Code::kOk}, Row{"denied", 9, Code::kIo},
                         Row{"garbage", 9, Code::kIo}, Row{"put_of_nothing", 9, Code::kIo}}) {
    SCOPED_TRACE(row.fault);
    stub_.Fault("CopyObject", row.fault, row.times);
    const auto copied = store_->Copy(from_, std::string("to/") + row.fault);
    stub_.Heal();
    EXPECT_EQ(copied.status().code(), row.code) << copied.status().ToString();
    if (row.code == Code::kOk) {
      EXPECT_EQ(Get(std::string("to/") + row.fault), content_);
    }
  }
}

TEST_F(S3CopyTest, IsOfTheObjectThatWasLookedAt) {
  ASSERT_TRUE(store_->Put(kFrom, NoiseBytes(4, 70000)).ok());
  EXPECT_EQ(store_->Copy(from_, "to").status().code(), Code::kIo);
  EXPECT_TRUE(Get("to").empty());
  from_.key = "nothing";
  EXPECT_EQ(store_->Copy(from_, "to").status().code(), Code::kNotFound);
  from_.size_bytes = 5 * kGiB + 1;
  EXPECT_EQ(store_->Copy(from_, "to").status().code(), Code::kUnsupported) << "in one request";
}

// A directory that the library makes of it: a copy is made again as an upload if it is not whole.
TEST_F(S3CopyTest, ADirectoryTrustsNoOtherCopy) {
  ASSERT_TRUE(store_->Put("a/f", content_).ok());
  ASSERT_TRUE(storage_->CreateDirectories("s3://bucket/b").ok());
  const auto to = storage_->OpenDirectory("s3://bucket/b").value();
  EXPECT_EQ(to->LinkFrom("s3://bucket/a", "f", 1).code(), Code::kUnsupported);
  EXPECT_EQ(to->LinkFrom("s3://other/a", "f", 9).code(), Code::kUnsupported);
  EXPECT_EQ(to->LinkFrom("s3://bucket/a", "g", 9).code(), Code::kNotFound);
  stub_.Fault("CopyObject", "put_of_nothing", 9);
  EXPECT_EQ(to->LinkFrom("s3://bucket/a", "f", 9).code(), Code::kIo);
  stub_.Heal();
  EXPECT_EQ(to->Stat("f").status().code(), Code::kNotFound) << "what it left is gone";
  ASSERT_TRUE(to->LinkFrom("s3://bucket/a", "f", 9).ok());
  EXPECT_EQ(Get("b/f"), content_);
}

}  // namespace
}  // namespace sealpoint::testing
