// SPDX-License-Identifier: Apache-2.0
//
// Makes the checkpoints on which the tools are tested, in the directory that the argument names:
// good/ (two blobs, a bit of everything), meshed/ (four ranks with placements), series/ (three
// committed, one not), forked/ (two that went on from one), unsupported/ (good/ with an unknown
// feature in its marker), values/ (a tensor of every dtype, with known values), coded/ (codecs, and
// 50 small chunks in one blob), names/ (names that are wide, or do something to a terminal), odd/
// (a name that some expressions match in too many ways, values whose sum is no double) and boxes/
// (more boxes than a reader's limits allow).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "sealpoint/placement.h"
#include "sealpoint/series.h"
#include "tests/cli/take.h"
#include "tests/support/container/format_surgery.h"

namespace {

using namespace sealpoint;  // a program of one file

AttemptId FixedId(unsigned value) {
  AttemptId id;
  id.bytes.fill(static_cast<std::byte>(value));
  return id;
}

std::vector<std::byte> Ramp(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

class Maker {
 public:
  Maker(Engine& engine, std::string path, AttemptId attempt, std::uint64_t step)
      : engine_(engine), path_(std::move(path)), attempt_(attempt), step_(step) {
    Check(engine_.storage().CreateDirectories(path_));
  }

  std::unique_ptr<BlobWriter> Writer(const Limits& limits = {}) {
    return Take(
        BlobWriter::Create(engine_, path_, {.attempt = attempt_, .step = step_, .limits = limits}));
  }
  void Finish(std::unique_ptr<BlobWriter> writer) {
    for (BlobSummary& summary : Take(writer->Finish())) summaries_.push_back(std::move(summary));
  }
  static void Add(BlobWriter& writer, const TensorSpec& tensor, const Region& region) {
    const std::uint64_t size = region.element_count() * DTypeSizeBytes(tensor.dtype);
    const std::vector<std::byte> bytes = Ramp(size);
    Check(writer.Add(tensor, region, MemoryView::Host(bytes)));
  }
  CommitInfo Commit(CommitOptions options) {
    options.attempt = attempt_;
    options.step = step_;
    return Take(sealpoint::Commit(engine_.storage(), path_, options, summaries_));
  }

 private:
  Engine& engine_;
  const std::string path_;
  const AttemptId attempt_;
  const std::uint64_t step_;
  std::vector<BlobSummary> summaries_;
};

void MakeGood(Engine& engine, const std::string& path) {
  Maker maker(engine, path, FixedId(0x11), 42);
  const TensorSpec embedding{.name = "embedding.weight",
                             .dtype = DType::kBf16,
                             .shape = {256, 64},
                             .placement = {"tensor: shard dim 0"}};
  auto first = maker.Writer();
  maker.Add(*first, embedding, Region::Of({{0, 0}, {128, 64}}));
  for (const int layer : {0, 1, 2, 10}) {
    const std::string prefix = "layers." + std::to_string(layer);
    maker.Add(*first, {.name = prefix + ".weight", .dtype = DType::kF32, .shape = {64, 16}},
              Region::Whole({64, 16}));
    maker.Add(*first, {.name = prefix + ".bias", .dtype = DType::kF32, .shape = {64}},
              Region::Whole({64}));
  }
  Check(first->AddEmpty({.name = "head.unused", .dtype = DType::kF16, .shape = {0, 8}}));
  maker.Finish(std::move(first));

  auto second = maker.Writer();
  maker.Add(*second, embedding, Region::Of({{128, 0}, {128, 64}}));
  maker.Add(*second,
            {.name = "optimizer.a_name_that_is_much_longer_than_its_column.exp_avg",
             .dtype = DType::kF64,
             .shape = {4096}},
            Region::Whole({4096}));
  Check(second->AddObject({.name = "rng", .media_type = "application/octet-stream"}, Ramp(100)));
  Check(second->AddObject({.name = "arguments", .media_type = "application/json"}, AsBytes("{}")));
  maker.Finish(std::move(second));
  maker.Commit({.mesh = {{"tensor", 2}}, .provenance = {{"framework", "cli test"}}});
}

// As a job on 2 x 2 ranks saves it: weights cut over "tensor", the flat moments over "data" too.
void MakeMeshed(Engine& engine, const std::string& path) {
  Maker maker(engine, path, FixedId(0x31), 7);
  const Mesh mesh = Take(Mesh::Create({{"data", 2}, {"tensor", 2}}));
  const Shard columns{.dim = 0, .axis = "tensor", .rule = SplitRule::kEven};
  const Shard rows{.dim = 1, .axis = "tensor", .rule = SplitRule::kEven};
  const ShardFlat flat{.axes = {"data"}};
  const std::vector<std::pair<TensorSpec, Placement>> tensors = {
      {{.name = "layer.0.weight", .dtype = DType::kF32, .shape = {96, 64}},
       {columns, Replicate{"data"}}},
      {{.name = "layer.1.weight", .dtype = DType::kF32, .shape = {64, 96}},
       {rows, Replicate{"data"}}},
      {{.name = "layer.1.bias", .dtype = DType::kF32, .shape = {64}},
       {Replicate{"tensor"}, Replicate{"data"}}},
      {{.name = "moment.layer.0.weight", .dtype = DType::kF32, .shape = {96, 64}}, {columns, flat}},
      {{.name = "moment.layer.1.weight", .dtype = DType::kF32, .shape = {64, 96}}, {rows, flat}},
  };
  for (int rank = 0; rank < mesh.size(); ++rank) {
    auto writer = maker.Writer();
    for (auto [spec, placement] : tensors) {
      spec.placement = ToStrings(placement);
      spec.chunk_size_bytes = 4 * kKiB;
      const LocalLayout layout = Take(PlaceTensor(mesh, rank, spec.shape, placement));
      if (layout.replicas.front() != rank) continue;
      for (const LocalPart& part : layout.parts) maker.Add(*writer, spec, part.region);
    }
    maker.Finish(std::move(writer));
  }
  maker.Commit({.mesh = mesh.axes()});
}

// One of the checkpoints of a series, to be committed.
Maker InSeries(Engine& engine, const std::string& path, unsigned id, std::uint64_t step) {
  const AttemptId attempt = FixedId(id);
  Maker maker(engine, JoinPath(path, SeriesDirectoryName(step, attempt)), attempt, step);
  auto writer = maker.Writer();
  maker.Add(*writer, {.name = "w", .dtype = DType::kF32, .shape = {1000}}, Region::Whole({1000}));
  maker.Finish(std::move(writer));
  return maker;
}

void MakeSeries(Engine& engine, const std::string& path) {
  std::optional<ParentRef> parent;
  for (const unsigned number : {1u, 2u, 3u, 4u}) {
    Maker maker = InSeries(engine, path, 0x20 + number, std::uint64_t{100} * number);
    constexpr unsigned kNeverCommitted = 4;
    if (number != kNeverCommitted) parent = maker.Commit({.parent = parent}).as_parent();
  }
}

void MakeForked(Engine& engine, const std::string& path) {
  const ParentRef parent = InSeries(engine, path, 0x61, 100).Commit({}).as_parent();
  for (const unsigned id : {0x62u, 0x63u}) {
    InSeries(engine, path, id, 200).Commit({.parent = parent});
  }
}

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

void AddWhole(BlobWriter& writer, const TensorSpec& tensor, const std::vector<std::byte>& bytes) {
  Check(writer.Add(tensor, Region::Whole(tensor.shape), MemoryView::Host(bytes)));
}

// The bits are those of each format's own definition.
void MakeValues(Engine& engine, const std::string& path) {
  Maker maker(engine, path, FixedId(0x41), 1);
  auto writer = maker.Writer();
  using Limits64 = std::numeric_limits<std::int64_t>;
  const auto add = [&](std::string name, DType dtype, Shape shape, const auto& values) {
    AddWhole(*writer, {.name = std::move(name), .dtype = dtype, .shape = std::move(shape)},
             BytesOf(values));
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  using Bytes8 = std::vector<std::uint8_t>;
  using Bytes16 = std::vector<std::uint16_t>;
  add("bool", DType::kBool, {3}, Bytes8{0, 1, 2});
  add("i8", DType::kInt8, {2}, Bytes8{0x80, 0x7f});
  add("i16", DType::kInt16, {1}, Bytes16{0x8000});
  add("i32", DType::kInt32, {1}, std::vector<std::int32_t>{-70000});
  add("i64", DType::kInt64, {2}, std::vector<std::int64_t>{Limits64::min(), Limits64::max()});
  add("u8", DType::kUInt8, {1}, Bytes8{255});
  add("u16", DType::kUInt16, {1}, Bytes16{65535});
  add("u32", DType::kUInt32, {1}, std::vector<std::uint32_t>{4'000'000'000});
  add("u64", DType::kUInt64, {1}, std::vector<std::uint64_t>{UINT64_MAX});
  add("f16", DType::kF16, {3}, Bytes16{0x3c00, 0xc500, 0x7c00});
  add("bf16", DType::kBf16, {3}, Bytes16{0x3f80, 0xc0a0, 0x3dcd});
  add("f32", DType::kF32, {5}, std::vector<float>{0.1F, -0.0F, kInfinity, -kInfinity, -kNan});
  add("f64", DType::kF64, {}, std::vector<double>{0.1});
  add("c32", DType::kComplex32, {2}, Bytes16{0x3e00, 0xc000, 0, 0x7c00});
  add("c64", DType::kComplex64, {2}, std::vector<float>{1.5F, -2, 0, kInfinity});
  add("c128", DType::kComplex128, {1}, std::vector<double>{0.1, 2});
  add("f8_e4m3fn", DType::kF8E4M3Fn, {3}, Bytes8{0x38, 0xfe, 0x7f});
  add("f8_e5m2", DType::kF8E5M2, {3}, Bytes8{0x3c, 0xfb, 0x7c});
  add("f8_e4m3fnuz", DType::kF8E4M3Fnuz, {2}, Bytes8{0x40, 0x80});
  add("f8_e5m2fnuz", DType::kF8E5M2Fnuz, {2}, Bytes8{0x40, 0x80});
  add("f8_e8m0fnu", DType::kF8E8M0Fnu, {3}, Bytes8{0x7f, 0x00, 0xff});
  add("f4_e2m1x2", DType::kF4E2M1X2, {2}, Bytes8{0xf1, 0x2c});
  AddWhole(*writer, {.name = "unknown", .dtype = DType{300}, .shape = {2}, .element_size = 4},
           BytesOf(std::vector<std::uint32_t>{0x01020304, 0xff}));
  std::vector<std::int32_t> ramp(3 * 4 * 50);
  std::iota(ramp.begin(), ramp.end(), 0);
  add("ramp", DType::kInt32, {3, 4, 50}, ramp);
  Check(writer->AddEmpty({.name = "empty", .dtype = DType::kF32, .shape = {0, 8}}));
  Check(writer->AddObject({.name = "arguments", .media_type = "application/json"},
                          AsBytes("{\"lr\": 0.1}\n")));
  Check(writer->AddObject({.name = "rng", .media_type = "application/octet-stream"}, Ramp(300)));
  Check(writer->AddObject({.name = "rng.cuda", .media_type = "application/octet-stream"}, Ramp(3)));
  maker.Finish(std::move(writer));
  maker.Commit({});
}

void MakeCoded(Engine& engine, const std::string& path) {
  Maker maker(engine, path, FixedId(0x51), 1);
  constexpr std::uint64_t kCount = 50 * kKiB;  // f32, so 50 chunks of 4 KiB
  auto writer = maker.Writer();
  AddWhole(*writer,
           {.name = "plain", .dtype = DType::kF32, .shape = {kCount}, .chunk_size_bytes = 4 * kKiB},
           Ramp(4 * kCount));
  AddWhole(
      *writer,
      {.name = "zeros", .dtype = DType::kF32, .shape = {kCount}, .codec = Codec::kByteSplitZstd},
      std::vector<std::byte>(4 * kCount));
  // Its second chunk cannot be made smaller.
  std::vector<std::byte> half(8 * kKiB);
  std::mt19937 random(1);
  std::generate(half.begin() + 4 * kKiB, half.end(),
                [&] { return static_cast<std::byte>(random() & 0xff); });
  AddWhole(*writer,
           {.name = "half",
            .dtype = DType::kF32,
            .shape = {2 * kKiB},
            .chunk_size_bytes = 4 * kKiB,
            .codec = Codec::kZstd},
           half);
  maker.Finish(std::move(writer));
  maker.Commit({});
}

void MakeNames(Engine& engine, const std::string& path) {
  Maker maker(engine, path, FixedId(0x61), 1);
  auto writer = maker.Writer();
  for (const char* const name :
       {"größe", "zebra", "apple", "重み.一", "重み.二", "e\u0301.x", "rtl\u202etxt", "🦭"}) {
    AddWhole(*writer, {.name = name, .dtype = DType::kF32, .shape = {4}}, Ramp(16));
  }
  Check(writer->AddObject({.name = "状態", .media_type = "text/plain"}, AsBytes("x")));
  maker.Finish(std::move(writer));
  maker.Commit({.provenance = {{"who", "a\u009b31m"}}});
}

void MakeUnsupported(const std::string& good, const std::string& directory) {
  std::filesystem::copy(good, directory);
  std::vector<char> marker(internal::format::kMarkerSize);
  std::fstream file(directory + "/COMMIT", std::ios::in | std::ios::out | std::ios::binary);
  file.read(marker.data(), static_cast<std::streamsize>(marker.size()));
  marker[internal::format::HeaderFields::kIncompat.at] = 1;
  testing::ResealMarker(std::as_writable_bytes(std::span(marker)));
  file.seekp(0).write(marker.data(), static_cast<std::streamsize>(marker.size()));
  if (!file) std::exit(1);
}

void MakeOdd(Engine& engine, const std::string& path) {
  Maker maker(engine, path, FixedId(0x71), 1);
  const std::vector<double> values(10, 1.7e308);
  const std::string name = std::string(40, 'a') + "b";
  auto writer = maker.Writer();
  Check(writer->Add({.name = name, .dtype = DType::kF64, .shape = {10}}, Region::Whole({10}),
                    MemoryView::Host(values)));
  maker.Finish(std::move(writer));
  maker.Commit({});
}

// Ragged: a row of single elements above a whole one is no grid.
void MakeBoxes(Engine& engine, const std::string& path) {
  constexpr std::uint64_t kColumns = 65536;
  const TensorSpec tensor{.name = "ragged", .dtype = DType::kUInt8, .shape = {2, kColumns}};
  Maker maker(engine, path, FixedId(0x72), 1);
  auto writer = maker.Writer(RaisedLimits(2));
  for (std::uint64_t column = 0; column < kColumns; ++column) {
    Maker::Add(*writer, tensor, Region::Of({{0, column}, {1, 1}}));
  }
  Maker::Add(*writer, tensor, Region::Of({{1, 0}, {1, kColumns}}));
  maker.Finish(std::move(writer));
  maker.Commit({.limits = RaisedLimits(2)});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const std::string directory = argv[1];
  const auto engine = Take(Engine::Create());
  MakeGood(*engine, directory + "/good");
  MakeMeshed(*engine, directory + "/meshed");
  MakeSeries(*engine, directory + "/series");
  MakeForked(*engine, directory + "/forked");
  MakeUnsupported(directory + "/good", directory + "/unsupported");
  MakeValues(*engine, directory + "/values");
  MakeCoded(*engine, directory + "/coded");
  MakeNames(*engine, directory + "/names");
  MakeOdd(*engine, directory + "/odd");
  MakeBoxes(*engine, directory + "/boxes");
  return 0;
}
