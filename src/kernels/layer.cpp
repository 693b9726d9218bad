#include "kernels/layer.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/products.h"

namespace ingle {
namespace {

// Token t of [T, columns].
auto row_of(const float* x, int columns) {
  return [=](int t, float*) { return x + static_cast<int64_t>(t) * columns; };
}

void apply_norm(
    const KernelContext& context,
    const NormView& norm,
    const float* x,
    int columns,
    float* out) {
  if (norm.bias != nullptr) {
    context.set.layer_norm(x, norm.weight, norm.bias, norm.eps, columns, out);
  } else {
    context.set.rms_norm(x, norm.weight, norm.eps, columns, out);
  }
}

auto normed_row_of(
    const KernelContext& context,
    const NormView& norm,
    const float* x,
    int columns) {
  return [=, &context](int t, float* row) -> const float* {
    const float* own = x + static_cast<int64_t>(t) * columns;
    if (norm.weight == nullptr) {
      return own;
    }
    apply_norm(context, norm, own, columns, row);
    return row;
  };
}

int token_count(std::span<const AttentionRow> rows) {
  int count = 0;
  for (const AttentionRow& row : rows) {
    count += row.tokens;
  }
  return count;
}

// The last of a part of a layer: x and y = linear(inputs) to `out`. x may be
// null: y alone.
class ResidualPart {
 public:
  ResidualPart(
      KernelContext& context,
      const LinearView& linear,
      const ResidualView& view,
      int tokens,
      const float* x,
      float* out)
      : context_(context),
        linear_(linear),
        view_(view),
        tokens_(tokens),
        x_(x),
        out_(out) {
    if (!view.is_plain()) {
      context.branch.reserve(
          sizeof(float) * static_cast<size_t>(tokens) *
          static_cast<size_t>(linear.matrix->rows));
    }
  }

  void operator()(int thread, const ProductInputs& inputs) const {
    const int columns = linear_.matrix->rows;
    const auto branch = reinterpret_cast<float*>(context_.branch.data());
    inputs.multiply(
        thread,
        {.matrix = linear_.matrix,
         .bias = linear_.bias,
         .addend = view_.is_plain() ? x_ : nullptr,
         .out = view_.is_plain() ? out_ : branch,
         .stride = columns});
    if (view_.is_plain()) {
      return;
    }
    context_.pool.barrier(thread);
    const Share share = share_of(tokens_, thread, context_.pool.threads());
    for (int t = share.begin; t < share.end; ++t) {
      const auto at = static_cast<int64_t>(t) * columns;
      const float* x = x_ == nullptr ? nullptr : x_ + at;
      add(x, branch + at, columns, out_ + at);
    }
  }

 private:
  void add(const float* x, float* y, int columns, float* out) const {
    if (view_.norm.weight != nullptr) {
      apply_norm(context_, view_.norm, y, columns, y);
    }
    for (int i = 0; i < columns; ++i) {
      out[i] = view_.total * ((x == nullptr ? 0 : x[i]) + view_.scale * y[i]);
    }
  }

  KernelContext& context_;
  const LinearView& linear_;
  const ResidualView& view_;
  int tokens_;
  const float* x_;
  float* out_;
};

// What every thread does in attend_and_add().
class AttentionPart {
 public:
  AttentionPart(
      KernelContext& context,
      const AttentionView& view,
      std::span<const AttentionRow> rows,
      const float* x,
      float* out)
      : context_(context),
        view_(view),
        x_(x),
        attention_(context, view, rows),
        normed_(
            context,
            attention_.tokens(),
            {view.q,
             view.k.matrix == nullptr ? view.q : view.k,
             view.v.matrix == nullptr ? view.q : view.v}),
        attended_(context, attention_.tokens(), {view.o}),
        residual_(context, view.o, view.residual, attention_.tokens(), x, out) {
  }

  void operator()(int thread) {
    const int hidden = view_.q.matrix->columns;
    normed_.pack(thread, normed_row_of(context_, view_.norm, x_, hidden));
    attention_.project(thread, normed_);
    context_.pool.barrier(thread);
    attention_.attend(thread);
    attended_.pack(thread, [&](int t, float* scratch) {
      return attention_.attended(thread, t, scratch);
    });
    residual_(thread, attended_);
  }

 private:
  KernelContext& context_;
  const AttentionView& view_;
  const float* x_;
  Attention attention_;
  ProductInputs normed_;
  ProductInputs attended_;
  ResidualPart residual_;
};

// What every thread does in mlp_and_add(). `add_to`: x, or null.
class MlpPart {
 public:
  MlpPart(
      KernelContext& context,
      const MlpView& view,
      int tokens,
      const float* x,
      const float* add_to,
      float* out)
      : context_(context),
        view_(view),
        x_(x),
        tokens_(tokens),
        is_gated_(view.up.matrix != nullptr),
        are_alike_(
            is_gated_ && view.gate.matrix->has_format_of(*view.up.matrix) &&
            view.gate.adapters.empty() && view.up.adapters.empty()),
        normed_(context, tokens, {view.gate, is_gated_ ? view.up : view.gate}),
        activated_(context, tokens, {view.down}),
        residual_(context, view.down, view.residual, tokens, add_to, out) {
    context.projected.reserve(
        sizeof(float) * static_cast<size_t>(tokens) *
        static_cast<size_t>(view.gate.matrix->rows) *
        (is_gated_ && !are_alike_ ? 2 : 1));
  }

  void operator()(int thread) {
    const int hidden = view_.gate.matrix->columns;
    const int inner = view_.gate.matrix->rows;
    const auto activated = reinterpret_cast<float*>(context_.projected.data());
    normed_.pack(thread, normed_row_of(context_, view_.norm, x_, hidden));
    if (are_alike_) {
      multiply(thread, view_.gate, &view_.up, activated);
      context_.pool.barrier(thread);
      activated_.pack(thread, row_of(activated, inner));
    } else {
      const float* factors = view_.factors;
      int64_t stride = view_.factors_stride;
      multiply(thread, view_.gate, nullptr, activated);
      if (is_gated_) {
        float* up = activated + static_cast<int64_t>(tokens_) * inner;
        multiply(thread, view_.up, nullptr, up);
        factors = up;
        stride = inner;
      }
      context_.pool.barrier(thread);
      activated_.pack(thread, [&](int t, float* row) -> const float* {
        std::copy_n(activated + static_cast<int64_t>(t) * inner, inner, row);
        context_.set.activate_gate(
            row,
            factors == nullptr ? nullptr : factors + t * stride,
            view_.activation,
            inner);
        return row;
      });
    }
    residual_(thread, activated_);
  }

 private:
  void multiply(
      int thread,
      const LinearView& linear,
      const LinearView* up,
      float* out) const {
    normed_.multiply(
        thread,
        {.matrix = linear.matrix,
         .bias = linear.bias,
         .up = up == nullptr ? nullptr : up->matrix,
         .up_bias = up == nullptr ? nullptr : up->bias,
         .activation = view_.activation,
         .out = out,
         .stride = linear.matrix->rows});
  }

  KernelContext& context_;
  const MlpView& view_;
  const float* x_;
  int tokens_;
  bool is_gated_;
  // Gate and up are multiplied side by side: nothing comes between what they
  // give and the activation.
  bool are_alike_;
  ProductInputs normed_;
  ProductInputs activated_;
  ResidualPart residual_;
};

} // namespace

void embed(
    KernelContext& context,
    const PackedMatrix& table,
    std::span<const int32_t> ids,
    float scale,
    float* out) {
  const auto count = static_cast<int>(ids.size());
  context.pool.run([&](int thread) {
    const Share share = share_of(count, thread, context.pool.threads());
    for (int t = share.begin; t < share.end; ++t) {
      float* row = out + static_cast<int64_t>(t) * table.columns;
      unpack_row(table, ids[static_cast<size_t>(t)], row);
      for (int i = 0; scale != 1 && i < table.columns; ++i) {
        row[i] *= scale;
      }
    }
  });
}

void attend_and_add(
    KernelContext& context,
    const AttentionView& view,
    std::span<const AttentionRow> rows,
    const float* x,
    float* out) {
  AttentionPart part(context, view, rows, x, out);
  context.pool.run(part);
}

void mlp_and_add(
    KernelContext& context,
    const MlpView& view,
    int tokens,
    const float* x,
    float* out) {
  MlpPart part(context, view, tokens, x, x, out);
  context.pool.run(part);
}

void mlp(
    KernelContext& context,
    const MlpView& view,
    int tokens,
    const float* x,
    float* out) {
  MlpPart part(context, view, tokens, x, nullptr, out);
  context.pool.run(part);
}

void decoder_layer(
    KernelContext& context,
    const AttentionView& attention,
    const MlpView& mlp,
    std::span<const AttentionRow> rows,
    const float* x,
    float* out) {
  const int tokens = token_count(rows);
  context.middle.reserve(
      sizeof(float) * static_cast<size_t>(tokens) *
      static_cast<size_t>(mlp.down.matrix->rows));
  const auto middle = reinterpret_cast<float*>(context.middle.data());
  AttentionPart first(context, attention, rows, x, middle);
  MlpPart second(context, mlp, tokens, middle, middle, out);
  context.pool.run([&](int thread) {
    first(thread);
    context.pool.barrier(thread);
    second(thread);
  });
}

void norm_and_head(
    KernelContext& context,
    const NormView& norm,
    const LinearView& head,
    float soft_cap,
    int tokens,
    const float* x,
    float* out) {
  const int hidden = head.matrix->columns;
  ProductInputs normed(context, Inputs::kTwoPlanes, tokens, {head});
  context.pool.run([&](int thread) {
    normed.pack(thread, normed_row_of(context, norm, x, hidden));
    normed.multiply(
        thread,
        {.matrix = head.matrix,
         .bias = head.bias,
         .out = out,
         .stride = head.matrix->rows});
    if (soft_cap > 0) {
      context.pool.barrier(thread);
      const auto count = tokens * static_cast<int64_t>(head.matrix->rows);
      const int threads = context.pool.threads();
      const int64_t begin = count * thread / threads;
      const int64_t end = count * (thread + 1) / threads;
      context.set.soften(out + begin, end - begin, soft_cap);
    }
  });
}

} // namespace ingle
