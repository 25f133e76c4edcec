// SPDX-License-Identifier: Apache-2.0
// C++ and C in one process: each reads what the other wrote, and the two copies of the library, of
// which one is hidden in libsealpoint_c.so, do not meet.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "sealpoint.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint {
namespace {

sealpoint_string TextOf(std::string_view text) { return {text.data(), text.size()}; }

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

TEST(CInterop, CReadsWhatCppWrote) {
  const testing::TempDir directory;
  const auto engine = Engine::Create().value();
  const auto writer = BlobWriter::Create(*engine, directory.path()).value();
  const TensorSpec spec = {.name = "w", .dtype = DType::kF32, .shape = {2, 3}};
  ASSERT_TRUE(writer->Add(spec, Region::Whole(spec.shape), MemoryView::Host(kValues)).ok());
  const auto summaries = writer->Finish().value();
  ASSERT_TRUE(Commit(engine->storage(), directory.path(), {.step = 3}, summaries).ok());

  sealpoint_checkpoint* checkpoint = nullptr;
  sealpoint_dl_managed_tensor* array = nullptr;
  ASSERT_EQ(sealpoint_checkpoint_open(TextOf(directory.path()), nullptr, &checkpoint, nullptr),
            SEALPOINT_OK);
  ASSERT_EQ(
      sealpoint_checkpoint_read_dlpack(checkpoint, TextOf("w"), nullptr, nullptr, &array, nullptr),
      SEALPOINT_OK);
  sealpoint_checkpoint_free(checkpoint);
  const auto* values = static_cast<const float*>(array->dl_tensor.data);
  EXPECT_EQ(std::vector<float>(values, values + 6), kValues);
  array->deleter(array);
}

// Writes kValues as the tensor "w" with the C API.
void WriteWithC(const std::string& directory) {
  const std::uint64_t shape[] = {6};
  sealpoint_engine* engine = nullptr;
  sealpoint_blob_writer* writer = nullptr;
  sealpoint_summaries* summaries = nullptr;
  sealpoint_tensor_spec spec;
  sealpoint_source source;
  sealpoint_init(&spec, sizeof(spec));
  sealpoint_init(&source, sizeof(source));
  spec.name = TextOf("w");
  spec.dtype = SEALPOINT_DTYPE_F32;
  spec.shape = shape;
  spec.ndim = 1;
  spec.codec = SEALPOINT_CODEC_BYTE_SPLIT_ZSTD;
  source.data = kValues.data();
  source.size_bytes = kValues.size() * sizeof(float);
  ASSERT_EQ(sealpoint_engine_create(nullptr, &engine, nullptr), SEALPOINT_OK);
  ASSERT_EQ(sealpoint_blob_writer_create(engine, TextOf(directory), nullptr, &writer, nullptr),
            SEALPOINT_OK);
  ASSERT_EQ(sealpoint_blob_writer_add(writer, &spec, nullptr, &source, nullptr), SEALPOINT_OK);
  ASSERT_EQ(sealpoint_blob_writer_finish(writer, &summaries, nullptr), SEALPOINT_OK);
  ASSERT_EQ(sealpoint_commit(TextOf(directory), nullptr, summaries, nullptr, nullptr),
            SEALPOINT_OK);
  sealpoint_summaries_free(summaries);
  sealpoint_blob_writer_free(writer);
  sealpoint_engine_free(engine);
}

TEST(CInterop, CppReadsWhatCWrote) {
  const testing::TempDir directory;
  WriteWithC(directory.path());
  const auto checkpoint = Checkpoint::Open(directory.path()).value();
  std::vector<float> values(6);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(values));
  ASSERT_TRUE(checkpoint->Load(request).ok());
  EXPECT_EQ(values, kValues);
}

// The numbers of both are one set.
TEST(CInterop, CodesAndDtypesAreThoseOfCpp) {
  for (std::int32_t code = 0; code <= SEALPOINT_INTERNAL; ++code) {
    const sealpoint_string name = sealpoint_code_name(code);
    EXPECT_EQ(std::string_view(name.data, name.size), CodeName(static_cast<Code>(code)));
  }
  EXPECT_EQ(CodeName(static_cast<Code>(SEALPOINT_INTERNAL + 1)), "Unknown")
      << "status.h has a code that sealpoint.h lacks";
  EXPECT_EQ(RegisteredDTypes().size(), SEALPOINT_DTYPE_COMPLEX32);
  EXPECT_EQ(kNdimMax, SEALPOINT_NDIM_MAX);
  EXPECT_EQ(kNoStep, SEALPOINT_NO_STEP);
}

}  // namespace
}  // namespace sealpoint
