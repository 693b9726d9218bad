// The middle of a layer: queries, keys and values to what each token attends
// to. Part of layer.h.
//
// Threads: constructed outside of a region, used in one by every thread; a
//          barrier is due between its steps.
#pragma once

#include <atomic>
#include <span>
#include <vector>

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
    return static_cast<int>(list_.size());
  }
  // What token t attends to, [heads * head_dim]: made in `scratch`, or where
  // attend() has left it. Of a few tokens, each span of positions is attended
  // to by itself, so that all threads have work; they are merged here.
  const float* attended(int thread, int t, float* scratch);

  // Queries, keys and values of all tokens.
  void project(int thread, const ProductInputs& normed);
  // Turns queries and keys to their positions; stores keys and values.
  void rotate_and_put(int thread);
  void attend(int thread);

 private:
  // What one thread does at a time: the queries of one KV head for some tokens
  // of a row, over some spans of its positions.
  struct Item {
    int row = 0;
    int kv_head = 0;
    int first_token = 0; // among all
    int tokens = 0;
    int64_t first_span = 0;
    int64_t last_span = 0;
    int piece = 0; // of one span: which one of its row's
  };
  struct Token {
    int row = 0;
    int64_t position = 0;
    // Where its heads have a result for each of so many spans; -1: nowhere.
    int first_partial = -1;
    int spans = 0;
  };

  void plan_row(int row);
  void plan_few(int row, int first_token);
  void plan_many(int row, int first_token);
  void rotate(float* head, int token) const;
  void rotate_query(int token, int head);
  void put_kv(int token, int kv_head);
  void attend_item(int thread, const Item& item);
  void attend_span(const Item& item, int64_t span, int thread);
  bool attend_rows(
      const Item& item,
      int64_t span,
      int first,
      int count,
      PartialAttention* results);
  float* attended_of(int query) const;

  int64_t first_span_of(int64_t position) const;
  Share seen_of(int64_t position, int64_t span) const;
  int heads_per_kv() const {
    return view_.heads / view_.kv_heads;
  }
  const Token& token(int i) const {
    return list_[static_cast<size_t>(i)];
  }
  int query_index(const Item& item, int row) const;
  float* projected_of(int token) const;
  int32_t* query_of(int index) const;
  PartialAttention* partials_of(int query);

  KernelContext& context_;
  const AttentionView& view_;
  std::span<const AttentionRow> rows_;
  KvBlockShape shape_;
  int width_; // of queries, keys and values together
  std::vector<Token> list_;
  std::vector<Item> items_;
  bool is_uneven_ = false; // items take different times
  std::atomic<size_t> next_item_{0};
  std::vector<float> query_scales_; // [T, heads]
  std::vector<PartialAttention> partials_;
  // Of each thread: the results of an item so far, then those of one span.
  std::vector<std::vector<PartialAttention>> running_;
};

} // namespace ingle
