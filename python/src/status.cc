// SPDX-License-Identifier: Apache-2.0
#include "python/src/status.h"

#include <cstdint>
#include <optional>

#include "python/src/module.h"
#include "sealpoint/bytes.h"

namespace sealpoint::python {
namespace {

nb::object ErrorsModule() { return nb::module_::import_("sealpoint._errors"); }

nb::object TextOrNone(const std::string& text) {
  return text.empty() ? nb::none() : nb::object(Text(text));
}

template <typename T>
nb::object NumberOrNone(const std::optional<T>& number) {
  return number ? nb::cast(*number) : nb::none();
}

Code CodeNamed(std::string_view name) {
  for (int code = 1; code <= static_cast<int>(Code::kInternal); ++code) {
    if (CodeName(static_cast<Code>(code)) == name) return static_cast<Code>(code);
  }
  return Code::kInternal;
}

std::string TextAt(nb::handle error, const char* name) {
  const nb::object value = error.attr(name);
  return value.is_none() ? std::string() : TextOf(value);
}

void Raise(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    const nb::object exception = ErrorOf(error.status());
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
  }
}

}  // namespace

nb::str Text(std::string_view text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  PyObject* result = PyUnicode_DecodeUTF8(text.data(), size, "surrogateescape");
  if (result == nullptr) nb::raise_python_error();
  return nb::steal<nb::str>(result);
}

std::string TextOf(nb::handle object) {
  const nb::object text = nb::str(object);
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) nb::raise_python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

std::string PathOf(nb::handle path) {
  const nb::object text = nb::module_::import_("sealpoint._arguments").attr("path_of")(path);
  PyObject* encoded = PyUnicode_EncodeFSDefault(text.ptr());
  if (encoded == nullptr) nb::raise_python_error();
  const nb::object bytes = nb::steal(encoded);
  return {PyBytes_AsString(encoded), static_cast<std::size_t>(PyBytes_Size(encoded))};
}

nb::object ErrorOf(const Status& status) {
  const Place& place = status.place();
  return ErrorsModule().attr("make_error")(Text(CodeName(status.code())), Text(status.message()),
                                           TextOrNone(place.rule), TextOrNone(place.path),
                                           NumberOrNone(place.offset), TextOrNone(place.tensor),
                                           TextOrNone(place.object), NumberOrNone(place.rank),
                                           TextOrNone(place.host), status.has_unknown_outcome());
}

Status StatusOf(nb::handle exception) {
  if (!nb::isinstance(exception, ErrorsModule().attr("Error"))) {
    return {Code::kCancelled, TextOf(exception.type().attr("__name__")) + ": " + TextOf(exception)};
  }
  // The builders change the status in place.
  Status status(CodeNamed(TextAt(exception, "code")), TextAt(exception, "message"));
  static_cast<void>(std::move(status).AtRule(TextAt(exception, "rule")));
  static_cast<void>(std::move(status).AtPath(TextAt(exception, "path")));
  static_cast<void>(std::move(status).AtTensor(TextAt(exception, "tensor")));
  static_cast<void>(std::move(status).AtObject(TextAt(exception, "object")));
  if (const nb::object offset = exception.attr("offset"); !offset.is_none()) {
    static_cast<void>(std::move(status).AtOffset(nb::cast<std::uint64_t>(offset)));
  }
  if (const nb::object rank = exception.attr("rank"); !rank.is_none()) {
    static_cast<void>(std::move(status).AtRank(nb::cast<int>(rank), TextAt(exception, "host")));
  }
  if (nb::cast<bool>(exception.attr("unknown_outcome"))) {
    static_cast<void>(std::move(status).WithUnknownOutcome());
  }
  return status;
}

void BindStatus(nb::module_& m) {
  nb::register_exception_translator(Raise);
  m.def(
      "error_text", [](nb::handle error) { return Text(StatusOf(error).ToString()); },
      nb::arg("error"), nb::sig("def error_text(error: BaseException) -> str"),
      "One line about an error: code, message and location.");
  m.def(
      "printable", [](nb::handle text) { return Text(Printable(TextOf(text))); }, nb::arg("text"),
      nb::sig("def printable(text: str) -> str"),
      "The text as one line without control characters.");
}

}  // namespace sealpoint::python
