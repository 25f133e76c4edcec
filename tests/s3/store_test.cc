// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <string>
#include <vector>

#include "sealpoint/s3.h"
#include "tests/support/object_store/stub.h"

namespace sealpoint {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

Bytes Pattern(std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>((i * 7) ^ (i >> 11));
  return out;
}

class S3StoreTest : public ::testing::Test {
 protected:
  static testing::StubServer& stub() {
    static testing::StubServer server;
    return server;
  }
  void SetUp() override { stub().Reset(); }
  std::shared_ptr<ObjectStore> store_ = stub().Store();
};

TEST_F(S3StoreTest, PutsGetsListsAndDeletes) {
  const std::string odd = "p/a b+&<\u00e9%2F'";
  EXPECT_EQ(store_->uri(), "s3://bucket");
  ASSERT_TRUE(store_->Put("p/small", AsBytes("0123456789")).ok());
  ASSERT_TRUE(store_->Put(odd, {}).ok());
  ASSERT_TRUE(store_->Put("p/sub/x", AsBytes("x")).ok());
  EXPECT_EQ(store_->Head("p/small")->size_bytes, 10U);
  EXPECT_EQ(store_->Head("p/none").error().code(), Code::kNotFound);
  Bytes out;
  struct Row {
    const char* key;
    std::size_t size_max;
    std::string content;
    std::uint64_t size;
  };
  const Row rows[] = {{"p/small", 4, "0123", 10},
                      {"p/small", 10, "0123456789", 10},
                      {"p/small", 99, "0123456789", 10},
                      {"p/small", kAll, "0123456789", 10},
                      {"p/small", 0, "", 10},
                      {odd.c_str(), 4, "", 0},
                      {odd.c_str(), kAll, "", 0}};
  for (const Row& row : rows) {
    const auto info = store_->GetFirst(row.key, row.size_max, out);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->size_bytes, row.size);
    EXPECT_EQ(AsText(out), row.content);
  }
  EXPECT_EQ(store_->GetFirst("p/none", 4, out).error().code(), Code::kNotFound);
  const auto page = store_->List("p/", "");
  ASSERT_TRUE(page.ok()) << page.error().ToString();
  ASSERT_EQ(page->objects.size(), 2U);
  EXPECT_EQ(page->objects[0].key, odd);
  EXPECT_EQ(page->objects[1].size_bytes, 10U);
  EXPECT_EQ(page->prefixes, std::vector<std::string>{"p/sub/"});
  const std::vector<std::string> keys = {odd, "p/small", "p/never", "p/sub/x"};
  EXPECT_TRUE(store_->Delete(keys).ok());
  EXPECT_TRUE(store_->Delete(std::span(keys).first(1)).ok());
  EXPECT_TRUE(store_->List("p/", "")->objects.empty());
  EXPECT_EQ(stub().Count("DeleteObjects"), 1);
  EXPECT_EQ(store_->Put(std::string(1025, 'k'), {}).code(), Code::kInvalidArgument);
}

TEST_F(S3StoreTest, ListsMoreThanOnePage) {
  for (int i = 0; i < 1003; ++i) ASSERT_TRUE(store_->Put("many/" + std::to_string(i), {}).ok());
  const auto first = store_->List("many/", "");
  ASSERT_EQ(first->objects.size(), 1000U);
  const auto second = store_->List("many/", first->next);
  EXPECT_EQ(second->objects.size(), 3U);
  EXPECT_EQ(second->next, "");
}

TEST_F(S3StoreTest, PutIfAbsentHasOneWinner) {
  ASSERT_TRUE(store_->PutIfAbsent("marker", AsBytes("one")).ok());
  EXPECT_EQ(store_->PutIfAbsent("marker", AsBytes("two")).code(), Code::kAlreadyExists);
  Bytes out;
  ASSERT_TRUE(store_->GetFirst("marker", 99, out).ok());
  EXPECT_EQ(AsText(out), "one");
  stub().Fault("PutObject", "not_implemented");
  EXPECT_EQ(store_->PutIfAbsent("other", AsBytes("x")).code(), Code::kUnsupported);
}

TEST_F(S3StoreTest, UploadsAndReadsInPieces) {
  const Bytes content = Pattern(13 * kMiB + 5);
  auto upload = store_->StartUpload("big").value();
  std::atomic<int> released = 0;
  for (std::size_t begin = 0; begin < content.size(); begin += store_->part_size_bytes()) {
    const auto part = ByteSpan(content).subspan(begin);
    const auto size = std::min<std::size_t>(part.size(), store_->part_size_bytes());
    ASSERT_TRUE(upload->Append(part.first(size), [&] { ++released; }).ok());
  }
  EXPECT_EQ(store_->Head("big").error().code(), Code::kNotFound);
  ASSERT_TRUE(upload->Complete().ok());
  EXPECT_EQ(released, 3);
  upload.reset();
  EXPECT_EQ(stub().Count("AbortMultipartUpload"), 0);

  const StoredObject info = store_->Head("big").value();
  Bytes all(content.size());
  Bytes end(3);
  Bytes none;
  const ObjectRange ranges[] = {{0, all}, {content.size() - 3, end}, {5, none}};
  ASSERT_TRUE(store_->GetRanges(info, ranges).ok());
  EXPECT_TRUE(all == content);
  EXPECT_EQ(end.back(), content.back());
  EXPECT_EQ(stub().Count("GetObject"), 15);  // 14 of 1 MiB or less, and one
}

TEST_F(S3StoreTest, RangesThatAreNotThere) {
  ASSERT_TRUE(store_->Put("k", AsBytes("0123456789")).ok());
  const StoredObject good = store_->Head("k").value();
  Bytes out(4);
  struct Row {
    StoredObject object;
    std::uint64_t offset;
    const char* fault;
    Code code;
    const char* text;
  };
  const Row rows[] = {
      {good, 8, "", Code::kIncomplete, "the object ends at 10, expected 12 bytes"},
      {good, 10, "", Code::kIncomplete, "the range exceeds the object"},
      {{"k", 10, "\"x\""}, 0, "", Code::kIo, "the object was replaced"},
      {{"k", 11, ""}, 0, "", Code::kIo, "the object has 10 bytes now, expected 11"},
      {{"none", 10, ""}, 0, "", Code::kNotFound, "404"},
      {good, 1, "no_range", Code::kUnsupported, "the server ignores ranges"},
      {good, 1, "shifted", Code::kIo, "expected bytes from 1"},
      {good, 1, "range=none", Code::kIo, "Content-Range \"none\", expected bytes from 1"},
      {good, 1, "range=bytes+*/10", Code::kIo, "Content-Range \"bytes */10\""},
      {good, 1, "resize=-1", Code::kIo, "answered 3 bytes, expected 4"},
      {good, 1, "resize=1", Code::kIo, "answered 4 bytes and more, expected 4"},
  };
  for (const Row& row : rows) {
    if (*row.fault != '\0') stub().Fault("GetObject", row.fault);
    const ObjectRange range{row.offset, out};
    const Status status = store_->GetRanges(row.object, {&range, 1});
    EXPECT_EQ(status.code(), row.code) << status.ToString();
    EXPECT_NE(status.ToString().find(row.text), std::string::npos) << status.ToString();
  }
}

// A server that answers otherwise than the protocol says.
TEST_F(S3StoreTest, AnswersThatContradictThemselves) {
  ASSERT_TRUE(store_->Put("k", AsBytes("0123456789")).ok());
  Bytes out;
  for (const char* const fault : {"silent", "range=bytes+1-4/10", "resize=-1"}) {
    stub().Fault("GetObject", fault);
    const Status status = store_->GetFirst("k", 4, out).status();
    EXPECT_EQ(status.code(), Code::kIo) << fault << " " << status.ToString();
    EXPECT_NE(status.ToString().find("s3://bucket/k"), std::string::npos) << status.ToString();
  }
  stub().Fault("HeadObject", "no_length");
  EXPECT_EQ(store_->Head("k").error().code(), Code::kIo);
  stub().Fault("ListObjectsV2", "no_key", 9);
  EXPECT_EQ(store_->List("", "").error().code(), Code::kIo) << "a listing of nothing is empty";
  stub().Heal();
  stub().Fault("ListObjectsV2", "garbage", 9);
  EXPECT_NE(store_->List("p/", "").error().ToString().find("s3://bucket/p/"), std::string::npos);
  stub().Heal();
  stub().Fault("ListMultipartUploads", "stuck", 9);
  EXPECT_EQ(store_->ListUploads("").error().code(), Code::kIo);
  for (const char* const fault : {"not_implemented_400", "status_501"}) {
    stub().Fault("PutObject", fault);
    const Status status = store_->PutIfAbsent("new", AsBytes("x"));
    EXPECT_EQ(status.code(), Code::kUnsupported) << fault;
    EXPECT_NE(status.message().find("conditional writes"), std::string::npos) << fault;
  }
}

TEST_F(S3StoreTest, KeysHave1024BytesAtMost) {
  const StoredObject from{"k", 5 * kGiB, ""};
  const std::string longest(1024, 'x');
  ASSERT_TRUE(store_->Put("k", AsBytes("x")).ok());
  ASSERT_TRUE(store_->Put(longest, AsBytes("x")).ok());
  EXPECT_TRUE(store_->Copy(from, "copy").ok()) << "of as much as one request may";
  const int before = stub().CountAll();
  for (const std::string& key : {std::string(), longest + "x"}) {
    EXPECT_EQ(store_->Put(key, AsBytes("x")).code(), Code::kInvalidArgument);
    EXPECT_EQ(store_->PutIfAbsent(key, AsBytes("x")).code(), Code::kInvalidArgument);
    EXPECT_EQ(store_->StartUpload(key).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(store_->Copy(from, key).error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(stub().CountAll(), before);
}

TEST_F(S3StoreTest, UploadsThatFail) {
  stub().Fault("UploadPart", "late_denied");
  stub().Fault("UploadPart", "later_quota");
  {
    const auto upload = store_->StartUpload("u").value();
    static_cast<void>(upload->Append(AsBytes("x"), [] {}));
    static_cast<void>(upload->Append(AsBytes("x"), [] {}));
    EXPECT_EQ(upload->Complete().code(), Code::kIo) << "the first error, not NoSpace";
  }
  stub().Heal();
  const auto whole = store_->StartUpload("whole").value();
  ASSERT_TRUE(whole->Append(AsBytes("x"), [] {}).ok());
  stub().Fault("CompleteMultipartUpload", "lost");
  stub().Fault("CompleteMultipartUpload", "reset", 99);
  EXPECT_TRUE(whole->Complete().ok()) << "it is there, though no answer says so";
  EXPECT_EQ(whole->Complete().code(), Code::kInvalidArgument) << "it has ended";
  stub().Heal();
  const auto left = store_->StartUpload("left").value();
  const UnfinishedUpload upload = store_->ListUploads("left")->front();
  stub().Fault("AbortMultipartUpload", "denied");
  EXPECT_EQ(store_->AbortUpload(upload).code(), Code::kIo);
}

TEST_F(S3StoreTest, UploadsThatEndEarly) {
  {
    auto upload = store_->StartUpload("u/left").value();
  }
  EXPECT_EQ(stub().Count("AbortMultipartUpload"), 1);
  auto empty = store_->StartUpload("u/empty").value();
  EXPECT_TRUE(empty->Complete().ok());
  EXPECT_EQ(store_->Head("u/empty")->size_bytes, 0U);

  std::vector<std::unique_ptr<ObjectUpload>> open;
  for (int i = 0; i < 5; ++i) open.push_back(store_->StartUpload("u/open").value());
  const auto uploads = store_->ListUploads("u/").value();
  ASSERT_EQ(uploads.size(), 5U);  // two a page
  EXPECT_EQ(uploads[0].begun_unix_s, 1767323045U);
  for (const UnfinishedUpload& each : uploads) EXPECT_TRUE(store_->AbortUpload(each).ok());
  EXPECT_TRUE(store_->AbortUpload(uploads[0]).ok());
  EXPECT_TRUE(store_->ListUploads("u/")->empty());
  int released = 0;
  ASSERT_TRUE(open[0]->Append(AsBytes("x"), [&] { ++released; }).ok());
  EXPECT_NE(open[0]->Complete().message().find("NoSuchUpload"), std::string::npos);
  EXPECT_FALSE(open[0]->Append(AsBytes("x"), [&] { ++released; }).ok());
  EXPECT_EQ(released, 2);
}

TEST_F(S3StoreTest, AChildOfForkIsRefused) {
  const pid_t child = fork();
  if (child == 0) {
    const Status status = store_->Put("k", {});
    store_.reset();
    _exit(status.message().find("forked") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sealpoint
