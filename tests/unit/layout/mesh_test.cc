// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "sealpoint/placement.h"

namespace sealpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Mesh, NumbersRanksWithTheLastAxisFastest) {
  const Mesh mesh = Mesh::Create({{"data", 2}, {"pipeline", 3}, {"tensor", 4}}).value();
  EXPECT_EQ(mesh.size(), 24);
  EXPECT_THAT(mesh.CoordinatesOf(0).value(), ElementsAre(0, 0, 0));
  EXPECT_THAT(mesh.CoordinatesOf(1).value(), ElementsAre(0, 0, 1));
  EXPECT_THAT(mesh.CoordinatesOf(4).value(), ElementsAre(0, 1, 0));
  EXPECT_THAT(mesh.CoordinatesOf(23).value(), ElementsAre(1, 2, 3));
}

TEST(Mesh, CoordinatesAndRanksAreInverse) {
  const Mesh mesh = Mesh::Create({{"a", 3}, {"b", 1}, {"c", 5}}).value();
  for (int rank = 0; rank < mesh.size(); ++rank) {
    EXPECT_EQ(mesh.RankAt(mesh.CoordinatesOf(rank).value()).value(), rank);
  }
}

TEST(Mesh, WithoutAxesIsOneRank) {
  EXPECT_EQ(Mesh().size(), 1);
  EXPECT_TRUE(Mesh().CoordinatesOf(0).value().empty());
  EXPECT_EQ(Mesh().RankAt({}).value(), 0);
}

TEST(Mesh, FindsAxesByName) {
  const Mesh mesh = Mesh::Create({{"data", 2}, {"tensor", 4}}).value();
  EXPECT_EQ(mesh.Find("tensor"), 1u);
  EXPECT_EQ(mesh.Find("expert"), std::nullopt);
}

TEST(Mesh, HasAsManyRanksAsAnIntCounts) {
  EXPECT_TRUE(Mesh::Create({{"a", 2147483647u}}).ok());
  EXPECT_FALSE(Mesh::Create({{"a", 2147483648u}}).ok());
}

TEST(Mesh, RefusesWhatIsNoMesh) {
  EXPECT_THAT(Mesh::Create({{"", 2}}).error().message(), HasSubstr("no name"));
  EXPECT_THAT(Mesh::Create({{"a", 2}, {"a", 2}}).error().message(), HasSubstr("two axes"));
  EXPECT_THAT(Mesh::Create({{"a", 0}}).error().message(), HasSubstr("size 0"));
  EXPECT_EQ(Mesh::Create({{"a", 1u << 16}, {"b", 1u << 15}}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Mesh::Create({{"a", ~0u}, {"b", ~0u}, {"c", ~0u}}).error().code(),
            Code::kInvalidArgument);
}

TEST(Mesh, ReadsWhatAPersonWrites) {
  EXPECT_EQ(Mesh::Parse("data=2,tensor=4").value(),
            Mesh::Create({{"data", 2}, {"tensor", 4}}).value());
  EXPECT_EQ(Mesh::Parse("x=1").value().size(), 1);
}

TEST(Mesh, RefusesTextThatIsNoMesh) {
  for (const char* const text : {"", "data", "data=", "=", "data=2,", ",data=2", "data=-2",
                                 "data=2x", "data=4294967296", "data= 2", "data =2", "a(b)=2"}) {
    EXPECT_THAT(Mesh::Parse(text).error().message(), HasSubstr("such as data=2")) << text;
  }
  EXPECT_THAT(Mesh::Parse("=2").error().message(), HasSubstr("no name"));
  EXPECT_THAT(Mesh::Parse("data=0").error().message(), HasSubstr("size 0"));
  EXPECT_THAT(Mesh::Parse("data=2,data=2").error().message(), HasSubstr("two axes"));
}

TEST(Mesh, RefusesRanksAndCoordinatesOutsideOfIt) {
  const Mesh mesh = Mesh::Create({{"a", 2}, {"b", 3}}).value();
  EXPECT_FALSE(mesh.CoordinatesOf(-1).ok());
  EXPECT_FALSE(mesh.CoordinatesOf(6).ok());
  EXPECT_FALSE(mesh.RankAt(std::vector<std::uint32_t>{1}).ok());
  EXPECT_FALSE(mesh.RankAt(std::vector<std::uint32_t>{0, 0, 0}).ok());
  EXPECT_FALSE(mesh.RankAt(std::vector<std::uint32_t>{0, 3}).ok());
}

}  // namespace
}  // namespace sealpoint
