// The middle of a layer: queries, keys and values to what each token attends
// to. Part of layer.h.
//
// Threads: constructed outside of a region, used in one by every thread, with a
//          barrier between project() and attend().
#pragma once

#include <atomic>
#include <span>

#include "kernels/layer.h"
#include "kernels/products.h"

namespace ingle {

class Attention {
 public:
  // Throws std::bad_alloc.
  Attention(
      KernelContext& context,
      const AttentionView& view,
      std::span<const AttentionRow> rows);

  int tokens() const {
    return static_cast<int>(scratch_.tokens.size());
  }
  // What token t attends to, gated, [heads * head_dim]: made in `scratch`, or
  // where attend() has left it. Of a few tokens, each block of positions is
  // attended to by itself, so that all threads have work; few of them are
  // merged here.
  const float* attended(int thread, int t, float* scratch);

  // Queries, keys and values of all tokens.
  void project(int thread, const ProductInputs& normed);
  // Turns queries and keys to their positions, stores keys and values, and
  // attends; has a barrier at its end.
  void attend(int thread);

 private:
  using Item = AttentionScratch::Item;
  using Token = AttentionScratch::Token;

  // A block of one head, of 16 bits.
  struct KvBlock {
    int64_t number = 0;
    const std::byte* data = nullptr;
    const std::byte* next = nullptr; // what is probably read after it
  };

  void plan_row(int row);
  void plan_few(int row, int first_token);
  void plan_many(int row, int first_token);
  void norm_all_heads(int thread);
  void place(float* head, const NormView& norm, int token) const;
  void put_all(int thread);
  int starts_pair(int token) const;
  void put(int token, int kv_head);
  void put_own(const Item& item);
  void pack_queries(int thread, const Item& item);
  void attend_items(int thread);
  size_t first_item_of(int thread) const;
  void attend_item(int thread, const Item& item);
  void attend_blocks(int thread, const Item& item);
  void attend_piece(int thread, const Item& item);
  std::byte* block_of(int row, int kv_head, int64_t number) const;
  KvBlock seen_block(int thread, const Item& item, int64_t number);
  void attend_block(int thread, const Item& item, int64_t number);
  bool attend_rows(
      int thread,
      const Item& item,
      const KvBlock& block,
      int first,
      int count,
      PartialAttention* results);
  float* attended_of(int query) const;
  void merge(int thread);
  void merge_head(int thread, int query, float* out);
  void start(PartialAttention& total, int query) const;
  size_t item_rows() const;
  PartialAttention* running_of(int thread);
  size_t query_at(int thread, int kv_head, int row) const;
  int32_t* query_of(int thread, int kv_head, int row) const;
  float& query_scale(int thread, int kv_head, int row) const;

  int64_t first_block_of(int64_t position) const;
  Share seen_of(int64_t position, int64_t block) const;
  int heads_per_kv() const {
    return view_.heads / view_.kv_heads;
  }
  const Token& token(int i) const {
    return scratch_.tokens[static_cast<size_t>(i)];
  }
  int query_index(const Item& item, int row) const;
  float* projected_of(int token) const;
  PartialAttention* partials_of(int query);

  KernelContext& context_;
  AttentionScratch& scratch_;
  const AttentionView& view_;
  std::span<const AttentionRow> rows_;
  KvBlockShape kept_; // how keys and values are kept
  KvBlockShape shape_; // and attended to
  int query_stride_; // of a head, with its gate where it has one
  bool has_keys_; // and values: not another layer's
  int width_; // of queries, keys and values together
  // A row of many tokens: items take different times, and read what others
  // have put.
  bool has_many_ = false;
  // So many blocks that they are merged once, by all threads, and not by each
  // for itself.
  bool merges_together_ = false;
  std::atomic<size_t> next_item_{0};
};

} // namespace ingle
