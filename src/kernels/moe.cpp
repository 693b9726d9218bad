#include "kernels/moe.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/products.h"

namespace ingle {
namespace {

size_t product(int a, int b) {
  return static_cast<size_t>(a) * static_cast<size_t>(b);
}

// One expert's of those that all have, or null.
const float* bias_of(const float* all, int expert, int width) {
  return all == nullptr ? nullptr : all + product(expert, width);
}

// What moe_and_add() does, in two regions: which tokens an expert has is known
// after the first.
class Moe {
 public:
  Moe(KernelContext& context,
      const MoeView& view,
      int tokens,
      const float* x,
      float* out)
      : context_(context),
        view_(view),
        tokens_(tokens),
        hidden_(view.router.matrix->columns),
        inner_(view.gate.front().rows),
        experts_(view.router.matrix->rows),
        x_(x),
        out_(out),
        are_alike_(view.gate.front().has_format_of(view.up.front())),
        choices_(product(tokens, view.top_k)),
        pairs_(choices_.size()),
        places_(choices_.size()),
        router_(context, Inputs::kTwoPlanes, tokens, {view.router}) {
    context.routed.reserve(sizeof(float) * product(tokens, hidden_ + experts_));
    const auto floats = [&](int columns) {
      return sizeof(float) * choices_.size() * static_cast<size_t>(columns);
    };
    context.projected.reserve(floats(are_alike_ ? inner_ : 2 * inner_));
    context.branch.reserve(floats(hidden_));
  }

  void route(int thread);
  // Between the regions.
  void group();
  void run(int thread);

 private:
  // An expert's pairs: [begin, begin + count).
  struct Group {
    int expert = 0;
    int begin = 0;
    int count = 0;
    ProductInputs normed;
    ProductInputs activated;
  };

  void multiply_in(int thread, const Group& group) const;
  void multiply_out(int thread, Group& group) const;
  void add(int token) const;
  // The next group's tiles come where this one's are.
  void finish(int thread, const Group& group) const {
    if (group.count > context_.set.tile_tokens) {
      context_.pool.barrier(thread);
    }
  }

  Share tokens_of(int thread) const {
    return share_of(tokens_, thread, context_.pool.threads());
  }
  float* normed_of(int token) const {
    return reinterpret_cast<float*>(context_.routed.data()) +
        product(token, hidden_);
  }
  float* logits_of(int token) const {
    return normed_of(tokens_) + product(token, experts_);
  }
  std::span<ExpertChoice> choices_of(int token) {
    const auto count = static_cast<size_t>(view_.top_k);
    return std::span(choices_).subspan(product(token, view_.top_k), count);
  }
  // Of a pair: its activated inner values; before that its gate.
  float* inner_of(int pair) const {
    return reinterpret_cast<float*>(context_.projected.data()) +
        product(pair, inner_);
  }
  float* up_of(int pair) const {
    return inner_of(static_cast<int>(choices_.size()) + pair);
  }
  float* result_of(int pair) const {
    return reinterpret_cast<float*>(context_.branch.data()) +
        product(pair, hidden_);
  }

  KernelContext& context_;
  const MoeView& view_;
  int tokens_;
  int hidden_;
  int inner_;
  int experts_;
  const float* x_;
  float* out_;
  bool are_alike_; // gate and up are multiplied side by side
  std::vector<ExpertChoice> choices_; // [T, top_k]
  // A pair is a token and one of its experts. They stand by expert.
  std::vector<int> pairs_; // the token of each
  std::vector<int> places_; // of choices_: which pair it is
  ProductInputs router_;
  std::vector<Group> groups_;
};

void Moe::route(int thread) {
  const Share own = tokens_of(thread);
  for (int t = own.begin; t < own.end; ++t) {
    context_.set.rms_norm(
        x_ + product(t, hidden_),
        view_.norm.weight,
        view_.norm.eps,
        hidden_,
        normed_of(t));
  }
  context_.pool.barrier(thread);
  router_.pack(thread, [&](int t, float*) { return normed_of(t); });
  router_.multiply(
      thread,
      {.matrix = view_.router.matrix,
       .bias = view_.router.bias,
       .out = logits_of(0),
       .stride = experts_});
  context_.pool.barrier(thread);
  for (int t = own.begin; t < own.end; ++t) {
    const std::span logits(logits_of(t), static_cast<size_t>(experts_));
    choose_experts(logits, view_.renormalises, choices_of(t));
  }
}

void Moe::group() {
  std::vector<int> ends(static_cast<size_t>(experts_));
  for (const ExpertChoice& choice : choices_) {
    ++ends[static_cast<size_t>(choice.expert)];
  }
  int begin = 0;
  for (int expert = 0; expert < experts_; ++expert) {
    int& end = ends[static_cast<size_t>(expert)];
    const int count = end;
    end = begin; // and again the end, when all are placed
    if (count > 0) {
      const auto at = static_cast<size_t>(expert);
      groups_.push_back(
          {expert,
           begin,
           count,
           {context_, count, {{&view_.gate[at]}, {&view_.up[at]}}},
           {context_, count, {{&view_.down[at]}}}});
    }
    begin += count;
  }
  for (size_t i = 0; i < choices_.size(); ++i) {
    const int place = ends[static_cast<size_t>(choices_[i].expert)]++;
    places_[i] = place;
    pairs_[static_cast<size_t>(place)] = static_cast<int>(i) / view_.top_k;
  }
}

void Moe::run(int thread) {
  for (Group& group : groups_) {
    group.normed.pack(thread, [&](int i, float*) {
      const int pair = group.begin + i;
      return normed_of(pairs_[static_cast<size_t>(pair)]);
    });
    multiply_in(thread, group);
    finish(thread, group);
  }
  context_.pool.barrier(thread);
  for (Group& group : groups_) {
    multiply_out(thread, group);
    finish(thread, group);
  }
  context_.pool.barrier(thread);
  const Share own = tokens_of(thread);
  for (int t = own.begin; t < own.end; ++t) {
    add(t);
  }
}

void Moe::multiply_in(int thread, const Group& group) const {
  const auto expert = static_cast<size_t>(group.expert);
  const float* up_bias = bias_of(view_.up_bias, group.expert, inner_);
  const Product gate{
      .matrix = &view_.gate[expert],
      .bias = bias_of(view_.gate_bias, group.expert, inner_),
      .up = are_alike_ ? &view_.up[expert] : nullptr,
      .up_bias = up_bias,
      .activation = view_.activation,
      .out = inner_of(group.begin),
      .stride = inner_};
  group.normed.multiply(thread, gate);
  if (!are_alike_) {
    group.normed.multiply(
        thread,
        {.matrix = &view_.up[expert],
         .bias = up_bias,
         .out = up_of(group.begin),
         .stride = inner_});
  }
}

void Moe::multiply_out(int thread, Group& group) const {
  group.activated.pack(thread, [&](int i, float* row) -> const float* {
    const int pair = group.begin + i;
    if (are_alike_) {
      return inner_of(pair);
    }
    std::copy_n(inner_of(pair), inner_, row);
    context_.set.activate_gate(row, up_of(pair), view_.activation, inner_);
    return row;
  });
  group.activated.multiply(
      thread,
      {.matrix = &view_.down[static_cast<size_t>(group.expert)],
       .bias = bias_of(view_.down_bias, group.expert, hidden_),
       .out = result_of(group.begin),
       .stride = hidden_});
}

// In the order of choices_, which is that of the experts' indices.
void Moe::add(int token) const {
  const size_t first = product(token, view_.top_k);
  float* sum = result_of(places_[first]);
  for (int i = 0; i < hidden_; ++i) {
    sum[i] *= choices_[first].weight;
  }
  for (size_t j = first + 1; j < first + static_cast<size_t>(view_.top_k);
       ++j) {
    const float* result = result_of(places_[j]);
    for (int i = 0; i < hidden_; ++i) {
      sum[i] += choices_[j].weight * result[i];
    }
  }
  const float* x = x_ + product(token, hidden_);
  float* out = out_ + product(token, hidden_);
  for (int i = 0; i < hidden_; ++i) {
    out[i] = x[i] + sum[i];
  }
}

} // namespace

void choose_experts(
    std::span<float> logits,
    bool renormalises,
    std::span<ExpertChoice> choices) {
  const float peak = *std::ranges::max_element(logits);
  float sum = 0;
  for (float& logit : logits) {
    logit = std::exp(logit - peak);
    sum += logit;
  }
  for (float& logit : logits) {
    logit /= sum;
  }
  constexpr float kChosen = -1; // no probability
  for (ExpertChoice& choice : choices) {
    std::optional<size_t> best; // there is one, also among NaNs
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] != kChosen && (!best || logits[i] > logits[*best])) {
        best = i;
      }
    }
    choice = {static_cast<int>(*best), logits[*best]};
    logits[*best] = kChosen;
  }
  std::ranges::sort(choices, {}, &ExpertChoice::expert);
  float chosen_sum = 0;
  for (const ExpertChoice& choice : choices) {
    chosen_sum += choice.weight;
  }
  for (ExpertChoice& choice : choices) {
    choice.weight /= renormalises ? chosen_sum : 1;
  }
}

void moe_and_add(
    KernelContext& context,
    const MoeView& view,
    int tokens,
    const float* x,
    float* out) {
  Moe moe(context, view, tokens, x, out);
  const ThreadPool::Step awake(context.pool);
  context.pool.run([&](int thread) { moe.route(thread); });
  moe.group();
  context.pool.run([&](int thread) { moe.run(thread); });
}

} // namespace ingle
