// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/load_all.h"

#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::testing {

Result<CorpusContent> LoadAll(const Checkpoint& checkpoint) {
  CorpusContent content;
  ReadRequest request;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    Bytes& bytes = content.tensors[tensor.name];
    bytes.resize(tensor.raw_bytes);
    request.Add(tensor.name, MutableMemoryView::Host(bytes));
  }
  const Result<LoadReport> report = checkpoint.Load(request);
  if (!report.ok()) return report.error();
  for (const ObjectInfo& object : checkpoint.objects()) {
    Result<Bytes> bytes = checkpoint.ReadObject(object.name);
    if (!bytes.ok()) return std::move(bytes).error();
    SEALPOINT_CHECK(bytes->size() == object.size_bytes);
    content.objects[object.name] = std::move(bytes).value();
  }
  return content;
}

}  // namespace sealpoint::testing
