// SPDX-License-Identifier: Apache-2.0
//
// The three operations without a communicator: write blobs, commit, read a summary back.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "python/src/attributes.h"
#include "python/src/engine.h"
#include "python/src/gil.h"
#include "python/src/module.h"
#include "python/src/one_call.h"
#include "python/src/tensor_source.h"
#include "python/src/watch.h"
#include "sealpoint/commit.h"
#include "sealpoint/storage.h"

namespace sealpoint::python {
namespace {

// Where an array lies in its tensor: (global shape, offset, run of the box or nothing, extent of
// the box or nothing: that of the array).
using Where = std::tuple<Shape, std::vector<std::uint64_t>,
                         std::optional<std::pair<std::uint64_t, std::uint64_t>>,
                         std::optional<std::vector<std::uint64_t>>>;

class WriterHandle {
 public:
  WriterHandle(std::shared_ptr<Engine> engine, std::unique_ptr<BlobWriter> writer)
      : engine_(std::move(engine)), writer_(std::move(writer)) {}
  ~WriterHandle() {
    const GilRelease released;  // an unfinished writer removes its files
    writer_.reset();
    engine_.reset();
  }
  WriterHandle(const WriterHandle&) = delete;
  WriterHandle& operator=(const WriterHandle&) = delete;

  void Add(const std::string& name, nb::handle array, const std::optional<Where>& where,
           const Encoding& encoding, const std::string& group, std::vector<std::string> placement,
           const AttributesDict& attributes) {
    const OneCall turn = Turn();
    ArrayReader arrays(ArrayReader::Access::kRead);
    TensorSource source = SourceOf(arrays, name, array, encoding);
    source.spec.group = group;
    source.spec.placement = std::move(placement);
    source.spec.attributes = AttributesOf(attributes);
    std::optional<Region> region;
    if (where) {
      const auto& [shape, offset, run, box_extent] = *where;
      source.spec.shape = shape;
      const Box box{.offset = offset, .extent = box_extent.value_or(source.extent)};
      region = run ? Region(box, Run{.begin = run->first, .end = run->second}) : Region::Of(box);
    }
    const GilRelease released;
    const auto count = Value(ElementCount(source.spec.shape));
    if (count == 0) return Check(writer_->AddEmpty(source.spec));
    if (!region) region = Region::Whole(source.spec.shape);
    Check(writer_->Add(source.spec, *region, source.view));
  }

  void AddObject(const std::string& name, nb::handle object, const std::string& codec) {
    const OneCall turn = Turn();
    ArrayReader arrays(ArrayReader::Access::kRead);
    const ObjectSource source = ObjectSourceOf(arrays, name, object);
    const Codec how = CodecOf(codec);
    const GilRelease released;
    Check(writer_->AddObject({.name = name, .media_type = source.media_type, .codec = how},
                             source.bytes));
  }

  std::vector<nb::bytes> Finish() {
    const OneCall turn = Turn();
    Watch watch{nb::none()};
    const auto summaries = Value(watch.Run([&] { return writer_->Finish(); }));
    std::vector<nb::bytes> result;
    for (const BlobSummary& summary : summaries) result.push_back(BytesOf(summary.Serialize()));
    return result;
  }

  void Abandon() {
    const OneCall turn = Turn();
    const GilRelease released;
    Check(writer_->Abandon());
  }

 private:
  OneCall Turn() { return {is_busy_, "the blob writer"}; }

  std::shared_ptr<Engine> engine_;
  std::unique_ptr<BlobWriter> writer_;
  std::atomic<bool> is_busy_ = false;
};

std::unique_ptr<WriterHandle> CreateWriter(const EngineHandle& engine, nb::handle directory,
                                           const std::optional<std::string>& attempt,
                                           std::optional<std::uint64_t> step,
                                           std::uint64_t size_max_bytes, bool fingerprints) {
  const std::string path = PathOf(directory);
  BlobWriterOptions options{.size_max_bytes = size_max_bytes,
                            .attempt = IdOf<AttemptId>(attempt),
                            .step = step.value_or(kNoStep),
                            .fingerprints = fingerprints,
                            .on_bytes = {}};
  const std::shared_ptr<Engine> kept = engine.engine;
  const GilRelease released;
  return std::make_unique<WriterHandle>(kept,
                                        Value(BlobWriter::Create(*kept, path, std::move(options))));
}

CommitInfo CommitBlobs(nb::handle directory, const std::vector<nb::bytes>& summaries,
                       const std::optional<std::string>& attempt, std::optional<std::uint64_t> step,
                       const Parent& parent, MeshAxes mesh, const AttributesDict& attributes,
                       ProvenanceList provenance, bool allow_empty, nb::handle progress) {
  const std::string path = PathOf(directory);
  std::vector<BlobSummary> blobs;
  for (const nb::bytes& summary : summaries) {
    blobs.push_back(Value(BlobSummary::Deserialize(SpanOf(summary))));
  }
  Watch watch(progress);
  const CommitOptions options{.attempt = IdOf<AttemptId>(attempt),
                              .step = step.value_or(kNoStep),
                              .parent = ParentOf(parent),
                              .mesh = std::move(mesh),
                              .attributes = AttributesOf(attributes),
                              .provenance = std::move(provenance),
                              .allow_empty = allow_empty,
                              .on_progress = watch.OnPhase()};
  return Value(watch.Run([&] { return Commit(*DefaultStorage(), path, options, blobs); }));
}

nb::bytes ReadOneSummary(nb::handle directory, const std::string& blob) {
  const std::string path = PathOf(directory);
  const BlobId id = Value(BlobId::FromHex(blob));
  Bytes bytes;
  {
    const GilRelease released;
    bytes = Value(ReadSummary(*DefaultStorage(), path, id)).Serialize();
  }
  return BytesOf(bytes);
}

std::vector<std::string> ListBlobIds(nb::handle directory) {
  const std::string path = PathOf(directory);
  const GilRelease released;
  std::vector<std::string> ids;
  for (const BlobId& id : Value(ListBlobs(*DefaultStorage(), path))) ids.push_back(id.ToHex());
  return ids;
}

}  // namespace

void BindWriter(nb::module_& m) {
  nb::class_<WriterHandle>(m, "Writer", "Writer of the blobs of one process.")
      .def("add", &WriterHandle::Add, nb::arg("name"), nb::arg("array"), nb::arg("where").none(),
           nb::arg("encoding"), nb::arg("group"), nb::arg("placement"), nb::arg("attributes"))
      .def("add_object", &WriterHandle::AddObject, nb::arg("name"), nb::arg("value"),
           nb::arg("codec"))
      .def("finish", &WriterHandle::Finish)
      .def("abandon", &WriterHandle::Abandon);
  m.def("create_writer", CreateWriter, nb::arg("engine"), nb::arg("directory"),
        nb::arg("attempt").none(), nb::arg("step").none(), nb::arg("size_max_bytes"),
        nb::arg("fingerprints"));
  m.def("commit", CommitBlobs, nb::arg("directory"), nb::arg("summaries"),
        nb::arg("attempt").none(), nb::arg("step").none(), nb::arg("parent").none(),
        nb::arg("mesh"), nb::arg("attributes"), nb::arg("provenance"), nb::arg("allow_empty"),
        nb::arg("progress").none());
  m.def("read_summary", ReadOneSummary, nb::arg("directory"), nb::arg("blob"));
  m.def("list_blobs", ListBlobIds, nb::arg("directory"));
  m.def("new_attempt", [] { return Value(AttemptId::Random()).ToHex(); });
  m.def(
      "create_directories",
      [](nb::handle directory) {
        const std::string path = PathOf(directory);
        const GilRelease released;
        Check(DefaultStorage()->CreateDirectories(path));
      },
      nb::arg("directory"));
}

}  // namespace sealpoint::python
