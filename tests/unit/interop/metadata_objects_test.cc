// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/metadata_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sealpoint::internal::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

NamedObject Object(const std::string& name, const std::string& media_type, std::string_view text) {
  const ByteSpan bytes = AsBytes(text);
  return {name, media_type, Bytes(bytes.begin(), bytes.end())};
}
NamedObject Tree(std::string_view text) {
  return Object("sealpoint.tree", "application/vnd.sealpoint.tree+json", text);
}
NamedObject Foreign(std::string_view text) {
  return Object("safetensors.metadata", "application/json", text);
}

constexpr std::string_view kFlat =
    R"({"a":{"$":"tensor","name":"a"},"b":{"$":"tensor","name":"b"}})";

TEST(MetadataObjects, ObjectsBecomeMetadata) {
  const auto metadata =
      MetadataOfObjects({Object("rng", "application/octet-stream", "foo"),
                         Foreign(R"({"x":"1","format":"np"})"), Tree(R"({"a":1})")},
                        {});
  ASSERT_TRUE(metadata.ok()) << metadata.error().ToString();
  EXPECT_THAT(*metadata,
              ElementsAre(Pair("format", "np"),
                          Pair("sealpoint.object.rng", R"(["application/octet-stream", "Zm9v"])"),
                          Pair("x", "1"), Pair("sealpoint.tree", R"({"a":1})")));
}

TEST(MetadataObjects, ATreeThatSaysNothingIsLeftOut) {
  const auto count = [](std::string_view tree, const std::vector<std::string_view>& tensors) {
    return MetadataOfObjects({Tree(tree)}, tensors).value().size();
  };
  EXPECT_EQ(count(kFlat, {"a", "b"}), 1);
  EXPECT_EQ(count(R"({"b":{"name":"b","$":"tensor"}, "a":{"$":"tensor","name":"a"}})", {"a", "b"}),
            1);
  EXPECT_EQ(count("{}", {}), 1);
  EXPECT_EQ(count(R"({"$":"dict","items":[["$",{"$":"tensor","name":"$"}]]})", {"$"}), 1);
  for (const char* const tree :
       {R"({"a":{"$":"tensor","name":"a"}})", R"({"a":{"$":"tensor","name":"a"},"b":1})",
        R"({"a":{"$":"tensor","name":"b"},"b":{"$":"tensor","name":"a"}})",
        R"({"a":{"$":"tensor","name":"a"},"b":{"$":"tensor","name":"b","x":"y"}})",
        R"({"a":{"$":"tensor","name":"a"},"b":{"$":"tensor"}})",
        R"({"a":{"$":"tensor","name":"a"},"b":{"$":"dict","name":"b"}})",
        R"({"a":{"$":"tensor","name":"a"},"b":{"$":"tensor","name":2}})",
        R"({"a":{"$":"tensor","name":"a"},"b":{"$":"tensor","name":"b"},"c":[]})", "[]"}) {
    EXPECT_EQ(count(tree, {"a", "b"}), 2) << tree;
  }
}

TEST(MetadataObjects, RefusesATreeThatIsNoJson) {
  const Status error = MetadataOfObjects({Tree("{")}, {}).status();
  EXPECT_EQ(error.code(), Code::kCorrupt);
  EXPECT_EQ(error.place().object, "sealpoint.tree");
}

TEST(MetadataObjects, RefusesForeignMetadataThatIsNone) {
  for (const char* const text : {"", "[]", R"({"a":1})", R"({"a":"b"}x)", R"({"a":"b","a":"c"})"}) {
    const Status error = MetadataOfObjects({Foreign(text)}, {}).status();
    EXPECT_EQ(error.code(), Code::kCorrupt) << text;
    EXPECT_EQ(error.place().object, "safetensors.metadata") << text;
  }
}

// Whatever names objects have, no key comes twice.
TEST(MetadataObjects, KeysAreUnique) {
  const auto metadata =
      MetadataOfObjects({Object("x", "a/b", "f"),
                         Foreign(R"({"sealpoint.object.x":"1","sealpoint.tree":"2"})"), Tree("[]")},
                        {});
  EXPECT_THAT(metadata.value(), ElementsAre(Pair("format", "pt"), Pair("sealpoint.object.x", "1"),
                                            Pair("sealpoint.tree", "[]")));
}

TEST(MetadataObjects, MetadataBecomesObjects) {
  const auto objects = ObjectsOfMetadata({{"format", "np"},
                                          {"x\"", "1"},
                                          {"sealpoint.object.rng", R"(["a/b", "Zm9v"])"},
                                          {"DCP_SHARDING_INFO", "{}"},
                                          {"DCP_VERSION", "1"}},
                                         {"a", "b"});
  ASSERT_TRUE(objects.ok()) << objects.error().ToString();
  EXPECT_THAT(*objects, ElementsAre(Object("rng", "a/b", "foo"),
                                    Foreign(R"({"format": "np", "x\"": "1"})"), Tree(kFlat)));
}

TEST(MetadataObjects, UsualMetadataIsNoObject) {
  EXPECT_THAT(ObjectsOfMetadata({{"format", "pt"}}, {}).value(), ElementsAre(Tree("{}")));
  EXPECT_THAT(ObjectsOfMetadata({}, {"$", "a"}).value(),
              ElementsAre(Tree(R"({"$":"dict","items":[["$",{"$":"tensor","name":"$"}],)"
                               R"(["a",{"$":"tensor","name":"a"}]]})")));
}

TEST(MetadataObjects, OfEqualKeysTheLastCounts) {
  EXPECT_THAT(
      ObjectsOfMetadata({{"format", "pt"}, {"a", "1"}, {"format", "pt"}, {"a", "2"}}, {}).value(),
      ElementsAre(Foreign(R"({"a": "2", "format": "pt"})"), Tree("{}")));
}

TEST(MetadataObjects, RefusesObjectsThatAreNone) {
  for (const char* const text : {"", "{}", "[]", R"(["a/b"])", R"(["a/b", "Zm9v", "x"])",
                                 R"(["a/b", "Zm9"])", R"([1, "Zm9v"])", R"(["a/b", "Zm9v"]x)"}) {
    const Status error = ObjectsOfMetadata({{"sealpoint.object.x", text}}, {}).status();
    EXPECT_EQ(error.code(), Code::kCorrupt) << text;
    EXPECT_EQ(error.place().object, "x") << text;
  }
  EXPECT_EQ(ObjectsOfMetadata({{"sealpoint.tree", "{"}}, {}).status().code(), Code::kCorrupt);
}

TEST(MetadataObjects, ComeBackAsTheyWere) {
  const std::vector<NamedObject> objects = {
      Object("r\u00e9", "text/pl\u00e9", std::string_view("\0\xff\x01", 3)),
      Foreign(R"({"format": "pt", "k": "v"})"), Tree(R"({"step":3})")};
  const auto again = ObjectsOfMetadata(MetadataOfObjects(objects, {}).value(), {});
  EXPECT_EQ(again.value(), objects);
}

}  // namespace
}  // namespace sealpoint::internal::interop
