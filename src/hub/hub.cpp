#include "hub/hub.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "hub/content_hash.h"
#include "hub/url.h"
#include "weights/strict_json.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr int kTries = 4;
constexpr int kMaxRedirects = 5;
constexpr std::chrono::seconds kLongestWait{300};
// Lists of files, and indices of weights: far more than any is.
constexpr size_t kMaxTextBytes = size_t{64} << 20;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 ||
      status == 308;
}

bool is_temporary(int status) {
  return status == 429 || status == 500 || status == 502 || status == 503 ||
      status == 504;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = end == text.data() + text.size();
  return error == std::errc() && is_whole ? std::optional(number)
                                          : std::nullopt;
}

// "bytes 5-9/10" -> 5.
std::optional<uint64_t> parse_range_start(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) {
    return std::nullopt;
  }
  text.remove_prefix(kUnit.size());
  return parse_number(text.substr(0, text.find('-')));
}

// W/"abc" -> abc.
std::string_view bare_etag(std::string_view etag) {
  if (etag.starts_with("W/")) {
    etag.remove_prefix(2);
  }
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

Result<HubListing> parse_listing(
    const std::string& text,
    const std::string& url) {
  INGLE_ASSIGN_OR_RETURN(const Json root, parse_strict_json(text, url));
  const auto malformed = [&](const char* what) {
    return Status::corruption(
        url + ": " + what + "; is this a hub's address (HF_ENDPOINT)?");
  };
  if (!root.is_object()) {
    return malformed("not a JSON object");
  }
  const auto sha = root.find("sha");
  if (sha == root.end() || !sha->is_string() ||
      !is_commit(sha->get_ref<const std::string&>())) {
    return malformed("'sha' has to be a commit");
  }
  const auto siblings = root.find("siblings");
  if (siblings == root.end() || !siblings->is_array()) {
    return malformed("'siblings' has to be a list");
  }
  HubListing listing{sha->get<std::string>(), {}};
  for (const Json& file : *siblings) {
    const auto name = file.find("rfilename");
    if (name == file.end() || !name->is_string()) {
      return malformed("'rfilename' has to be in each of 'siblings'");
    }
    listing.files.push_back(name->get<std::string>());
  }
  return listing;
}

} // namespace

Hub::Hub(HttpClient& client, HubSettings settings)
    : client_(client), settings_(std::move(settings)) {}

Result<HubListing> Hub::list(const HubModel& model) {
  const std::string url = settings_.endpoint + "/api/models/" + model.repo +
      "/revision/" + escape_for_url(model.revision);
  INGLE_ASSIGN_OR_RETURN(const std::string text, read_text(model, url));
  return parse_listing(text, url);
}

Result<HubFile> Hub::describe(
    const HubModel& model,
    const std::string& commit,
    const std::string& path) {
  HttpRequest request;
  request.url = file_url(model, commit, path);
  request.head_only = true;
  INGLE_ASSIGN_OR_RETURN(
      const HttpHead head, retry([&] { return follow(request, {}); }));
  // A file that is elsewhere has its hash beside the redirect.
  const bool is_elsewhere = is_redirect(head.status);
  if (!is_elsewhere) {
    INGLE_RETURN_IF_ERROR(judge(head, model));
  }
  const std::string_view linked_etag = head.field("x-linked-etag");
  const std::string_view linked_size = head.field("x-linked-size");
  const std::string etag(
      bare_etag(linked_etag.empty() ? head.field("etag") : linked_etag));
  const auto size = parse_number(
      linked_size.empty() && !is_elsewhere ? head.field("content-length")
                                           : linked_size);
  if (!size || !ContentHash::of_etag(etag, *size)) {
    return Status::unsupported(
        model.to_string() + ": the hub gives no size and hash of " +
        quote_name(path) + ", so it could not be checked");
  }
  return HubFile{path, etag, *size};
}

Result<std::string> Hub::read(
    const HubModel& model,
    const std::string& commit,
    const HubFile& file) {
  return read_text(model, file_url(model, commit, file.path));
}

Status Hub::fetch(
    const HubModel& model,
    const std::string& commit,
    const HubFile& file,
    const std::function<uint64_t()>& first_byte,
    const Body& body) {
  const std::string url = file_url(model, commit, file.path);
  const auto head =
      retry([&] { return fetch_once(url, file, first_byte(), body); });
  INGLE_RETURN_IF_ERROR(head.status());
  return judge(*head, model);
}

Hub::Attempt Hub::fetch_once(
    const std::string& url,
    const HubFile& file,
    uint64_t first_byte,
    const Body& body) {
  HttpRequest request;
  request.url = url;
  request.first_byte = first_byte;
  std::optional<uint64_t> at; // of the next piece
  const HttpBody on_piece = [&](const HttpHead& head, ByteView piece) {
    if (head.status != 200 && head.status != 206) {
      return Status::ok(); // an error's text
    }
    if (!at) {
      at = head.status == 200 ? 0
                              : parse_range_start(head.field("content-range"));
      if (!at || (*at != 0 && *at != first_byte)) {
        return Status::io(
            shown_url(url) + ": another part came than was asked for");
      }
    }
    const uint64_t offset = *at;
    *at += piece.size();
    return body(offset, piece);
  };
  Attempt attempt = follow(request, on_piece);
  if (!attempt.head.is_ok()) {
    return attempt;
  }
  if (attempt.head->status == 416 && first_byte > 0) {
    return fetch_once(url, file, 0, body); // there is no such part
  }
  const bool has_body =
      attempt.head->status == 200 || attempt.head->status == 206;
  if (has_body && at.value_or(0) < file.size) {
    return {
        Status::io(
            shown_url(url) + ": it ended after " +
            std::to_string(at.value_or(0)) + " of " +
            std::to_string(file.size) + " bytes"),
        true};
  }
  return attempt;
}

Hub::Attempt Hub::follow(HttpRequest request, const HttpBody& body) {
  const auto home = origin_of(settings_.endpoint);
  if (!home) {
    return {Status::unsupported(
        quote_name(settings_.endpoint) +
        " is no address of a hub: HF_ENDPOINT has to be like "
        "https://hub.example")};
  }
  const bool is_secure = home->starts_with("https:");
  for (int i = 0; i <= kMaxRedirects; ++i) {
    const auto origin = origin_of(request.url);
    if (!origin || (is_secure && !origin->starts_with("https:"))) {
      return {Status::unsupported(
          shown_url(request.url) + ": is no address that can be used" +
          (is_secure ? "; https is asked for" : ""))};
    }
    request.token = origin == home ? settings_.token : "";
    bool is_refused = false;
    auto head = client_.exchange(
        request,
        [&](const HttpHead& answer, ByteView piece) {
          const Status status = body ? body(answer, piece) : Status::ok();
          is_refused = !status.is_ok();
          return status;
        },
        settings_.stop);
    if (!head.is_ok()) {
      const StatusCode code = head.status().code();
      const bool is_network =
          code == StatusCode::kIo || code == StatusCode::kTimeout;
      return {std::move(head), is_network && !is_refused};
    }
    if (!is_redirect(head->status) || head->redirect.empty()) {
      const bool may_retry = is_temporary(head->status);
      return {std::move(head), may_retry};
    }
    // A file's description stands beside the redirect to where it is.
    if (request.head_only &&
        (!head->field("x-linked-etag").empty() ||
         origin_of(head->redirect) != home)) {
      return {std::move(head)};
    }
    request.url = head->redirect;
  }
  return {Status::io(shown_url(request.url) + ": redirects without an end")};
}

Result<HttpHead> Hub::retry(const std::function<Attempt()>& attempt) {
  std::chrono::seconds pause{1};
  for (int i = 1;; ++i) {
    Attempt tried = attempt();
    if (!tried.may_retry || i == kTries) {
      return std::move(tried.head);
    }
    std::chrono::seconds wait = pause;
    if (tried.head.is_ok() && tried.head->retry_after) {
      wait = *tried.head->retry_after;
    }
    if (wait > kLongestWait) {
      return std::move(tried.head);
    }
    const std::string why = tried.head.is_ok() ? settings_.endpoint +
            " answers with status " + std::to_string(tried.head->status)
                                               : tried.head.status().message();
    if (!settings_.wait(wait, why)) {
      return Status::cancelled("interrupted");
    }
    pause *= 2;
  }
}

Result<std::string> Hub::read_text(
    const HubModel& model,
    const std::string& url) {
  HttpRequest request;
  request.url = url;
  std::string text;
  const HttpBody on_piece = [&](const HttpHead&, ByteView piece) {
    if (text.size() + piece.size() > kMaxTextBytes) {
      return Status::corruption(
          shown_url(url) + ": is too long for a text of its kind");
    }
    text += as_text(piece);
    return Status::ok();
  };
  INGLE_ASSIGN_OR_RETURN(const HttpHead head, retry([&] {
                           text.clear();
                           return follow(request, on_piece);
                         }));
  INGLE_RETURN_IF_ERROR(judge(head, model));
  return text;
}

std::string Hub::file_url(
    const HubModel& model,
    const std::string& commit,
    const std::string& path) const {
  std::string url =
      settings_.endpoint + "/" + model.repo + "/resolve/" + commit;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    url +=
        "/" + escape_for_url(std::string_view(path).substr(begin, end - begin));
    begin = end + 1;
  }
  return url;
}

Status Hub::judge(const HttpHead& head, const HubModel& model) const {
  const std::string name = model.to_string();
  switch (head.status) {
    case 200:
    case 206:
      return Status::ok();
    case 401:
    case 403:
      return judge_forbidden(head, model);
    case 404:
      return judge_missing(head, model);
    case 429: {
      const auto wait = head.retry_after.value_or(std::chrono::seconds(0));
      return Status::overloaded(
          name + ": " + settings_.endpoint + " takes no more requests for now" +
          (wait.count() > 0 ? " and asks to come back in " +
                   std::to_string(wait.count()) + " s"
                            : "") +
          (settings_.token.empty() ? "; with HF_TOKEN set it may take more"
                                   : ""));
    }
    default:
      return Status::io(
          name + ": " + settings_.endpoint + " answers with status " +
          std::to_string(head.status));
  }
}

Status Hub::judge_missing(const HttpHead& head, const HubModel& model) const {
  const std::string_view code = head.field("x-error-code");
  if (code == "RevisionNotFound") {
    return Status::not_found(
        model.repo + " has no revision " + quote_name(model.revision) + " at " +
        settings_.endpoint);
  }
  if (code == "EntryNotFound") {
    return Status::not_found(
        model.to_string() + ": a file that is listed is not there");
  }
  return Status::not_found(
      settings_.endpoint + " has no model " + model.repo +
      (code.empty() && model.revision != kDefaultRevision
           ? ", or that has no revision " + quote_name(model.revision)
           : ""));
}

Status Hub::judge_forbidden(const HttpHead& head, const HubModel& model) const {
  if (head.field("x-error-code") == "GatedRepo") {
    return Status::unsupported(
        model.repo + " is gated: accept its terms at " + settings_.endpoint +
        "/" + model.repo + ", and set HF_TOKEN to a token of that account");
  }
  return Status::unsupported(
      settings_.token.empty()
          ? model.repo + " is not there, or private, or gated: set HF_TOKEN " +
              "to a token of an account that may read it"
          : model.repo + " is not open to this token (HF_TOKEN, or the hub's " +
              "token file): it may be private, gated, or not there");
}

} // namespace ingle
