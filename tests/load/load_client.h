// One client of many: asks, checks what it gets, and leaves when it likes.
//
// Threads: one; several clients may share what they check against.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "http/testing/test_client.h"

namespace ingle {

// A prompt that no other client has, and the answer that it gets alone.
struct Canary {
  std::string prompt;
  std::string answer;
};

// Where a client leaves.
enum class Leaving {
  kAtOnce, // its request is queued, or not even read
  kInPrompt, // a piece of its prompt has been read
  kInAnswer, // some tokens are there
  kAfterLastToken,
};

// How many requests ended how. Of those that it left, nobody knows.
struct LoadCounts {
  uint64_t canaries = 0;
  uint64_t refused = 0;
  uint64_t left = 0;
  uint64_t others = 0;

  LoadCounts& operator+=(const LoadCounts& more) {
    canaries += more.canaries;
    refused += more.refused;
    left += more.left;
    others += more.others;
    return *this;
  }
};

class LoadClient {
 public:
  // `canaries` outlive it.
  LoadClient(uint16_t port, uint64_t seed, const std::vector<Canary>& canaries)
      : port_(port), random_(seed), canaries_(canaries) {}

  // One thing that clients do. Fails the test where the server does what it
  // should not.
  void act();

  // Gets the canary's answer, in a stream or whole.
  void check_canary(const Canary& canary, bool stream);
  void ask_for_several_answers();
  void send_nonsense();
  void leave(Leaving where);

  const LoadCounts& counts() const {
    return counts_;
  }

 private:
  int pick(int least, int most);
  std::string words(int bytes);
  // Of a stream, as far as a client does that leaves there.
  void read_some(TestClient& client, Leaving where);
  void part_from(TestClient& client);

  const uint16_t port_;
  std::mt19937_64 random_;
  const std::vector<Canary>& canaries_;
  LoadCounts counts_;
};

// A greedy completion of so many tokens, whatever they are.
std::string completion_body(
    std::string_view prompt,
    int max_tokens,
    std::string_view fields = "");

// The text of all events of a stream; ends the test where one is an error, or
// the stream is not whole.
std::string streamed_text(const TestResponse& response);
// The text of each answer.
std::vector<std::string> answer_texts(const TestResponse& response);

} // namespace ingle
