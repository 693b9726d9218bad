#include "fuzz/http_responses.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "fuzz/checks.h"

namespace ingle {
namespace {

constexpr std::string_view kVersion = "HTTP/1.1 ";
constexpr std::string_view kLineEnd = "\r\n";

std::string_view take(std::string_view& bytes, size_t count) {
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(taken.size());
  return taken;
}

// A line without its end; nothing where the bytes end before it does.
std::optional<std::string_view> take_line(std::string_view& bytes) {
  const size_t end = bytes.find(kLineEnd);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view line = take(bytes, end);
  take(bytes, kLineEnd.size());
  return line;
}

size_t to_number(std::string_view digits, int base) {
  size_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base);
  check(read.ec == std::errc() && read.ptr == end, "a length is a number");
  return number;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

bool is_field_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
        (c >= '0' && c <= '9');
  });
}

bool is_printable(std::string_view text) {
  return std::all_of(
      text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

using Fields = std::map<std::string, std::string>;

Fields take_fields(std::string_view& bytes) {
  Fields fields;
  while (true) {
    const auto line = take_line(bytes);
    check(line.has_value(), "a head is whole");
    if (line->empty()) {
      return fields;
    }
    const size_t colon = line->find(": ");
    check(colon != std::string_view::npos, "a field has a value");
    const std::string_view name = line->substr(0, colon);
    const std::string_view value = line->substr(colon + 2);
    check(is_field_name(name), "a field's name is a token");
    check(is_printable(value), "a field's value is printable");
    check(
        fields.emplace(lower(name), std::string(value)).second,
        "a field stands once");
  }
}

void take_chunks(std::string_view& bytes, HttpResponse& response) {
  while (const auto line = take_line(bytes)) {
    const size_t size = to_number(*line, 16);
    response.body += take(bytes, size);
    const std::string_view end = take(bytes, kLineEnd.size());
    if (end.size() < kLineEnd.size()) {
      return;
    }
    check(end == kLineEnd, "a chunk ends with its line");
    if (size == 0) {
      response.is_whole = true;
      return;
    }
  }
}

void take_body(
    std::string_view& bytes,
    const Fields& fields,
    size_t& heads,
    HttpResponse& response) {
  const auto length = fields.find("content-length");
  const auto coding = fields.find("transfer-encoding");
  check(
      length == fields.end() || coding == fields.end(),
      "a body has one kind of end");
  if (coding != fields.end()) {
    check(coding->second == "chunked", "the coding is known");
    take_chunks(bytes, response);
    return;
  }
  if (length == fields.end()) {
    check(
        fields.contains("connection") && fields.at("connection") == "close",
        "a body without an end ends with its connection");
    response.body = take(bytes, bytes.size());
    response.is_whole = true;
    return;
  }
  const size_t size = to_number(length->second, 10);
  // No body of ours begins like a response.
  if (heads > 0 && (bytes.empty() || bytes.starts_with(kVersion))) {
    --heads;
    response.is_whole = true;
    response.is_to_head = true;
    return;
  }
  response.body = take(bytes, size);
  response.is_whole = response.body.size() == size;
}

} // namespace

std::vector<HttpResponse> read_responses(std::string_view bytes, size_t heads) {
  std::vector<HttpResponse> responses;
  while (!bytes.empty()) {
    auto line = take_line(bytes);
    check(line.has_value(), "a status line is whole");
    check(line->starts_with(kVersion), "a response begins with its version");
    line->remove_prefix(kVersion.size());
    HttpResponse response;
    response.status = static_cast<int>(to_number(line->substr(0, 3), 10));
    check(
        line->size() > 4 && (*line)[3] == ' ' && is_printable(*line),
        "a status has a reason");
    const Fields fields = take_fields(bytes);
    if (response.status == 100) {
      check(fields.empty(), "100 Continue is a line");
      continue;
    }
    check(fields.contains("content-type"), "a response has a type");
    check(fields.contains("x-request-id"), "a response has its request's id");
    response.content_type = fields.at("content-type");
    take_body(bytes, fields, heads, response);
    check(response.is_whole || bytes.empty(), "a body is whole");
    responses.push_back(std::move(response));
  }
  return responses;
}

} // namespace ingle
