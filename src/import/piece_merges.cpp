#include "import/piece_merges.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/utf8.h"

namespace ingle {
namespace {

struct Candidate {
  Merge merge;
  float score;
  size_t left_length; // characters
  size_t right_length;
  size_t left_id;
  size_t right_id;
};

} // namespace

std::vector<Merge> merges_from_pieces(std::span<const Piece> pieces) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].can_merge) {
      ids.emplace(pieces[id].text, id);
    }
  }
  std::vector<Candidate> candidates;
  for (const Piece& piece : pieces) {
    if (!piece.can_merge) {
      continue;
    }
    const std::string_view text = piece.text;
    std::vector<size_t> cuts; // where characters start, the first excepted
    for (size_t at = utf8_length(text); at != 0 && at < text.size();
         at += utf8_length(text.substr(at))) {
      cuts.push_back(at);
    }
    const size_t first = candidates.size();
    for (size_t i = 0; i < cuts.size(); ++i) {
      const auto left = ids.find(text.substr(0, cuts[i]));
      const auto right = ids.find(text.substr(cuts[i]));
      if (left != ids.end() && right != ids.end()) {
        candidates.push_back(
            {{left->first, right->first},
             piece.score,
             i + 1,
             cuts.size() - i,
             left->second,
             right->second});
      }
    }
    std::sort(
        candidates.begin() + static_cast<std::ptrdiff_t>(first),
        candidates.end(),
        [](const Candidate& a, const Candidate& b) {
          return std::tie(a.left_id, a.right_id) <
              std::tie(b.left_id, b.right_id);
        });
  }
  std::stable_sort(
      candidates.begin(),
      candidates.end(),
      [](const Candidate& a, const Candidate& b) {
        return std::tie(a.score, a.left_length, a.right_length) >
            std::tie(b.score, b.left_length, b.right_length);
      });
  std::vector<Merge> merges;
  merges.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    merges.push_back(candidate.merge);
  }
  return merges;
}

} // namespace ingle
