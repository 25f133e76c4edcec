// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "lib/s3/answer.h"
#include "lib/s3/listing.h"
#include "lib/s3/object_read.h"
#include "lib/s3/xml_reader.h"

namespace sealpoint::internal::s3 {
namespace {

TEST(S3Xml, RefusesWhatNoServerSends) {
  std::string deep;
  for (int i = 0; i < 17; ++i) deep += "<a>";
  struct Row {
    std::string document;
    const char* error;
  };
  const Row rows[] = {
      {"", "not XML"},
      {"<a>", "not XML"},
      {"<a></b>", "not XML"},
      {deep, "deeper than 16"},
      {"<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>", "a DOCTYPE"},
      {std::string("<a>\0</a>", 8), "not XML"},
  };
  for (const Row& row : rows) {
    const Status status = ReadXml(row.document, [](std::string_view, const std::string&) {});
    EXPECT_NE(status.message().find(row.error), std::string::npos) << status.ToString();
  }
  std::string seen;
  EXPECT_TRUE(ReadXml("<n:a xmlns:n='x'>1<b>&lt;</b>2</n:a>", [&](std::string_view path,
                                                                  const std::string& text) {
                seen += std::string(path) + "=" + text + ";";
              }).ok());
  EXPECT_EQ(seen, "a/b=<;a=12;");
}

TEST(S3Listing, Pages) {
  const auto page = ParseObjectPage(
      "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken>"
      "<Contents><Key>p%2Fb</Key><ETag>e</ETag><Size>7</Size></Contents>"
      "<Contents><Key>p%2Fa</Key><Size>0</Size></Contents>"
      "<CommonPrefixes><Prefix>p%2Fc/</Prefix></CommonPrefixes></ListBucketResult>");
  EXPECT_EQ(page->objects, (std::vector<StoredObject>{{"p/a", 0, ""}, {"p/b", 7, "e"}}));
  EXPECT_EQ(page->prefixes, (std::vector<std::string>{"p/c/"}));
  EXPECT_EQ(page->next, "t");
  struct Row {
    const char* inside;
    const char* error;
  };
  const Row rows[] = {
      {"<Contents><Key>k</Key></Contents>", "size \"nothing\""},
      {"<Contents><Key>k</Key><Size>-1</Size></Contents>", "size \"-1\""},
      {"<Contents><Key>k</Key><Size>99999999999999999999</Size></Contents>", "expected a number"},
      {"<IsTruncated>true</IsTruncated>",
       "ListObjectsV2 answered IsTruncated without NextContinuationToken"},
  };
  for (const Row& row : rows) {
    const auto bad =
        ParseObjectPage("<ListBucketResult>" + std::string(row.inside) + "</ListBucketResult>");
    EXPECT_NE(bad.error().message().find(row.error), std::string::npos) << bad.error().ToString();
  }
  const std::string more = "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>";
  EXPECT_FALSE(ParseUploadPage(more + "</ListMultipartUploadsResult>").ok());
  EXPECT_TRUE(
      ParseUploadPage(more + "<NextKeyMarker>k</NextKeyMarker></ListMultipartUploadsResult>").ok());
  EXPECT_FALSE(ParseObjectPage("<Error/>").ok());
  EXPECT_FALSE(ParseUploadPage("<Error/>").ok());
  EXPECT_FALSE(ParseDeleteAnswer("<Error/>").ok());
}

TEST(S3Ranges, ContentRange) {
  const auto good = ParseContentRange("bytes 1-2/3");
  EXPECT_TRUE(good && good->first == 1U && good->last == 2U && good->total == 3U);
  EXPECT_TRUE(ParseContentRange("bytes */3")->total == 3U);
  EXPECT_FALSE(ParseContentRange("bytes 1-2/*")->total);
  EXPECT_TRUE(ParseContentRange("bytes 2-2/3")->last == 2U);
  for (const char* bad :
       {"", "bytes", "bytes 1-2", "bytes 2-1/3", "bytes -1/3", "bytes x-1/3", "bytes 1-/3",
        "bytes 1-2x/3", "bytes 12/3", "bytes 0-18446744073709551615/3", "lines 1-2/3"}) {
    EXPECT_FALSE(ParseContentRange(bad)) << bad;
  }
}

TEST(S3Answers, AGoodOneArrivedWithAStatusOfSuccess) {
  for (const int status : {100, 199, 200, 204, 299, 300, 404}) {
    EXPECT_EQ(HttpReply{.status = status}.is_good(), status >= 200 && status <= 299) << status;
    EXPECT_FALSE((HttpReply{.transport = Transport::kAmbiguous, .status = status}.is_good()));
  }
}

TEST(S3Answers, AnotherRegionOrEndpointIsAdvised) {
  const Settings settings = MakeSettings("bucket", {.region = "us-east-1"}).value();
  struct Row {
    int status;
    const char* code;
    const char* region;
    bool is_elsewhere;
  };
  const Row rows[] = {{299, "Other", "", false},
                      {300, "Other", "", true},
                      {399, "Other", "", true},
                      {400, "Other", "", false},
                      {400, "IncorrectEndpoint", "", true},
                      {400, "Other", "eu-west-1", true},
                      {403, "Other", "eu-west-1", false}};
  for (const Row& row : rows) {
    const Status status =
        AnswerError(settings, {"GetObject", "s3:GetObject"}, "k", HttpReply{.status = row.status},
                    {.code = row.code, .region = row.region});
    EXPECT_EQ(status.message().find("the bucket is in ") != std::string::npos, row.is_elsewhere)
        << row.status << " " << row.code << " " << status.ToString();
  }
}

}  // namespace
}  // namespace sealpoint::internal::s3
