// SPDX-License-Identifier: Apache-2.0
//
// Each case is compiled by itself, with MISUSE defined as its number (check_must_not_compile.py): 0
// must compile, all others must not, and the compiler must say what matches the case's pattern.
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/collective_reader.h"
#include "sealpoint/saver.h"

namespace sealpoint {

void Use(Engine& engine, Communicator& comm, const Declaration& declaration, float* pointer) {
  std::vector<float> elements(4);
  const std::vector<float> constant(4);
  ReadRequest request;
  Sources sources(declaration);

#if MISUSE == 0  // compiles
  static_cast<void>(sources.Bind("w", MemoryView::Host(constant)));
  static_cast<void>(sources.Bind("w", MemoryView::Host(std::span(constant).first(2), {8})));
  static_cast<void>(sources.Bind("w", MemoryView::Host(pointer, 16)));
  static_cast<void>(sources.Bind("w", MemoryView::Cuda(pointer, 16, 0, nullptr, {-4}, 12)));
  static_cast<void>(sources.BindObject("o", AsBytes("text")));
  request.Add("w", MutableMemoryView::Host(elements));
  request.Add("w", Box{{0}, {4}}, MutableMemoryView::Host(pointer, 16).WithDType(DType::kF32));
  static_cast<void>(Saver::Create(engine, comm));
  static_cast<void>(CollectiveReader::Open(comm, "path"));
#elif MISUSE == 1   // a pointer without a length: constraint|no matching function
  MemoryView::Host(pointer);
#elif MISUSE == 2   // device memory without a length: no matching function
  MemoryView::Cuda(pointer, 0, nullptr);
#elif MISUSE == 3   // a temporary source: constraint|no matching function
  MemoryView::Host(std::vector<float>(4));
#elif MISUSE == 4   // a temporary destination: constraint|no matching function
  MutableMemoryView::Host(std::vector<float>(4));
#elif MISUSE == 5   // a constant destination: constraint|no matching function
  MutableMemoryView::Host(constant);
#elif MISUSE == 6   // elements that have no dtype: constraint|no matching function
  std::vector<std::string> texts(4);
  MemoryView::Host(texts);
#elif MISUSE == 7   // bits that are no elements: constraint|no matching function
  std::vector<bool> bits(4);
  MemoryView::Host(bits);
#elif MISUSE == 8   // a source where a destination is needed: no matching
  request.Add("w", MemoryView::Host(elements));
#elif MISUSE == 9   // sources of a temporary declaration: deleted
  const Sources dangling{Declaration()};
#elif MISUSE == 10  // the bytes of an object that are gone when it is saved: deleted
  static_cast<void>(sources.BindObject("o", Bytes(4)));
#elif MISUSE == 11  // slots of a temporary declaration: deleted
  static_cast<void>(Declaration().SlotsOf("w"));
#elif MISUSE == 12  // the manifest of a temporary summary: deleted
  static_cast<void>(BlobSummary().manifest());
#elif MISUSE == 13  // a saver of an engine that ends: cannot bind|no matching function|no viable
  static_cast<void>(Saver::Create(std::move(engine), comm));
#elif MISUSE == 14  // a reader of a communicator that ends: cannot bind|no matching|no viable
  static_cast<void>(CollectiveReader::Open(std::move(comm), "path"));
#elif MISUSE == 15  // what is the library's own: no member named
  engine.parts();
#elif MISUSE == 16  // the status that is not looked at: nodiscard
  sources.Bind("w", MemoryView::Host(elements));
#elif MISUSE == 17  // a source of a plan that is only looked at: no matching function|constraint
  static_cast<void>(MemoryView::PlanOnly());
#endif
}

}  // namespace sealpoint
