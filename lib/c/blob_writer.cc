// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/blob_writer.h"

#include "lib/c/memory.h"
#include "lib/c/writer.h"

namespace sealpoint::c_api {
namespace {

Status TakeEngineOptions(const sealpoint_engine_options* given, EngineOptions& taken) {
  sealpoint_engine_options options;
  SEALPOINT_C_TRY(Take(given, options));
  taken.io_thread_count = ThreadsOf(options.io_threads);
  taken.snapshot_thread_count = ThreadsOf(options.snapshot_threads);
  if (options.memory_budget_bytes != 0) taken.memory_budget_bytes = options.memory_budget_bytes;
  if (options.staging_buffer_size_bytes != 0) {
    taken.staging_buffer_size_bytes = options.staging_buffer_size_bytes;
  }
  taken.direct_io = options.buffered_io == 0;
  return {};
}

Status TakeWriterOptions(const sealpoint_blob_writer_options* given, BlobWriterOptions& taken) {
  sealpoint_blob_writer_options options;
  SEALPOINT_C_TRY(Take(given, options));
  taken.attempt = In<AttemptId>(options.attempt);
  if (options.has_step != 0) taken.step = options.step;
  if (options.size_max_bytes != 0) taken.size_max_bytes = options.size_max_bytes;
  if (options.on_bytes != nullptr) {
    taken.on_bytes = [options](std::uint64_t bytes) { options.on_bytes(options.user, bytes); };
  }
  return {};
}

// Where the bytes of a region, or of the whole tensor, come from.
struct Part {
  TensorSpec tensor{};
  std::optional<Region> region{};
};
Status TakePart(const sealpoint_tensor_spec* tensor, const sealpoint_region* region, Part& taken) {
  SEALPOINT_C_TRY(TakeTensor(tensor, taken.tensor));
  return TakeRegion(region, taken.region);
}

Status AddPart(BlobWriter& writer, const Part& part, const MemoryView& source) {
  // Before the writer, which any error ends.
  SEALPOINT_C_TRY(ElementCount(part.tensor.shape).status().AtTensor(part.tensor.name));
  return writer.Add(part.tensor, part.region.value_or(Region::Whole(part.tensor.shape)), source);
}

}  // namespace
}  // namespace sealpoint::c_api

using sealpoint::MemoryView;
using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::Part;
using sealpoint::c_api::Take;

extern "C" {

int32_t sealpoint_engine_create(const sealpoint_engine_options* options, sealpoint_engine** out,
                                sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_engine>> {
    sealpoint::EngineOptions taken;
    SEALPOINT_C_TRY(sealpoint::c_api::TakeEngineOptions(options, taken));
    auto engine = sealpoint::Engine::Create(std::move(taken));
    if (!engine.ok()) return engine.error();
    auto handle = std::make_unique<sealpoint_engine>();
    handle->engine = std::move(engine).value();
    return handle;
  });
}

void sealpoint_engine_free(sealpoint_engine* engine) { delete engine; }

int32_t sealpoint_blob_writer_create(const sealpoint_engine* engine, sealpoint_string directory,
                                     const sealpoint_blob_writer_options* options,
                                     sealpoint_blob_writer** out, sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_blob_writer>> {
    SEALPOINT_C_TRY(NotNull(engine, "engine"));
    std::string path;
    sealpoint::BlobWriterOptions taken;
    SEALPOINT_C_TRY(Take(directory, "directory", path));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeWriterOptions(options, taken));
    auto writer = sealpoint::BlobWriter::Create(*engine->engine, path, std::move(taken));
    if (!writer.ok()) return writer.error();
    auto handle = std::make_unique<sealpoint_blob_writer>();
    handle->engine = engine->engine;
    handle->writer = std::move(writer).value();
    return handle;
  });
}

void sealpoint_blob_writer_free(sealpoint_blob_writer* writer) { delete writer; }

int32_t sealpoint_blob_writer_add(sealpoint_blob_writer* writer,
                                  const sealpoint_tensor_spec* tensor,
                                  const sealpoint_region* region, const sealpoint_source* source,
                                  sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(writer, "writer"));
    Part part;
    MemoryView view;
    SEALPOINT_C_TRY(sealpoint::c_api::TakePart(tensor, region, part));
    writer->attributes.ApplyTo(part.tensor);
    if (source != nullptr) SEALPOINT_C_TRY(sealpoint::c_api::TakeSource(source, view));
    return sealpoint::c_api::AddPart(*writer->writer, part, view);
  });
}

int32_t sealpoint_blob_writer_add_dlpack(sealpoint_blob_writer* writer,
                                         const sealpoint_tensor_spec* tensor,
                                         const sealpoint_region* region,
                                         const sealpoint_dl_tensor* source, void* stream,
                                         sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(writer, "writer"));
    Part part;
    sealpoint::c_api::Array array;
    SEALPOINT_C_TRY(sealpoint::c_api::TakePart(tensor, region, part));
    writer->attributes.ApplyTo(part.tensor);
    SEALPOINT_C_TRY(sealpoint::c_api::TakeArray(source, stream, array).AtTensor(part.tensor.name));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckArrayShape(array, part.region, part.tensor.shape)
                        .AtTensor(part.tensor.name));
    return sealpoint::c_api::AddPart(*writer->writer, part, array.view);
  });
}

int32_t sealpoint_blob_writer_add_object(sealpoint_blob_writer* writer, sealpoint_string name,
                                         sealpoint_string media_type, sealpoint_bytes bytes,
                                         uint32_t codec, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(writer, "writer"));
    std::string_view taken_name;
    std::string_view taken_type;
    sealpoint::ByteSpan span;
    sealpoint::Codec taken_codec{};
    SEALPOINT_C_TRY(Take(name, "name", taken_name));
    SEALPOINT_C_TRY(Take(media_type, "media_type", taken_type));
    SEALPOINT_C_TRY(Take(bytes, "bytes", span));
    SEALPOINT_C_TRY(sealpoint::c_api::TakeCodec(codec, taken_codec));
    return writer->writer->AddObject({.name = std::string(taken_name),
                                      .media_type = std::string(taken_type),
                                      .codec = taken_codec},
                                     span);
  });
}

int32_t sealpoint_blob_writer_finish(sealpoint_blob_writer* writer, sealpoint_summaries** out,
                                     sealpoint_error** error) {
  return Make(out, error, [&]() -> sealpoint::Result<std::unique_ptr<sealpoint_summaries>> {
    SEALPOINT_C_TRY(NotNull(writer, "writer"));
    auto handle = std::make_unique<sealpoint_summaries>();
    auto summaries = writer->writer->Finish();
    if (!summaries.ok()) return summaries.error();
    handle->summaries = std::move(summaries).value();
    return handle;
  });
}

int32_t sealpoint_blob_writer_abandon(sealpoint_blob_writer* writer, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(writer, "writer"));
    return writer->writer->Abandon();
  });
}

}  // extern "C"
