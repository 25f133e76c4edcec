// SPDX-License-Identifier: Apache-2.0
// Every fault in every operation: right, or the named error.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "sealpoint/commit.h"
#include "sealpoint/s3.h"
#include "sealpoint/series.h"
#include "tests/support/object_store/stub.h"

namespace sealpoint {
namespace {

using Action = std::function<Status(ObjectStore&)>;

struct Deed {
  const char* name;  // of the request that the fault hits
  Action act;        // fails also if what it reads is wrong
  bool is_repeatable = true;
  bool has_body = false;  // of its answer
  bool is_xml = false;
};

Status Want(bool is_right) { return is_right ? Status() : Status(Code::kInternal, "wrong bytes"); }

Status UploadTwoParts(ObjectStore& store) {
  const Bytes part(5 * kMiB, std::byte{7});
  auto upload = store.StartUpload("up");
  if (!upload.ok()) return upload.error();
  for (int i = 0; i < 2; ++i) {
    if (Status status = (*upload)->Append(part, [] {}); !status.ok()) return status;
  }
  if (Status status = (*upload)->Complete(); !status.ok()) return status;
  const auto head = store.Head("up");
  return head.ok() ? Want(head->size_bytes == 10 * kMiB) : head.error();
}

Status ReadRange(ObjectStore& store) {
  Bytes out(6);
  const ObjectRange range{2, out};
  if (Status status = store.GetRanges({"there", 10, ""}, {&range, 1}); !status.ok()) return status;
  return Want(AsText(out) == "234567");
}

Status ListAll(ObjectStore& store) {
  const auto page = store.List("", "");
  return page.ok() ? Want(page->objects.size() == 3) : page.error();
}

Status HeadThere(ObjectStore& store) {
  const auto head = store.Head("there");
  return head.ok() ? Want(head->size_bytes == 10) : head.error();
}

const std::vector<Deed>& Deeds() {
  static const std::vector<std::string> one = {"there"};
  static const std::vector<std::string> two = {"there", "there2"};
  static const std::vector<Deed> deeds = {
      {"PutObject", [](ObjectStore& s) { return s.Put("new", AsBytes("0123456789")); }},
      {"PutObject", [](ObjectStore& s) { return s.PutIfAbsent("new", AsBytes("0123456789")); },
       false},
      {"GetObject", ReadRange, true, true},
      {"GetObject",
       [](ObjectStore& s) {
         Bytes out;
         const auto info = s.GetFirst("there", 100, out);
         return info.ok() ? Want(AsText(out) == "0123456789") : info.error();
       },
       true, true},
      {"HeadObject", HeadThere},
      {"ListObjectsV2", ListAll, true, true, true},
      {"DeleteObject", [](ObjectStore& s) { return s.Delete(one); }},
      {"DeleteObjects", [](ObjectStore& s) { return s.Delete(two); }, true, true, true},
      {"CreateMultipartUpload", UploadTwoParts, true, true, true},
      {"UploadPart", UploadTwoParts},
      {"CompleteMultipartUpload", UploadTwoParts, true, true, true},
      {"ListMultipartUploads", [](ObjectStore& s) { return s.ListUploads("").status(); }, true,
       true, true},
  };
  return deeds;
}

class S3FaultsTest : public ::testing::Test {
 protected:
  static testing::StubServer& stub() {
    static testing::StubServer server;
    return server;
  }
  void Prepare() {
    stub().Reset();
    for (const char* key : {"there", "there2", "there3"}) {
      ASSERT_TRUE(store_->Put(key, AsBytes("0123456789")).ok());
    }
  }
  std::shared_ptr<ObjectStore> store_ = stub().Store();
};

// Two in a row: nothing of it is seen, but by a conditional put whose effect is unknown.
TEST_F(S3FaultsTest, WhatPasses) {
  struct Row {
    const char* fault;
    bool is_unknown;  // whether the server did it
    bool needs_body = false;
    bool needs_xml = false;
    bool needs_code = false;  // which an answer to HEAD has no room for
  };
  const Row rows[] = {
      {"slowdown", false},   {"too_many", false}, {"conflict", false, false, false, true},
      {"internal", true},    {"reset", true},     {"lost", true},
      {"short", true, true}, {"cut", true, true}, {"ok_error", true, true, true}};
  for (const Row& row : rows) {
    for (const Deed& deed : Deeds()) {
      const bool is_head = std::string_view(deed.name) == "HeadObject";
      if (row.needs_code && is_head) continue;
      if ((row.needs_body && !deed.has_body) || (row.needs_xml && !deed.is_xml)) continue;
      Prepare();
      const int before = stub().Count(deed.name);
      stub().Fault(deed.name, row.fault, 2);
      const Status status = deed.act(*store_);
      const int asked = stub().Count(deed.name) - before;
      if (deed.is_repeatable || !row.is_unknown) {
        EXPECT_TRUE(status.ok()) << row.fault << " " << deed.name << " " << status.ToString();
        EXPECT_GE(asked, 2) << row.fault << " " << deed.name;
        continue;
      }
      EXPECT_EQ(status.code(), Code::kIo) << row.fault << " " << deed.name;
      EXPECT_TRUE(status.has_unknown_outcome()) << row.fault << " " << status.ToString();
      EXPECT_EQ(asked, 1) << row.fault;  // never twice
    }
  }
}

// Without end: an error that says what to do.
TEST_F(S3FaultsTest, WhatStays) {
  struct Row {
    const char* fault;
    Code code;
    const char* text;  // HEAD has no body that would say the rest
    const char* text_of_head;
  };
  const Row rows[] = {
      {"slowdown", Code::kIo, "lower S3Options::requests_in_flight_max", "lower S3Options"},
      {"internal", Code::kIo, "InternalError", "500"},
      {"reset", Code::kIo, "127.0.0.1", "127.0.0.1"},
      {"denied", Code::kIo, "the credentials must allow s3:", "must allow s3:GetObject"},
      {"no_bucket", Code::kIo, "check the bucket's name", "404"},
      {"region", Code::kIo, "is in region eu-west-1, asked was us-east-1", "eu-west-1"},
      {"region_header", Code::kIo, "is in region eu-west-1, asked was us-east-1", "eu-west-1"},
      {"skew", Code::kIo, "shows 20200101T000000Z, the server's 2026-01-02T03:04:05Z", "403"},
      {"key_too_long", Code::kInvalidArgument, "take a shorter path", "400"},
      {"quota", Code::kNoSpace, "server is full", "server is full"},
      {"bad_key", Code::kIo, "does not know this access key", "403"},
      {"expired", Code::kIo, "log in again or renew", "400"},
      {"not_implemented", Code::kUnsupported, "", "does not offer"},
  };
  for (const Row& row : rows) {
    for (const Deed& deed : Deeds()) {
      Prepare();
      stub().Fault(deed.name, row.fault, 1000);
      const Status status = deed.act(*store_);
      const bool is_head = std::string_view(deed.name) == "HeadObject";
      EXPECT_FALSE(status.ok()) << row.fault << " " << deed.name;
      EXPECT_NE(status.ToString().find(is_head ? row.text_of_head : row.text), std::string::npos)
          << row.fault << " " << deed.name << " " << status.ToString();
      EXPECT_NE(status.ToString().find("s3://bucket"), std::string::npos) << status.ToString();
      if (!is_head) EXPECT_EQ(status.code(), row.code) << row.fault << " " << status.ToString();
    }
  }
}

TEST_F(S3FaultsTest, AnswersThatAreNone) {
  for (const Deed& deed : Deeds()) {
    if (!deed.is_xml) continue;
    Prepare();
    stub().Fault(deed.name, "garbage", 1000);
    const Status status = deed.act(*store_);
    EXPECT_EQ(status.code(), Code::kIo) << deed.name << " " << status.ToString();
  }
  Prepare();
  stub().Fault("DeleteObjects", "locked");
  const std::vector<std::string> keys = {"there", "there2"};
  EXPECT_NE(store_->Delete(keys).message().find("DeleteObjects left there: AccessDenied"),
            std::string::npos);
}

// An answer that stays away for three seconds: by the rate, and by the deadline of a request.
TEST_F(S3FaultsTest, SlowAnswersAreGivenUp) {
  S3Options by_rate = stub().Options();
  by_rate.low_speed_bytes_per_s = 1000;
  by_rate.low_speed_time = std::chrono::seconds(1);
  S3Options by_deadline = stub().Options();
  by_deadline.request_deadline = std::chrono::milliseconds(1000);
  for (S3Options options : {by_rate, by_deadline}) {
    Prepare();
    stub().Fault("GetObject", "slow");
    const auto store = S3Store("bucket", options).value();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(ReadRange(*store).ok());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2900));
    EXPECT_EQ(stub().Count("GetObject"), 2);
    options.retries_max = 0;
    stub().Fault("GetObject", "slow");
    const Status status = ReadRange(*S3Store("bucket", options).value());
    EXPECT_NE(status.message().find("GetObject at http://127.0.0.1"), std::string::npos);
  }
}

// However often it may be repeated, and as slow as each try may be.
TEST_F(S3FaultsTest, TriesEndTogether) {
  Prepare();
  S3Options options = stub().Options();
  options.request_deadline = std::chrono::milliseconds(500);
  options.retries_max = 1000;
  const auto store = S3Store("bucket", options).value();
  stub().Fault("GetObject", "slow", 1000);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ReadRange(*store).code(), Code::kIo);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2900));
}

TEST_F(S3FaultsTest, AListingWithoutEndIsGivenUp) {
  Prepare();
  const auto storage = ObjectStorage(store_).value();
  stub().Fault("ListObjectsV2", "endless", 1000);
  const auto directory = storage->OpenDirectory("s3://bucket");
  ASSERT_TRUE(directory.ok()) << directory.status().ToString();
  const auto listed = (*directory)->List();
  EXPECT_EQ(listed.status().code(), Code::kIo);
  EXPECT_NE(listed.status().message().find("the listing returned the same page twice"),
            std::string::npos);
  EXPECT_LT(stub().Count("ListObjectsV2"), 6);
}

TEST_F(S3FaultsTest, AFailedUploadIsAborted) {
  for (const char* operation : {"UploadPart", "CompleteMultipartUpload"}) {
    Prepare();
    stub().Fault(operation, "denied", 1000);
    EXPECT_FALSE(UploadTwoParts(*store_).ok());
    EXPECT_EQ(stub().Count("AbortMultipartUpload"), 1) << operation;
    EXPECT_TRUE(store_->ListUploads("")->empty()) << operation;
  }
}

TEST_F(S3FaultsTest, ALostReplyOfCompleteIsLookedFor) {
  Prepare();
  stub().Fault("CompleteMultipartUpload", "lost");
  EXPECT_TRUE(UploadTwoParts(*store_).ok());
  EXPECT_EQ(stub().Count("CompleteMultipartUpload"), 2);
  EXPECT_EQ(stub().Count("HeadObject"), 2);  // one of them of the test
  // Another object of that name does not count.
  Prepare();
  ASSERT_TRUE(store_->Put("up", AsBytes("other")).ok());
  stub().Fault("CompleteMultipartUpload", "reset", 1000);
  const Status status = UploadTwoParts(*store_);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_FALSE(status.has_unknown_outcome()) << "of a key that is given up: " << status.ToString();
  EXPECT_EQ(stub().Count("AbortMultipartUpload"), 1);
}

// Each request of it fails, once and for ever, with and without effect (R-CMT-06).
TEST_F(S3FaultsTest, AVoidMarkerIsThereOrNotAndSaysSo) {
  const auto storage = ObjectStorage(store_).value();
  for (const std::string operation : {"PutObject", "GetObject", "ListObjectsV2", "DeleteObject"}) {
    for (const char* fault : {"slowdown", "conflict", "denied", "internal", "reset", "lost"}) {
      for (const int times : {1, 1000}) {
        // Two of the probe, and then that of the marker.
        for (int skip = 0; skip < (operation == "PutObject" ? 3 : 1); ++skip) {
          stub().Reset();
          ASSERT_TRUE(store_->Put("run/a/" + std::string(32, '1') + ".blob", {}).ok());
          stub().Fault(operation, fault, times, skip);
          const Status status = PublishVoidMarker(*storage, "s3://bucket/run/a");
          stub().Heal();
          SCOPED_TRACE(std::string(fault) + " of " + operation + " " + std::to_string(skip) + ": " +
                       status.ToString());
          Bytes marker;
          const bool is_there = store_->GetFirst("run/a/COMMIT", 512, marker).ok();
          if (OutcomeIsUnknown(status)) {
            EXPECT_EQ(times, 1000);
            EXPECT_EQ(skip, 2) << "none but those of the marker";
          } else {
            EXPECT_EQ(status.ok(), is_there);
          }
          if (is_there) EXPECT_TRUE(Series("s3://bucket/run", storage).List()->entries[0].is_void);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sealpoint
