// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/xml_reader.h"

#include <expat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/errors.h"

namespace sealpoint::internal::s3 {
namespace {

constexpr std::size_t kXmlDepthMax = 16;

struct XmlState {
  XML_Parser parser = nullptr;
  const std::function<void(std::string_view, const std::string&)>* on_end = nullptr;
  std::string path{};
  std::vector<std::string> texts{};  // one per open element
  std::string refusal{};
};

void Refuse(XmlState& state, std::string_view reason) {
  if (state.refusal.empty()) state.refusal = reason;
  XML_StopParser(state.parser, XML_FALSE);
}

void XMLCALL OnStart(void* data, const XML_Char* name, const XML_Char** /*attributes*/) {
  auto& state = *static_cast<XmlState*>(data);
  if (state.texts.size() == kXmlDepthMax) return Refuse(state, "elements deeper than 16");
  const std::string_view whole(name);
  const std::size_t colon = whole.rfind(':');
  if (!state.path.empty()) state.path += '/';
  state.path += colon == std::string_view::npos ? whole : whole.substr(colon + 1);
  state.texts.emplace_back();
}

void XMLCALL OnEnd(void* data, const XML_Char* /*name*/) {
  auto& state = *static_cast<XmlState*>(data);
  (*state.on_end)(state.path, state.texts.back());
  state.texts.pop_back();
  const std::size_t slash = state.path.rfind('/');
  state.path.resize(slash == std::string::npos ? 0 : slash);
}

void XMLCALL OnText(void* data, const XML_Char* text, int size) {
  auto& state = *static_cast<XmlState*>(data);
  if (!state.texts.empty()) state.texts.back().append(text, static_cast<std::size_t>(size));
}

void XMLCALL OnDoctype(void* data, const XML_Char* /*name*/, const XML_Char* /*system*/,
                       const XML_Char* /*public*/, int /*has_internal_subset*/) {
  Refuse(*static_cast<XmlState*>(data), "a DOCTYPE");
}

}  // namespace

Status ReadXml(std::string_view document,
               const std::function<void(std::string_view path, const std::string& text)>& on_end) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  if (parser == nullptr) return MakeError(Code::kIo, "no memory for a reader of XML");
  XmlState state{.parser = parser.get(), .on_end = &on_end};
  XML_SetUserData(parser.get(), &state);
  XML_SetElementHandler(parser.get(), &OnStart, &OnEnd);
  XML_SetCharacterDataHandler(parser.get(), &OnText);
  XML_SetStartDoctypeDeclHandler(parser.get(), &OnDoctype);
  const bool is_good = XML_Parse(parser.get(), document.data(), static_cast<int>(document.size()),
                                 XML_TRUE) == XML_STATUS_OK;
  if (!state.refusal.empty()) {
    return MakeError(Code::kIo, "the server's XML has ", state.refusal, ", expected none");
  }
  if (!is_good) {
    return MakeError(Code::kIo, "the server's answer is ", document.size(),
                     " bytes that are not XML: ",
                     std::string_view(XML_ErrorString(XML_GetErrorCode(parser.get()))), " at line ",
                     static_cast<std::uint64_t>(XML_GetCurrentLineNumber(parser.get())));
  }
  return {};
}

std::string XmlEscape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace sealpoint::internal::s3
