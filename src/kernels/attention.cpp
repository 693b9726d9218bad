#include "kernels/attention.h"

#include <algorithm>

namespace ingle {
namespace {

// Up to so many tokens of a row are attended to block by block.
constexpr int kFewTokens = 4;
// Up to so many blocks are merged by each thread for itself.
constexpr int kFewBlocks = 3;
// Tokens of a piece of a prompt whose queries walk over the blocks together:
// many, so that a block's keys and values are used while they are near.
constexpr int kManyTokens = 32;

size_t product(int a, int b) {
  return static_cast<size_t>(a) * static_cast<size_t>(b);
}

void clear(PartialAttention& total, int n) {
  total.max = kUnseen;
  total.weight = 0;
  std::fill_n(total.values, n, 0.0f);
}

// Memory for their values.
void give_values(
    std::vector<PartialAttention>& parts,
    PageBuffer& values,
    KvBlockShape shape) {
  const auto dim = static_cast<size_t>(shape.padded_dim());
  values.reserve(sizeof(float) * parts.size() * dim);
  auto at = reinterpret_cast<float*>(values.data());
  for (PartialAttention& part : parts) {
    part.values = at;
    at += dim;
  }
}

} // namespace

Attention::Attention(
    KernelContext& context,
    const AttentionView& view,
    std::span<const AttentionRow> rows)
    : context_(context),
      scratch_(context.attention),
      view_(view),
      rows_(rows),
      kept_{view.head_dim, view.kv_bits, view.kv_group_size},
      shape_(kept_.widened()),
      query_stride_(view.has_gates ? 2 * view.head_dim : view.head_dim),
      has_keys_(view.k.matrix != nullptr),
      width_(
          view.heads * query_stride_ +
          (has_keys_ ? 2 * view.kv_heads * view.head_dim : 0)) {
  scratch_.tokens.clear();
  scratch_.items.clear();
  scratch_.partials.clear();
  scratch_.few_work = 0;
  for (size_t row = 0; row < rows.size(); ++row) {
    plan_row(static_cast<int>(row));
  }
  context_.projected.reserve(sizeof(float) * product(tokens(), width_));
  context_.attended.reserve(
      sizeof(float) * product(tokens(), view.heads * view.head_dim));
  const auto threads = static_cast<size_t>(context_.pool.threads());
  const size_t heads = product(context_.pool.threads(), view_.kv_heads);
  scratch_.packed.assign(heads, -1);
  scratch_.queries.reserve(
      sizeof(int16_t) * heads * item_rows() *
      static_cast<size_t>(shape_.padded_dim()));
  scratch_.query_scales.resize(heads * item_rows());
  if (kept_.is_quantized()) {
    scratch_.widened.reserve(threads * shape_.bytes());
  }
  scratch_.running.resize(threads * (item_rows() + kMaxQueryRows));
  give_values(scratch_.partials, scratch_.partial_values, shape_);
  give_values(scratch_.running, scratch_.running_values, shape_);
}

// At most.
size_t Attention::item_rows() const {
  return product(has_many_ ? kManyTokens : kFewTokens, heads_per_kv());
}

PartialAttention* Attention::running_of(int thread) {
  return scratch_.running.data() +
      static_cast<size_t>(thread) * (item_rows() + kMaxQueryRows);
}

size_t Attention::query_at(int thread, int kv_head, int row) const {
  return (product(thread, view_.kv_heads) + static_cast<size_t>(kv_head)) *
      item_rows() +
      static_cast<size_t>(row);
}

int32_t* Attention::query_of(int thread, int kv_head, int row) const {
  return reinterpret_cast<int32_t*>(scratch_.queries.data()) +
      query_at(thread, kv_head, row) *
      static_cast<size_t>(shape_.padded_dim() / 2);
}

float& Attention::query_scale(int thread, int kv_head, int row) const {
  return scratch_.query_scales[query_at(thread, kv_head, row)];
}

int64_t Attention::first_block_of(int64_t position) const {
  return view_.window == 0
      ? 0
      : std::max<int64_t>(0, position - view_.window + 1) / kBlockPositions;
}

void Attention::plan_row(int row) {
  const AttentionRow& r = rows_[static_cast<size_t>(row)];
  const int first_token = tokens();
  for (int t = 0; t < r.tokens; ++t) {
    scratch_.tokens.push_back({.row = row, .position = r.position + t});
  }
  if (r.tokens <= kFewTokens) {
    plan_few(row, first_token);
  } else {
    plan_many(row, first_token);
  }
}

void Attention::plan_few(int row, int first_token) {
  const int count = rows_[static_cast<size_t>(row)].tokens;
  const int64_t first = first_block_of(token(first_token).position);
  const int64_t last =
      token(first_token + count - 1).position / kBlockPositions;
  for (int t = first_token; t < first_token + count; ++t) {
    Token& each = scratch_.tokens[static_cast<size_t>(t)];
    each.first_partial = static_cast<int>(scratch_.partials.size());
    each.blocks = static_cast<int>(last - first + 1);
    merges_together_ |= each.blocks > kFewBlocks;
    scratch_.partials.resize(
        scratch_.partials.size() + product(each.blocks, view_.heads));
  }
  // As they lie in memory.
  for (int64_t b = first; b <= last; ++b) {
    const int begin = seen_of(token(first_token).position, b).begin;
    const int end = seen_of(token(first_token + count - 1).position, b).end;
    for (int h = 0; h < view_.kv_heads; ++h) {
      Item item{row, h, first_token, count, b, b, static_cast<int>(b - first)};
      item.work_before = scratch_.few_work;
      item.work = end - begin;
      scratch_.few_work += item.work;
      scratch_.items.push_back(item);
    }
  }
}

void Attention::plan_many(int row, int first_token) {
  const int count = rows_[static_cast<size_t>(row)].tokens;
  has_many_ = true;
  // The last ones, which see most, first: what is left at the end is short.
  const int blocks = (count + kManyTokens - 1) / kManyTokens;
  for (int b = blocks - 1; b >= 0; --b) {
    const int begin = first_token + b * kManyTokens;
    const int size = std::min(kManyTokens, first_token + count - begin);
    const int64_t first = first_block_of(token(begin).position);
    const int64_t last = token(begin + size - 1).position / kBlockPositions;
    for (int h = 0; h < view_.kv_heads; ++h) {
      scratch_.items.push_back({row, h, begin, size, first, last});
    }
  }
}

float* Attention::projected_of(int token) const {
  return reinterpret_cast<float*>(context_.projected.data()) +
      product(token, width_);
}

void Attention::project(int thread, const ProductInputs& normed) {
  float* out = projected_of(0);
  for (const LinearView* linear : {&view_.q, &view_.k, &view_.v}) {
    if (linear->matrix == nullptr) {
      continue;
    }
    normed.multiply(
        thread,
        {.matrix = linear->matrix,
         .bias = linear->bias,
         .out = out,
         .stride = width_});
    out += linear->matrix->rows;
  }
}

// The thread's share of tokens: their queries and keys, over all heads.
void Attention::norm_all_heads(int thread) {
  const Share share = share_of(tokens(), thread, context_.pool.threads());
  const auto norm = [&](float* x, const NormView& view, int heads) {
    const int width = heads * view_.head_dim;
    context_.set.rms_norm(x, view.weight, view.eps, width, x);
  };
  for (int t = share.begin; t < share.end; ++t) {
    float* q = projected_of(t);
    norm(q, view_.q_norm, view_.heads);
    if (has_keys_) {
      float* k = q + ptrdiff_t{view_.heads} * query_stride_;
      norm(k, view_.k_norm, view_.kv_heads);
    }
  }
}

// A query or a key: normed, and turned to the token's position.
void Attention::place(float* head, const NormView& norm, int token) const {
  if (norm.weight != nullptr && !view_.norms_all_heads) {
    context_.set.rms_norm(head, norm.weight, norm.eps, view_.head_dim, head);
  }
  if (view_.rope_dims == 0) {
    return;
  }
  const auto at = static_cast<ptrdiff_t>(token) * (view_.rope_dims / 2);
  context_.set.rotate(
      head,
      view_.cosines + at,
      view_.sines + at,
      view_.rope_dims,
      view_.traditional_rope);
}

// The token's key and value to where they are kept.
void Attention::put(int i, int kv_head) {
  float* k = projected_of(i) + ptrdiff_t{view_.heads} * query_stride_ +
      ptrdiff_t{kv_head} * view_.head_dim;
  float* v = k + ptrdiff_t{view_.kv_heads} * view_.head_dim;
  if (view_.v.matrix == nullptr) {
    std::copy_n(k, view_.head_dim, v);
  }
  if (view_.v_norm.weight != nullptr) {
    const NormView& norm = view_.v_norm;
    context_.set.rms_norm(v, norm.weight, norm.eps, view_.head_dim, v);
  }
  place(k, view_.k_norm, i);
  const int64_t position = token(i).position;
  context_.set.put_kv(
      k,
      v,
      kept_,
      static_cast<int>(position % kBlockPositions),
      block_of(token(i).row, kv_head, position / kBlockPositions));
}

// Whose byte is whose: tokens at 2i and 2i + 1 of a row go to the same thread.
int Attention::starts_pair(int t) const {
  const bool is_second = t > 0 && t < tokens() && token(t).position % 2 != 0 &&
      token(t).row == token(t - 1).row;
  return is_second ? t + 1 : t;
}

void Attention::put_all(int thread) {
  const Share share = share_of(tokens(), thread, context_.pool.threads());
  const int end = starts_pair(share.end);
  for (int t = starts_pair(share.begin); t < end; ++t) {
    for (int h = 0; h < view_.kv_heads; ++h) {
      put(t, h);
    }
  }
}

// Of the item's tokens, those in its block, which no other item looks at.
void Attention::put_own(const Item& item) {
  for (int t = item.first_token; t < item.first_token + item.tokens; ++t) {
    if (token(t).position / kBlockPositions == item.first_block) {
      put(t, item.kv_head);
    }
  }
}

// By themselves: two threads may have items with the same ones. Once for all
// blocks of a row.
void Attention::pack_queries(int thread, const Item& item) {
  int& packed =
      scratch_.packed
          [product(thread, view_.kv_heads) + static_cast<size_t>(item.kv_head)];
  if (packed == item.first_token) {
    return;
  }
  packed = item.first_token;
  float* head = running_of(thread)->values;
  for (int row = 0; row < item.tokens * heads_per_kv(); ++row) {
    const int index = query_index(item, row);
    const int t = index / view_.heads;
    std::copy_n(
        projected_of(t) + ptrdiff_t{index % view_.heads} * query_stride_,
        view_.head_dim,
        head);
    place(head, view_.q_norm, t);
    const float own = view_.query_scales == nullptr ? 1 : view_.query_scales[t];
    query_scale(thread, item.kv_head, row) = own * view_.scale * kLog2E *
        context_.set.pack_query(
            head, shape_, query_of(thread, item.kv_head, row));
  }
}

void Attention::attend(int thread) {
  if (view_.norms_all_heads) {
    norm_all_heads(thread);
    context_.pool.barrier(thread);
  }
  attend_items(thread);
  context_.pool.barrier(thread);
  if (merges_together_) {
    merge(thread);
    context_.pool.barrier(thread);
  }
}

void Attention::attend_items(int thread) {
  if (has_many_) {
    if (has_keys_) {
      put_all(thread);
      context_.pool.barrier(thread);
    }
    size_t i = 0;
    while ((i = next_item_.fetch_add(1, std::memory_order_relaxed)) <
           scratch_.items.size()) {
      attend_item(thread, scratch_.items[i]);
    }
    return;
  }
  // Each thread has neighbouring blocks: it reads ahead.
  const size_t end = first_item_of(thread + 1);
  for (size_t i = first_item_of(thread); i < end; ++i) {
    if (has_keys_) {
      put_own(scratch_.items[i]);
    }
    attend_item(thread, scratch_.items[i]);
  }
}

// Of a step of few tokens: an item is the thread's in whose share of the work
// its middle lies.
size_t Attention::first_item_of(int thread) const {
  const auto is_before = [&](const Item& item) {
    const int64_t middle = 2 * item.work_before + item.work;
    return middle * context_.pool.threads() < 2 * scratch_.few_work * thread;
  };
  const auto& items = scratch_.items;
  return static_cast<size_t>(
      std::ranges::partition_point(items, is_before) - items.begin());
}

// Row `row` of an item is its token row / heads_per_kv().
int Attention::query_index(const Item& item, int row) const {
  const int t = item.first_token + row / heads_per_kv();
  return t * view_.heads + item.kv_head * heads_per_kv() + row % heads_per_kv();
}

// The positions of a block that one at `position` sees.
Share Attention::seen_of(int64_t position, int64_t block) const {
  const int64_t end = position + 1 - block * kBlockPositions;
  const int64_t begin = view_.window == 0 ? 0 : end - view_.window;
  const auto clamp = [](int64_t x) {
    return static_cast<int>(std::clamp<int64_t>(x, 0, kBlockPositions));
  };
  return {clamp(begin), clamp(end)};
}

// Rows [first, first + count) of the item against one block. False: none of
// them sees any of it, and there are no results.
bool Attention::attend_rows(
    int thread,
    const Item& item,
    const KvBlock& block,
    int first,
    int count,
    PartialAttention* results) {
  const int32_t* queries[kMaxQueryRows];
  float scales[kMaxQueryRows];
  int32_t begins[kMaxQueryRows];
  int32_t ends[kMaxQueryRows];
  bool is_seen = false;
  for (int r = 0; r < count; ++r) {
    const int index = query_index(item, first + r);
    queries[r] = query_of(thread, item.kv_head, first + r);
    scales[r] = query_scale(thread, item.kv_head, first + r);
    const Share seen =
        seen_of(token(index / view_.heads).position, block.number);
    begins[r] = seen.begin;
    ends[r] = seen.end;
    is_seen |= seen.begin < seen.end;
  }
  if (!is_seen) {
    return false;
  }
  context_.set.attend_block(
      {.shape = shape_,
       .block = block.data,
       .next = block.next,
       .rows = count,
       .queries = queries,
       .scales = scales,
       .begins = begins,
       .ends = ends,
       .soft_cap = view_.soft_cap * kLog2E},
      results);
  return true;
}

// A query's partial results, by block. Requires: it has any.
PartialAttention* Attention::partials_of(int query) {
  const Token& t = token(query / view_.heads);
  return scratch_.partials.data() + t.first_partial +
      ptrdiff_t{query % view_.heads} * t.blocks;
}

// Where a head of a row has a block.
std::byte* Attention::block_of(int row, int kv_head, int64_t number) const {
  const AttentionRow& r = rows_[static_cast<size_t>(row)];
  return r.blocks +
      ((number - r.first_block) * view_.kv_heads + kv_head) *
      static_cast<int64_t>(kept_.bytes());
}

// It, or what some token of the item sees of it, widened.
Attention::KvBlock
Attention::seen_block(int thread, const Item& item, int64_t number) {
  const std::byte* data = block_of(item.row, item.kv_head, number);
  if (!kept_.is_quantized()) {
    const bool is_piece = token(item.first_token).first_partial >= 0;
    const std::byte* next = is_piece
        ? data + kept_.bytes()
        : block_of(item.row, item.kv_head, number + 1);
    return {number, data, next};
  }
  std::byte* wide =
      scratch_.widened.data() + static_cast<size_t>(thread) * shape_.bytes();
  const int last = item.first_token + item.tokens - 1;
  const int begin = seen_of(token(item.first_token).position, number).begin;
  const int end = seen_of(token(last).position, number).end;
  context_.set.widen(
      data,
      kept_,
      begin / kTilePositions,
      (end + kTilePositions - 1) / kTilePositions,
      wide);
  return {number, wide, wide};
}

// Merges what the item's rows find in a block into their results.
void Attention::attend_block(int thread, const Item& item, int64_t number) {
  const KvBlock block = seen_block(thread, item, number);
  const int rows = item.tokens * heads_per_kv();
  PartialAttention* totals = running_of(thread);
  PartialAttention* found = totals + rows;
  for (int first = 0; first < rows; first += context_.set.query_rows) {
    const int count = std::min(context_.set.query_rows, rows - first);
    if (attend_rows(thread, item, block, first, count, found)) {
      for (int r = 0; r < count; ++r) {
        context_.set.merge(totals[first + r], found[r], shape_.padded_dim());
      }
    }
  }
}

void Attention::attend_item(int thread, const Item& item) {
  pack_queries(thread, item);
  if (token(item.first_token).first_partial < 0) {
    attend_blocks(thread, item);
  } else {
    attend_piece(thread, item);
  }
}

// All that the item's queries see: merged block by block.
void Attention::attend_blocks(int thread, const Item& item) {
  const int rows = item.tokens * heads_per_kv();
  PartialAttention* totals = running_of(thread);
  for (int r = 0; r < rows; ++r) {
    start(totals[r], query_index(item, r));
  }
  for (int64_t block = item.first_block; block <= item.last_block; ++block) {
    attend_block(thread, item, block);
  }
  for (int r = 0; r < rows; ++r) {
    context_.set.finish(
        totals[r], view_.head_dim, attended_of(query_index(item, r)));
  }
}

// One block, to be merged with others later.
void Attention::attend_piece(int thread, const Item& item) {
  const KvBlock block = seen_block(thread, item, item.first_block);
  const int rows = item.tokens * heads_per_kv();
  for (int first = 0; first < rows; first += context_.set.query_rows) {
    const int count = std::min(context_.set.query_rows, rows - first);
    PartialAttention results[kMaxQueryRows];
    for (int r = 0; r < count; ++r) {
      results[r] = partials_of(query_index(item, first + r))[item.piece];
      clear(results[r], shape_.padded_dim());
    }
    attend_rows(thread, item, block, first, count, results);
    for (int r = 0; r < count; ++r) {
      partials_of(query_index(item, first + r))[item.piece] = results[r];
    }
  }
}

float* Attention::attended_of(int query) const {
  return reinterpret_cast<float*>(context_.attended.data()) +
      static_cast<ptrdiff_t>(query) * view_.head_dim;
}

// What a query has before it has seen anything: nothing, or its head's sink.
void Attention::start(PartialAttention& total, int query) const {
  clear(total, shape_.padded_dim());
  if (view_.sinks != nullptr) {
    total.max = view_.sinks[query % view_.heads] * kLog2E;
    total.weight = 1;
  }
}

// What the query's blocks add up to, in their order.
void Attention::merge_head(int thread, int query, float* out) {
  PartialAttention& total = *running_of(thread);
  const PartialAttention* partials = partials_of(query);
  start(total, query);
  for (int b = 0; b < token(query / view_.heads).blocks; ++b) {
    context_.set.merge(total, partials[b], shape_.padded_dim());
  }
  context_.set.finish(total, view_.head_dim, out);
}

void Attention::merge(int thread) {
  const Share share =
      share_of(tokens() * view_.heads, thread, context_.pool.threads());
  for (int query = share.begin; query < share.end; ++query) {
    if (token(query / view_.heads).first_partial >= 0) {
      merge_head(thread, query, attended_of(query));
    }
  }
}

const float* Attention::attended(int thread, int t, float* scratch) {
  const bool is_merged = token(t).first_partial < 0 || merges_together_;
  if (is_merged && !view_.has_gates) {
    return attended_of(t * view_.heads);
  }
  for (int head = 0; head < view_.heads; ++head) {
    const int query = t * view_.heads + head;
    float* out = scratch + ptrdiff_t{head} * view_.head_dim;
    if (is_merged) {
      std::copy_n(attended_of(query), view_.head_dim, out);
    } else {
      merge_head(thread, query, out);
    }
    if (view_.has_gates) {
      const float* gate =
          projected_of(t) + ptrdiff_t{head} * query_stride_ + view_.head_dim;
      context_.set.gate_by_sigmoid(out, gate, view_.head_dim);
    }
  }
  return scratch;
}

} // namespace ingle
