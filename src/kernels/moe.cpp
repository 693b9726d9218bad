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
        experts_(view.router.matrix->rows),
        has_shared_(view.share.matrix != nullptr),
        per_token_(view.top_k + (has_shared_ ? 1 : 0)),
        x_(x),
        out_(out),
        choices_(product(tokens, per_token_)),
        pairs_(choices_.size()),
        places_(choices_.size()),
        router_(
            context,
            Inputs::kTwoPlanes,
            tokens,
            {view.router, has_shared_ ? view.share : view.router}) {
    context.routed.reserve(
        sizeof(float) * product(tokens, hidden_ + experts_ + 1));
    size_t floats = product(tokens, view.top_k) * inner_floats(expert(0));
    if (has_shared_) {
      floats += static_cast<size_t>(tokens) * inner_floats(view.shared);
    }
    context.projected.reserve(sizeof(float) * floats);
    context.branch.reserve(
        sizeof(float) * choices_.size() * static_cast<size_t>(hidden_));
  }

  void route(int thread);
  // Between the regions.
  void group();
  void run(int thread);

 private:
  // An expert's pairs: [begin, begin + count).
  struct Group {
    ExpertView expert;
    int begin = 0;
    int count = 0;
    float* inner = nullptr; // [count, M]: first gates, then what they let pass
    float* up = nullptr; // [count, M]; null: multiplied with gate at once
    ProductInputs normed;
    ProductInputs activated;

    int width() const {
      return expert.gate.matrix->rows;
    }
  };

  // Nothing where there is no norm, and x is `out`.
  void norm(const NormView& view, const float* x, float* out) const {
    if (view.weight != nullptr) {
      context_.set.rms_norm(x, view.weight, view.eps, hidden_, out);
    }
  }
  void choose(int token);
  void multiply_in(int thread, const Group& group) const;
  void multiply_out(int thread, Group& group) const;
  void add(int token) const;
  // The next group's tiles come where this one's are.
  void finish(int thread, const Group& group) const {
    if (group.count > context_.set.tile_tokens) {
      context_.pool.barrier(thread);
    }
  }

  // Of the router's; after them the shared one.
  ExpertView expert(int i) const;
  static bool are_alike(const ExpertView& expert) {
    return expert.gate.matrix->has_format_of(*expert.up.matrix);
  }
  // Of one pair.
  static size_t inner_floats(const ExpertView& expert) {
    return product(expert.gate.matrix->rows, are_alike(expert) ? 1 : 2);
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
  float* shares() const {
    return logits_of(tokens_);
  }
  const float* beside_of(int token) const {
    return reinterpret_cast<const float*>(context_.middle.data()) +
        product(token, hidden_);
  }
  float* result_of(int pair) const {
    return reinterpret_cast<float*>(context_.branch.data()) +
        product(pair, hidden_);
  }

  KernelContext& context_;
  const MoeView& view_;
  int tokens_;
  int hidden_;
  int experts_;
  bool has_shared_;
  int per_token_; // experts
  const float* x_;
  float* out_;
  std::vector<ExpertChoice> choices_; // [T, per_token]
  // A pair is a token and one of its experts. They stand by expert.
  std::vector<int> pairs_; // the token of each
  std::vector<int> places_; // of choices_: which pair it is
  ProductInputs router_;
  std::vector<Group> groups_;
};

ExpertView Moe::expert(int i) const {
  if (i == experts_) {
    return view_.shared;
  }
  const auto at = static_cast<size_t>(i);
  const int inner = view_.gate[at].rows;
  return {
      {&view_.gate[at], bias_of(view_.gate_bias, i, inner)},
      {&view_.up[at], bias_of(view_.up_bias, i, inner)},
      {&view_.down[at], bias_of(view_.down_bias, i, hidden_)}};
}

void Moe::route(int thread) {
  const Share own = tokens_of(thread);
  for (int t = own.begin; t < own.end; ++t) {
    norm(view_.norm, x_ + product(t, hidden_), normed_of(t));
  }
  context_.pool.barrier(thread);
  router_.pack(thread, [&](int t, float* row) -> const float* {
    if (view_.router_norm.weight == nullptr) {
      return normed_of(t);
    }
    norm(view_.router_norm, x_ + product(t, hidden_), row);
    return row;
  });
  router_.multiply(
      thread,
      {.matrix = view_.router.matrix,
       .bias = view_.router.bias,
       .out = logits_of(0),
       .stride = experts_});
  if (has_shared_) {
    router_.multiply(
        thread,
        {.matrix = view_.share.matrix,
         .bias = view_.share.bias,
         .out = shares(),
         .stride = 1});
  }
  context_.pool.barrier(thread);
  for (int t = own.begin; t < own.end; ++t) {
    choose(t);
  }
}

void Moe::choose(int token) {
  const std::span logits(logits_of(token), static_cast<size_t>(experts_));
  const auto own = std::span(choices_).subspan(
      product(token, per_token_), static_cast<size_t>(per_token_));
  choose_experts(
      logits, view_.renormalises, own.first(static_cast<size_t>(view_.top_k)));
  if (view_.expert_scales != nullptr) {
    for (ExpertChoice& choice : own.first(static_cast<size_t>(view_.top_k))) {
      choice.weight *= view_.expert_scales[choice.expert];
    }
  }
  if (has_shared_) {
    own.back() = {experts_, 1 / (1 + std::exp(-shares()[token]))};
  }
}

void Moe::group() {
  const int experts = experts_ + (has_shared_ ? 1 : 0);
  std::vector<int> ends(static_cast<size_t>(experts));
  for (const ExpertChoice& choice : choices_) {
    ++ends[static_cast<size_t>(choice.expert)];
  }
  auto* inner = reinterpret_cast<float*>(context_.projected.data());
  int begin = 0;
  for (int i = 0; i < experts; ++i) {
    int& end = ends[static_cast<size_t>(i)];
    const int count = end;
    end = begin; // and again the end, when all are placed
    if (count > 0) {
      const ExpertView own = expert(i);
      float* up = are_alike(own)
          ? nullptr
          : inner + product(count, own.gate.matrix->rows);
      groups_.push_back(
          {own,
           begin,
           count,
           inner,
           up,
           {context_, count, {own.gate, own.up}},
           {context_, count, {own.down}}});
      inner += static_cast<size_t>(count) * inner_floats(own);
    }
    begin += count;
  }
  for (size_t i = 0; i < choices_.size(); ++i) {
    const int place = ends[static_cast<size_t>(choices_[i].expert)]++;
    places_[i] = place;
    pairs_[static_cast<size_t>(place)] = static_cast<int>(i) / per_token_;
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
  const auto& [gate, up, down] = group.expert;
  const bool at_once = group.up == nullptr;
  group.normed.multiply(
      thread,
      {.matrix = gate.matrix,
       .bias = gate.bias,
       .up = at_once ? up.matrix : nullptr,
       .up_bias = up.bias,
       .activation = view_.activation,
       .out = group.inner,
       .stride = group.width()});
  if (!at_once) {
    group.normed.multiply(
        thread,
        {.matrix = up.matrix,
         .bias = up.bias,
         .out = group.up,
         .stride = group.width()});
  }
}

void Moe::multiply_out(int thread, Group& group) const {
  const int width = group.width();
  group.activated.pack(thread, [&](int i, float* row) -> const float* {
    const float* inner = group.inner + product(i, width);
    if (group.up == nullptr) {
      return inner;
    }
    std::copy_n(inner, width, row);
    context_.set.activate_gate(
        row, group.up + product(i, width), view_.activation, width);
    return row;
  });
  group.activated.multiply(
      thread,
      {.matrix = group.expert.down.matrix,
       .bias = group.expert.down.bias,
       .out = result_of(group.begin),
       .stride = hidden_});
}

// In the order of choices_, which is that of the experts' indices.
void Moe::add(int token) const {
  const size_t first = product(token, per_token_);
  float* sum = result_of(places_[first]);
  for (int i = 0; i < hidden_; ++i) {
    sum[i] *= choices_[first].weight;
  }
  for (size_t j = first + 1; j < first + static_cast<size_t>(per_token_); ++j) {
    const float* result = result_of(places_[j]);
    for (int i = 0; i < hidden_; ++i) {
      sum[i] += choices_[j].weight * result[i];
    }
  }
  norm(view_.sum_norm, sum, sum);
  if (view_.beside != nullptr) {
    const float* beside = beside_of(token);
    for (int i = 0; i < hidden_; ++i) {
      sum[i] += beside[i];
    }
  }
  const ResidualView& residual = view_.residual;
  norm(residual.norm, sum, sum);
  const float* x = x_ + product(token, hidden_);
  float* out = out_ + product(token, hidden_);
  for (int i = 0; i < hidden_; ++i) {
    out[i] = residual.total * (x[i] + residual.scale * sum[i]);
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
  const ThreadPool::Step awake(context.pool);
  if (view.beside != nullptr) {
    context.middle.reserve(
        sizeof(float) * product(tokens, view.router.matrix->columns));
    mlp(context,
        *view.beside,
        tokens,
        x,
        reinterpret_cast<float*>(context.middle.data()));
  }
  Moe moe(context, view, tokens, x, out);
  context.pool.run([&](int thread) { moe.route(thread); });
  moe.group();
  context.pool.run([&](int thread) { moe.run(thread); });
}

} // namespace ingle
