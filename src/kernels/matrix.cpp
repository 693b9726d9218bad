#include "kernels/matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/float16.h"

namespace ingle {
namespace {

constexpr size_t kRegister = 64;

struct Plane {
  int bits = 0;
  int shift = 0; // of its bits within the value
};

// The planes of a width; a plane of 0 bits is none.
std::array<Plane, 2> planes_of(int bits) {
  switch (bits) {
    case 3:
      return {{{2, 0}, {1, 2}}};
    case 5:
      return {{{4, 0}, {1, 4}}};
    case 6:
      return {{{4, 0}, {2, 4}}};
    default:
      return {{{bits, 0}, {0, 0}}};
  }
}

size_t chunk_bytes(int bits) {
  return kRegister * static_cast<size_t>(bits);
}

// Of a panel's scales and biases for a group.
size_t scales_bytes(const PackedMatrix& m) {
  const size_t kinds = m.is_mxfp4() ? 1 : 2;
  return kinds * kPanelRows * float_size(m.type);
}

size_t group_bytes(const PackedMatrix& m) {
  return static_cast<size_t>(m.group_size / kChunkColumns) *
      chunk_bytes(m.bits) +
      scales_bytes(m);
}

float load_float(const std::byte* p, FloatType type) {
  switch (type) {
    case FloatType::kF16:
      return load_f16(p);
    case FloatType::kBF16:
      return bf16_to_f32(load_u16(p));
    case FloatType::kE8M0:
      return std::bit_cast<float>(std::to_integer<uint32_t>(*p) << 23);
    case FloatType::kF32:
      break;
  }
  float value = 0;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Element i stands at bit i * bits of a little-endian stream.
void unpack_chunk(const std::byte* from, int bits, uint8_t* values) {
  const uint32_t mask = (1u << bits) - 1;
  uint32_t buffer = 0;
  int available = 0;
  for (int i = 0; i < kChunkColumns; ++i) {
    if (available < bits) {
      buffer |= std::to_integer<uint32_t>(*from++) << available;
      available += 8;
    }
    values[i] = static_cast<uint8_t>(buffer & mask);
    buffer >>= bits;
    available -= bits;
  }
}

// Where quad q of row `lane` starts in its plane.
size_t quad_offset(const Plane& plane, int q, int lane) {
  return static_cast<size_t>(q % plane.bits) * kRegister +
      static_cast<size_t>(lane) * 4;
}

int quad_shift(const Plane& plane, int q) {
  return plane.bits * (q / plane.bits);
}

// Adds one row's 32 values to a chunk of zeros.
void put_chunk(const uint8_t* values, int bits, int lane, std::byte* chunk) {
  for (const Plane& plane : planes_of(bits)) {
    const int mask = (1 << plane.bits) - 1;
    for (int i = 0; plane.bits != 0 && i < kChunkColumns; ++i) {
      const int q = i / 4;
      std::byte& to =
          chunk[quad_offset(plane, q, lane) + static_cast<size_t>(i % 4)];
      to |= static_cast<std::byte>(
          (values[i] >> plane.shift & mask) << quad_shift(plane, q));
    }
    chunk += kRegister * static_cast<size_t>(plane.bits);
  }
}

void get_chunk(const std::byte* chunk, int bits, int lane, uint8_t* values) {
  std::fill_n(values, kChunkColumns, uint8_t{0});
  for (const Plane& plane : planes_of(bits)) {
    const int mask = (1 << plane.bits) - 1;
    for (int i = 0; plane.bits != 0 && i < kChunkColumns; ++i) {
      const int q = i / 4;
      const auto from = std::to_integer<int>(
          chunk[quad_offset(plane, q, lane) + static_cast<size_t>(i % 4)]);
      values[i] |= static_cast<uint8_t>(
          (from >> quad_shift(plane, q) & mask) << plane.shift);
    }
    chunk += kRegister * static_cast<size_t>(plane.bits);
  }
}

void pack_group(
    const PackedMatrix& m,
    const QuantizedSource& source,
    int row,
    int group,
    std::byte* to) {
  const auto bits = static_cast<size_t>(m.bits);
  const auto columns = static_cast<size_t>(m.columns);
  const size_t begin = static_cast<size_t>(row) * columns +
      static_cast<size_t>(group) * static_cast<size_t>(m.group_size);
  const int lane = row % kPanelRows;
  const std::byte* from = source.weight + begin * bits / 8;
  std::array<uint8_t, kChunkColumns> values;
  for (int c = 0; c < m.group_size / kChunkColumns; ++c) {
    unpack_chunk(from, m.bits, values.data());
    put_chunk(values.data(), m.bits, lane, to);
    from += kChunkColumns * bits / 8;
    to += chunk_bytes(m.bits);
  }
  const size_t size = float_size(m.type);
  const size_t at = begin / static_cast<size_t>(m.group_size) * size;
  const size_t lane_at = static_cast<size_t>(lane) * size;
  std::memcpy(to + lane_at, source.scales + at, size);
  if (!m.is_mxfp4()) {
    std::memcpy(to + kPanelRows * size + lane_at, source.biases + at, size);
  }
}

} // namespace

size_t PackedMatrix::panel_bytes() const {
  if (is_dense()) {
    return static_cast<size_t>(columns) * kPanelRows * float_size(type);
  }
  return static_cast<size_t>(columns / group_size) * group_bytes(*this);
}

bool can_pack(int columns, int bits, int group_size) {
  const bool has_bits = (bits >= 2 && bits <= 6) || bits == 8;
  const bool has_group =
      group_size == 32 || group_size == 64 || group_size == 128;
  return has_bits && has_group && columns % group_size == 0;
}

PackedMatrix pack_quantized(
    Arena& arena,
    int rows,
    int columns,
    int bits,
    int group_size,
    FloatType type,
    const QuantizedSource& source) {
  PackedMatrix m{nullptr, rows, columns, bits, group_size, type};
  std::byte* data =
      arena.allocate(m.panel_bytes() * static_cast<size_t>(m.panels()));
  m.data = data;
  for (int row = 0; row < rows; ++row) {
    std::byte* panel =
        data + static_cast<size_t>(row / kPanelRows) * m.panel_bytes();
    for (int group = 0; group < columns / group_size; ++group) {
      pack_group(
          m,
          source,
          row,
          group,
          panel + static_cast<size_t>(group) * group_bytes(m));
    }
  }
  return m;
}

PackedMatrix pack_dense(
    Arena& arena,
    int rows,
    int columns,
    FloatType type,
    const std::byte* values) {
  PackedMatrix m{nullptr, rows, columns, 0, 0, type};
  const size_t size = float_size(type);
  std::byte* data =
      arena.allocate(m.panel_bytes() * static_cast<size_t>(m.panels()));
  m.data = data;
  for (int row = 0; row < rows; ++row) {
    std::byte* to = data +
        static_cast<size_t>(row / kPanelRows) * m.panel_bytes() +
        static_cast<size_t>(row % kPanelRows) * size;
    for (int c = 0; c < columns; ++c) {
      std::memcpy(to, values, size);
      to += kPanelRows * size;
      values += size;
    }
  }
  return m;
}

void unpack_row(const PackedMatrix& m, int row, float* out) {
  const std::byte* from = m.panel(row / kPanelRows);
  const int lane = row % kPanelRows;
  const size_t size = float_size(m.type);
  const size_t lane_at = static_cast<size_t>(lane) * size;
  if (m.is_dense()) {
    for (int c = 0; c < m.columns; ++c, from += kPanelRows * size) {
      out[c] = load_float(from + lane_at, m.type);
    }
    return;
  }
  const int chunks = m.group_size / kChunkColumns;
  std::array<uint8_t, kChunkColumns> values;
  for (int group = 0; group < m.columns / m.group_size; ++group) {
    const std::byte* scales =
        from + static_cast<size_t>(chunks) * chunk_bytes(m.bits);
    const float scale = load_float(scales + lane_at, m.type);
    const float bias = m.is_mxfp4()
        ? 0
        : load_float(scales + kPanelRows * size + lane_at, m.type);
    for (int c = 0; c < chunks; ++c, from += chunk_bytes(m.bits)) {
      get_chunk(from, m.bits, lane, values.data());
      for (const uint8_t q : values) {
        *out++ = m.is_mxfp4() ? scale * kMxfp4Values[q]
                              : scale * static_cast<float>(q) + bias;
      }
    }
    from = scales + scales_bytes(m);
  }
}

} // namespace ingle
