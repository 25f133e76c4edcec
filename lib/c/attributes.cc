// SPDX-License-Identifier: Apache-2.0
#include "lib/c/attributes.h"

#include <cstddef>
#include <deque>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lib/c/checkpoint.h"
#include "lib/c/ranks.h"
#include "lib/c/writer.h"

struct sealpoint_attributes {
  sealpoint::Attributes::Values values;
  std::vector<sealpoint_attribute> all;  // refer to `values`, or to what follows
  std::deque<std::vector<sealpoint_string>> texts;
  std::deque<std::vector<std::uint8_t>> truths;
};

namespace sealpoint::c_api {
namespace {

// C++ value of each value in C.
Status TakeValue(const sealpoint_string& given, std::string& taken) {
  return Take(given, "value of an attribute", taken);
}
template <typename T>
Status TakeValue(const T& given, T& taken) {
  taken = given;
  return {};
}
Status TakeValue(std::uint8_t given, bool& taken) {
  taken = given != 0;
  return CheckEnum(given, 1, "bool value of an attribute");
}

template <typename InC, typename InCpp>
Status TakeValues(const sealpoint_attribute& given, AttributeValue& taken) {
  std::vector<InCpp> values;
  for (const InC& each : std::span(static_cast<const InC*>(given.values), given.count)) {
    InCpp value{};
    SEALPOINT_C_TRY(TakeValue(each, value));
    values.push_back(std::move(value));
  }
  if (given.is_list != 0) {
    taken = std::move(values);
  } else {
    taken = InCpp(values.front());
  }
  return {};
}

Status TakeAttribute(const sealpoint_attribute& given, Attributes::Values& taken) {
  std::string name;
  SEALPOINT_C_TRY(Take(given.name, "name of an attribute", name));
  SEALPOINT_C_TRY(CheckArray(given.values, given.count, "values of an attribute"));
  SEALPOINT_C_TRY(CheckEnum(given.is_list, 1, "is_list"));
  if (given.is_list == 0 && given.count != 1) {
    return {Code::kInvalidArgument, "attribute " + name + " has " + std::to_string(given.count) +
                                        " values, expected 1 or a list"};
  }
  AttributeValue value;
  switch (given.type) {
    case SEALPOINT_ATTRIBUTE_STRING:
      SEALPOINT_C_TRY((TakeValues<sealpoint_string, std::string>(given, value)));
      break;
    case SEALPOINT_ATTRIBUTE_INT64:
      SEALPOINT_C_TRY((TakeValues<std::int64_t, std::int64_t>(given, value)));
      break;
    case SEALPOINT_ATTRIBUTE_FLOAT64:
      SEALPOINT_C_TRY((TakeValues<double, double>(given, value)));
      break;
    case SEALPOINT_ATTRIBUTE_BOOL:
      SEALPOINT_C_TRY((TakeValues<std::uint8_t, bool>(given, value)));
      break;
    default:
      return {Code::kInvalidArgument, "type of attribute " + name + " is " +
                                          std::to_string(given.type) + ", expected 1 to 4"};
  }
  if (taken.emplace(name, std::move(value)).second) return {};
  return {Code::kInvalidArgument, "attribute " + name + " is given twice"};
}

Status TakeAttributes(const sealpoint_attribute* given, std::uint64_t count, Attributes& taken) {
  SEALPOINT_C_TRY(CheckArray(given, count, "attributes"));
  Attributes::Values values;
  for (const sealpoint_attribute& each : std::span(given, count)) {
    SEALPOINT_C_TRY(TakeAttribute(each, values));
  }
  auto made = Attributes::Make(values);
  if (!made.ok()) return made.error();
  taken = *std::move(made);
  return {};
}

// Sets type, values and count for a value that `held` owns.
class FillAttribute {
 public:
  FillAttribute(sealpoint_attributes& held, sealpoint_attribute& out) : held_(held), out_(out) {}

  void operator()(const std::string& text) const { FillTexts({&text, 1}); }
  void operator()(const std::vector<std::string>& texts) const { FillTexts(texts); }
  void operator()(bool truth) const { FillTruths(std::vector<std::uint8_t>{truth}); }
  void operator()(const std::vector<bool>& truths) const {
    FillTruths(std::vector<std::uint8_t>(truths.begin(), truths.end()));
  }
  template <typename T>
  void operator()(const T& number) const {
    Set(TypeOf<T>(), &number, 1);
  }
  template <typename T>
  void operator()(const std::vector<T>& numbers) const {
    Set(TypeOf<T>(), numbers.data(), numbers.size());
  }

 private:
  template <typename T>
  static constexpr std::uint32_t TypeOf() {
    return std::is_same_v<T, double> ? SEALPOINT_ATTRIBUTE_FLOAT64 : SEALPOINT_ATTRIBUTE_INT64;
  }
  void Set(std::uint32_t type, const void* values, std::size_t count) const {
    out_.type = type;
    out_.values = values;
    out_.count = count;
  }
  void FillTexts(std::span<const std::string> texts) const {
    std::vector<sealpoint_string>& made = held_.texts.emplace_back();
    for (const std::string& text : texts) made.push_back(Out(text));
    Set(SEALPOINT_ATTRIBUTE_STRING, made.data(), made.size());
  }
  void FillTruths(std::vector<std::uint8_t> truths) const {
    const auto& made = held_.truths.emplace_back(std::move(truths));
    Set(SEALPOINT_ATTRIBUTE_BOOL, made.data(), made.size());
  }

  sealpoint_attributes& held_;
  sealpoint_attribute& out_;
};

std::unique_ptr<sealpoint_attributes> HandleOf(const Attributes& attributes) {
  constexpr std::size_t kFirstListType = std::variant_size_v<AttributeValue> / 2;
  auto handle = std::make_unique<sealpoint_attributes>();
  handle->values = attributes.values();
  for (const auto& [name, value] : handle->values) {
    sealpoint_attribute out{};
    out.name = Out(name);
    out.is_list = value.index() >= kFirstListType ? 1 : 0;
    std::visit(FillAttribute(*handle, out), value);
    handle->all.push_back(out);
  }
  return handle;
}

}  // namespace

Status TensorAttributes::Set(sealpoint_string tensor, const sealpoint_attribute* attributes,
                             std::uint64_t count) {
  std::string name;
  SEALPOINT_C_TRY(Take(tensor, "tensor", name));
  Status status = TakeAttributes(attributes, count, by_name_[name]);
  return status.ok() ? status : std::move(status).AtTensor(name);
}

void TensorAttributes::ApplyTo(TensorSpec& tensor) const {
  const auto found = by_name_.find(tensor.name);
  if (found != by_name_.end()) tensor.attributes = found->second;
}

}  // namespace sealpoint::c_api

using sealpoint::Status;
using sealpoint::c_api::Guarded;
using sealpoint::c_api::HandleOf;
using sealpoint::c_api::Make;
using sealpoint::c_api::NotNull;
using sealpoint::c_api::TakeAttributes;
using MadeAttributes = sealpoint::Result<std::unique_ptr<sealpoint_attributes>>;

extern "C" {

int32_t sealpoint_declaration_set_attributes(sealpoint_declaration* declaration,
                                             sealpoint_string tensor,
                                             const sealpoint_attribute* attributes, uint64_t count,
                                             sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(declaration, "declaration"));
    // As other errors of a declaration, this one is kept for the save.
    Status status = declaration->attributes.Set(tensor, attributes, count);
    declaration->declaration->NoteFailure(status);
    return status;
  });
}

int32_t sealpoint_blob_writer_set_attributes(sealpoint_blob_writer* writer, sealpoint_string tensor,
                                             const sealpoint_attribute* attributes, uint64_t count,
                                             sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(writer, "writer"));
    return writer->attributes.Set(tensor, attributes, count);
  });
}

int32_t sealpoint_sources_set_attributes(sealpoint_sources* sources,
                                         const sealpoint_attribute* attributes, uint64_t count,
                                         sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(sources, "sources"));
    Status status = TakeAttributes(attributes, count, sources->attributes);
    sources->sources.NoteFailure(status);
    return status;
  });
}

int32_t sealpoint_summaries_set_attributes(sealpoint_summaries* summaries,
                                           const sealpoint_attribute* attributes, uint64_t count,
                                           sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(summaries, "summaries"));
    return TakeAttributes(attributes, count, summaries->attributes);
  });
}

int32_t sealpoint_checkpoint_attributes(const sealpoint_checkpoint* checkpoint,
                                        sealpoint_attributes** out, sealpoint_error** error) {
  return Make(out, error, [&]() -> MadeAttributes {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    return HandleOf(checkpoint->checkpoint->attributes());
  });
}

int32_t sealpoint_checkpoint_tensor_attributes(const sealpoint_checkpoint* checkpoint,
                                               sealpoint_string tensor, sealpoint_attributes** out,
                                               sealpoint_error** error) {
  return Make(out, error, [&]() -> MadeAttributes {
    SEALPOINT_C_TRY(NotNull(checkpoint, "checkpoint"));
    std::string_view name;
    SEALPOINT_C_TRY(sealpoint::c_api::Take(tensor, "tensor", name));
    const auto info = checkpoint->checkpoint->FindTensor(name);
    if (info) return HandleOf(info->attributes);
    return Status(sealpoint::Code::kNotFound, "there is no tensor of this name").AtTensor(name);
  });
}

void sealpoint_attributes_free(sealpoint_attributes* attributes) { delete attributes; }

uint64_t sealpoint_attributes_count(const sealpoint_attributes* attributes) {
  return attributes == nullptr ? 0 : attributes->all.size();
}

int32_t sealpoint_attributes_get(const sealpoint_attributes* attributes, uint64_t index,
                                 sealpoint_attribute* out, sealpoint_error** error) {
  return Guarded(error, [&]() -> Status {
    SEALPOINT_C_TRY(NotNull(attributes, "attributes"));
    SEALPOINT_C_TRY(NotNull(out, "out"));
    SEALPOINT_C_TRY(sealpoint::c_api::CheckIndex(index, attributes->all.size(), "attributes"));
    *out = attributes->all[index];
    return {};
  });
}

}  // extern "C"
