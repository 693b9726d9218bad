#include "kernels/gated_delta.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "kernels/products.h"

namespace ingle {
namespace {

// Tokens that a head's S meets at a time: it is read from the second cache once
// for all of them.
constexpr int kBlockTokens = 16;

size_t product(int a, int b) {
  return static_cast<size_t>(a) * static_cast<size_t>(b);
}

// How much of S a token leaves: exp(-rate * softplus(x)).
float decay_of(float rate, float x) {
  const float softplus =
      std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x)));
  return std::exp(-rate * softplus);
}

float sigmoid_of(float x) {
  return 1 / (1 + std::exp(-x));
}

// What every thread does in gated_delta_and_add().
class GatedDelta {
 public:
  GatedDelta(
      KernelContext& context,
      const GatedDeltaView& view,
      std::span<const GatedDeltaRow> rows,
      int tokens,
      const float* x,
      float* out)
      : context_(context),
        view_(view),
        shape_(view.shape),
        rows_(rows),
        width_(
            shape_.channels() + shape_.value_width() + 2 * shape_.value_heads),
        x_(x),
        out_(out),
        normed_(context, tokens, {view.qkv, view.z, view.b, view.a}),
        gated_(context, tokens, {view.out}) {
    context.projected.reserve(sizeof(float) * product(tokens, width_));
    context.attended.reserve(
        sizeof(float) * product(tokens, shape_.value_width()));
    context.delta.reserve(
        static_cast<size_t>(context.pool.threads()) * scratch_bytes());
  }

  void operator()(int thread);

 private:
  // What some tokens bring to one head.
  struct Scratch {
    float* queries;
    float* keys;
    float* values;
    float* decays;
    float* betas;
  };

  void project(int thread);
  void run_head(int thread, int row, int head);
  void run_block(int thread, int row, int head, int begin, int count);
  void prepare(const Scratch&, int row, int head, int token, int i) const;
  void keep_last(int thread) const;

  size_t scratch_bytes() const {
    const size_t floats = kBlockTokens *
        static_cast<size_t>(2 * shape_.key_dim + shape_.value_dim + 2);
    return (sizeof(float) * floats + 63) / 64 * 64;
  }
  Scratch scratch_of(int thread) const {
    const auto queries = reinterpret_cast<float*>(
        context_.delta.data() + static_cast<size_t>(thread) * scratch_bytes());
    float* keys = queries + ptrdiff_t{kBlockTokens} * shape_.key_dim;
    float* values = keys + ptrdiff_t{kBlockTokens} * shape_.key_dim;
    float* decays = values + ptrdiff_t{kBlockTokens} * shape_.value_dim;
    return {queries, keys, values, decays, decays + kBlockTokens};
  }
  // Among all.
  int first_token_of(int row) const {
    int first = 0;
    for (int i = 0; i < row; ++i) {
      first += row_of(i).tokens;
    }
    return first;
  }
  const GatedDeltaRow& row_of(int i) const {
    return rows_[static_cast<size_t>(i)];
  }
  // Queries, keys, values; gates; beta; decay.
  float* projected_of(int token) const {
    return reinterpret_cast<float*>(context_.projected.data()) +
        product(token, width_);
  }
  float* read_of(int token) const {
    return reinterpret_cast<float*>(context_.attended.data()) +
        product(token, shape_.value_width());
  }

  KernelContext& context_;
  const GatedDeltaView& view_;
  const GatedDeltaShape& shape_;
  std::span<const GatedDeltaRow> rows_;
  int width_;
  const float* x_;
  float* out_;
  ProductInputs normed_;
  ProductInputs gated_;
  std::atomic<int> next_head_{0};
};

void GatedDelta::operator()(int thread) {
  const int hidden = view_.qkv.matrix->columns;
  normed_.pack(thread, [&](int t, float* row) -> const float* {
    const float* own = x_ + static_cast<int64_t>(t) * hidden;
    context_.set.rms_norm(own, view_.norm.weight, view_.norm.eps, hidden, row);
    return row;
  });
  project(thread);
  context_.pool.barrier(thread);
  const int heads = static_cast<int>(rows_.size()) * shape_.value_heads;
  int i = 0;
  while ((i = next_head_.fetch_add(1, std::memory_order_relaxed)) < heads) {
    run_head(thread, i / shape_.value_heads, i % shape_.value_heads);
  }
  context_.pool.barrier(thread);
  keep_last(thread);
  gated_.pack(thread, [&](int t, float*) { return read_of(t); });
  gated_.multiply(
      thread,
      {.matrix = view_.out.matrix,
       .bias = view_.out.bias,
       .addend = x_,
       .out = out_,
       .stride = hidden});
}

void GatedDelta::project(int thread) {
  float* out = projected_of(0);
  for (const LinearView* linear : {&view_.qkv, &view_.z, &view_.b, &view_.a}) {
    normed_.multiply(
        thread,
        {.matrix = linear->matrix,
         .bias = linear->bias,
         .out = out,
         .stride = width_});
    out += linear->matrix->rows;
  }
}

void GatedDelta::run_head(int thread, int row, int head) {
  const int tokens = row_of(row).tokens;
  for (int begin = 0; begin < tokens; begin += kBlockTokens) {
    const int count = std::min(kBlockTokens, tokens - begin);
    run_block(thread, row, head, begin, count);
  }
}

void GatedDelta::run_block(
    int thread,
    int row,
    int head,
    int begin,
    int count) {
  const Scratch scratch = scratch_of(thread);
  for (int i = 0; i < count; ++i) {
    prepare(scratch, row, head, begin + i, i);
  }
  const size_t at = shape_.heads_offset() +
      sizeof(float) * static_cast<size_t>(head) * shape_.head_floats();
  const std::byte* before = begin == 0 ? row_of(row).before : row_of(row).after;
  const int first = first_token_of(row) + begin;
  float* read = read_of(first) + ptrdiff_t{head} * shape_.value_dim;
  context_.set.delta_rule(
      {.tokens = count,
       .key_dim = shape_.key_dim,
       .value_dim = shape_.value_dim,
       .queries = scratch.queries,
       .keys = scratch.keys,
       .values = scratch.values,
       .decays = scratch.decays,
       .betas = scratch.betas,
       .before = reinterpret_cast<const float*>(before + at),
       .after = reinterpret_cast<float*>(row_of(row).after + at),
       .out = read,
       .out_stride = shape_.value_width()});
  for (int i = 0; i < count; ++i) {
    float* own = read + ptrdiff_t{i} * shape_.value_width();
    context_.set.norm_and_gate(
        own,
        view_.head_norm.weight,
        view_.head_norm.eps,
        projected_of(first + i) + shape_.channels() +
            ptrdiff_t{head} * shape_.value_dim,
        shape_.value_dim,
        own);
  }
}

// What the row's token brings to the head: the i-th of its block.
void GatedDelta::prepare(
    const Scratch& scratch,
    int row,
    int head,
    int token,
    int i) const {
  const int channels = shape_.channels();
  const int first = first_token_of(row);
  const auto kept = reinterpret_cast<const float*>(row_of(row).before);
  const float* seen[kMaxTaps];
  for (int j = 0; j < shape_.taps; ++j) {
    const int at = token - (shape_.taps - 1) + j;
    seen[j] = at < 0 ? kept + product(at + shape_.taps - 1, channels)
                     : projected_of(first + at);
  }
  const auto convolve = [&](int channel, int n, float* out) {
    const float* from[kMaxTaps];
    for (int j = 0; j < shape_.taps; ++j) {
      from[j] = seen[j] + channel;
    }
    context_.set.convolve(
        from, view_.conv + channel, channels, shape_.taps, n, out);
  };
  const int key_head = head / (shape_.value_heads / shape_.key_heads);
  const int key_channel = key_head * shape_.key_dim;
  float* query = scratch.queries + ptrdiff_t{i} * shape_.key_dim;
  float* key = scratch.keys + ptrdiff_t{i} * shape_.key_dim;
  convolve(key_channel, shape_.key_dim, query);
  convolve(shape_.key_width() + key_channel, shape_.key_dim, key);
  convolve(
      2 * shape_.key_width() + head * shape_.value_dim,
      shape_.value_dim,
      scratch.values + ptrdiff_t{i} * shape_.value_dim);
  const float length = 1 / std::sqrt(static_cast<float>(shape_.key_dim));
  const auto to_length = [&](float* x, float size) {
    context_.set.scale_to_length(x, shape_.key_dim, kGatedDeltaUnitEps, size);
  };
  to_length(query, length);
  to_length(key, 1);
  const float* gates =
      projected_of(first + token) + channels + shape_.value_width();
  scratch.betas[i] = sigmoid_of(gates[head]);
  scratch.decays[i] = decay_of(
      view_.decay_rate[head],
      gates[shape_.value_heads + head] + view_.decay_bias[head]);
}

// Of each row what the convolution looks back on next. No thread reads what was
// kept any more.
void GatedDelta::keep_last(int thread) const {
  const int kept = shape_.taps - 1;
  const Share share =
      share_of(shape_.channels(), thread, context_.pool.threads());
  int first = 0;
  for (const GatedDeltaRow& row : rows_) {
    const auto before = reinterpret_cast<const float*>(row.before);
    const auto after = reinterpret_cast<float*>(row.after);
    for (int i = 0; i < kept; ++i) {
      const int at = row.tokens - kept + i; // among the row's tokens
      const float* from = at < 0
          ? before + product(at + kept, shape_.channels())
          : projected_of(first + at);
      std::copy(
          from + share.begin,
          from + share.end,
          after + product(i, shape_.channels()) + share.begin);
    }
    first += row.tokens;
  }
}

} // namespace

size_t GatedDeltaShape::heads_offset() const {
  const size_t bytes = sizeof(float) * product(taps - 1, channels());
  return (bytes + 63) / 64 * 64;
}

size_t GatedDeltaShape::head_floats() const {
  const int panels = (value_dim + kDeltaPanel - 1) / kDeltaPanel;
  return product(panels, key_dim) * kDeltaPanel;
}

size_t GatedDeltaShape::state_bytes() const {
  return heads_offset() +
      sizeof(float) * static_cast<size_t>(value_heads) * head_floats();
}

void gated_delta_and_add(
    KernelContext& context,
    const GatedDeltaView& view,
    std::span<const GatedDeltaRow> rows,
    const float* x,
    float* out) {
  int tokens = 0;
  for (const GatedDeltaRow& row : rows) {
    tokens += row.tokens;
  }
  GatedDelta delta(context, view, rows, tokens, x, out);
  context.pool.run(delta);
}

} // namespace ingle
