// Paged decode attention on the CPU: one query a sequence over a block table. Knows no tensors.
//
// A sequence's keys are read once, in the order in which they lie in memory, for all heads of a
// group together; the softmax runs along (Milakov and Gimelshein, Online normalizer calculation
// for softmax, 2018). What a row gives depends on that row alone: neither the number of threads
// nor the other rows change a bit.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int WIDTH = 8;  // floats of a vector
constexpr int KEYS = 32;  // keys between two looks at the running maximum

typedef float Vector __attribute__((vector_size(4 * WIDTH), aligned(4)));
typedef int32_t Integers __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t Words __attribute__((vector_size(4 * WIDTH)));
typedef uint16_t Halves __attribute__((vector_size(2 * WIDTH), aligned(2)));

inline Vector load(const float* from) { return *reinterpret_cast<const Vector*>(from); }

inline Vector load(const uint16_t* from) {  // bfloat16: the high half of a float
  const Halves halves = *reinterpret_cast<const Halves*>(from);
  return (Vector)(__builtin_convertvector(halves, Words) << 16);
}

inline void store(float* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }

inline float sum(Vector v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

inline float highest(Vector v) {
  return std::max(std::max(std::max(v[0], v[4]), std::max(v[2], v[6])),
                  std::max(std::max(v[1], v[5]), std::max(v[3], v[7])));
}

inline float widen(float value) { return value; }

inline float widen(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float wide;
  std::memcpy(&wide, &bits, 4);
  return wide;
}

inline void narrow(float value, float* to) { *to = value; }

inline void narrow(float value, uint16_t* to) {  // to nearest, ties to even
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  *to = value != value ? 0x7fc0 : uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// exp of x <= 0 to about one unit in the last place: 2^n times a series on [-ln 2 / 2, ln 2 / 2].
inline Vector exponential(Vector x) {
  x = x < -87.0f ? Vector{} - 87.0f : x;
  const Vector n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // to the nearest whole
  const Vector r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vector p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * (Vector)((__builtin_convertvector(n, Integers) + 127) << 23);
}

inline float exponential(float x) { return exponential(Vector{} + x)[0]; }

struct Shape {
  int64_t heads, kv_heads, dim, row;  // row: elements from one key to the next of the same head
  float scale, softcap, k_scale, v_scale;
};

// Scores of K keys and H heads: every vector of a key is read once. `slots` places the keys.
template <int K, int H, typename T>
inline void dots(const float* q, const T* k, const int64_t* slots, int64_t dim, float* scores) {
  Vector sums[H][K] = {};
  for (int64_t d = 0; d < dim; d += WIDTH) {
    Vector keys[K];
#pragma GCC unroll 8
    for (int j = 0; j < K; ++j) keys[j] = load(k + slots[j] + d);
#pragma GCC unroll 8
    for (int h = 0; h < H; ++h) {
      const Vector query = load(q + h * dim + d);
#pragma GCC unroll 8
      for (int j = 0; j < K; ++j) sums[h][j] += query * keys[j];
    }
  }
#pragma GCC unroll 8
  for (int h = 0; h < H; ++h)
#pragma GCC unroll 8
    for (int j = 0; j < K; ++j) scores[h * KEYS + j] = sum(sums[h][j]);
}

// Keys (or values) of one head that are wanted next: asked for while the ones before are computed,
// a few at a time, since a core keeps few requests.
template <typename T>
struct Coming {
  const T* from;
  const int64_t* slots;
  int count;

  inline void ask(int first, int last, int64_t begin, int64_t end) const {
    constexpr int64_t LINE = 64 / sizeof(T);
    for (int j = first; j < std::min(last, count); ++j)
      for (int64_t d = begin; d < end; d += LINE) __builtin_prefetch(from + slots[j] + d, 0, 2);
  }
};

template <int H, typename T>
inline void scored(const float* q, const T* k, const int64_t* slots, int64_t dim, int count, const Coming<T>& next,
                   float* scores) {
  int j = 0;
  for (; j + 4 <= count; j += 4) {
    next.ask(j, j + 4, 0, dim);
    dots<4, H>(q, k, slots + j, dim, scores + j);
  }
  next.ask(j, KEYS, 0, dim);
  for (; j < count; ++j) dots<1, H>(q, k, slots + j, dim, scores + j);
}

// acc[h] += sum of weight[h][j] v[j], over V vectors of the values at a time.
template <int H, int V, typename T>
inline void gathered(const float* weights, const T* v, const int64_t* slots, int64_t dim, int count,
                     const Coming<T>& next, int64_t at, float* acc) {
  Vector sums[H][V];
#pragma GCC unroll 8
  for (int h = 0; h < H; ++h)
#pragma GCC unroll 8
    for (int i = 0; i < V; ++i) sums[h][i] = load(acc + h * dim + i * WIDTH);
  for (int j = 0; j < count; ++j) {
    next.ask(j, j + 1, at, at + V * WIDTH);
    Vector values[V];
#pragma GCC unroll 8
    for (int i = 0; i < V; ++i) values[i] = load(v + slots[j] + i * WIDTH);
#pragma GCC unroll 8
    for (int h = 0; h < H; ++h) {
      const float weight = weights[h * KEYS + j];
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) sums[h][i] += weight * values[i];
    }
  }
#pragma GCC unroll 8
  for (int h = 0; h < H; ++h)
#pragma GCC unroll 8
    for (int i = 0; i < V; ++i) store(acc + h * dim + i * WIDTH, sums[h][i]);
}

template <int H, typename T>
inline void summed(const float* weights, const T* v, const int64_t* slots, int64_t dim, int count,
                   const Coming<T>& next, float* acc) {
  int64_t d = 0;
  for (; d + 4 * WIDTH <= dim; d += 4 * WIDTH) gathered<H, 4>(weights, v + d, slots, dim, count, next, d, acc + d);
  next.ask(count, KEYS, 0, dim);
  for (; d < dim; d += WIDTH) gathered<H, 1>(weights, v + d, slots, dim, count, next, d, acc + d);
}

// Scores to weights, in place; the running maximum, sum and accumulator follow.
inline void softened(const Shape& s, int count, float* scores, float* peak, float* total, float* acc) {
  if (s.softcap > 0)
    for (int j = 0; j < count; ++j) scores[j] = s.softcap * std::tanh(scores[j] / s.softcap);
  for (int j = count; j < KEYS; ++j) scores[j] = -INFINITY;
  Vector high = load(scores);
  for (int j = WIDTH; j < KEYS; j += WIDTH) high = load(scores + j) > high ? load(scores + j) : high;
  const float top = std::max(*peak, highest(high));
  if (top > *peak) {
    const float shrink = std::isinf(*peak) ? 0.0f : exponential(*peak - top);
    *total *= shrink;
    for (int64_t d = 0; d < s.dim; d += WIDTH) store(acc + d, load(acc + d) * shrink);
    *peak = top;
  }
  Vector more = {};
  for (int j = 0; j < KEYS; j += WIDTH) {
    const Vector weights = exponential(load(scores + j) - top);
    store(scores + j, weights);
    more += weights;
  }
  *total += sum(more);
}

// H heads that share one key-value head, over `count` keys.
template <int H, typename T>
void stepped(const Shape& s, const float* q, const T* k, const T* v, const int64_t* slots, int count,
             const int64_t* coming, int more, float* peaks, float* totals, float* acc) {
  float scores[H * KEYS];
  scored<H>(q, k, slots, s.dim, count, Coming<T>{k, coming, more}, scores);
  for (int h = 0; h < H; ++h) softened(s, count, scores + h * KEYS, peaks + h, totals + h, acc + h * s.dim);
  summed<H>(scores, v, slots, s.dim, count, Coming<T>{v, coming, more}, acc);
}

// The keys that one sequence reads.
struct Keys {
  const int32_t* table;
  int64_t block_size, begin, end;

  // Where the next ones from `key` on begin in the cache; how many.
  int place(int64_t key, int64_t row, int64_t* slots) const {
    const int count = int(std::min(end - key, int64_t(KEYS)));
    for (int j = 0; j < count; ++j)
      slots[j] = (table[(key + j) / block_size] * block_size + (key + j) % block_size) * row;
    return std::max(count, 0);
  }
};

// One sequence, key-value heads first .. last; `after` are the keys of the one that comes next.
template <typename T, typename Q>
void sequence(const Shape& s, const Q* q, const T* k_cache, const T* v_cache, const Keys& keys, const Keys& after,
              const float* sinks, int64_t first, int64_t last, Q* out) {
  const int64_t group = s.heads / s.kv_heads, from = first * group, heads = (last - first) * group;
  thread_local std::vector<float> scratch;
  scratch.assign(heads * (2 * s.dim + 2), 0.0f);
  float *queries = scratch.data(), *acc = queries + heads * s.dim;
  float *peaks = acc + heads * s.dim, *totals = peaks + heads;
  std::fill(peaks, peaks + heads, -INFINITY);
  const float factor = s.scale * s.k_scale;
  for (int64_t i = 0; i < heads * s.dim; ++i) queries[i] = widen(q[from * s.dim + i]) * factor;
  int64_t slots[KEYS], coming[KEYS];
  int count = keys.place(keys.begin, s.row, slots);
  for (int64_t key = keys.begin; key < keys.end; key += KEYS) {
    const bool is_last = key + KEYS >= keys.end;
    const int more = is_last ? after.place(after.begin, s.row, coming) : keys.place(key + KEYS, s.row, coming);
    for (int64_t kv = first; kv < last; ++kv) {
      const T *k = k_cache + kv * s.dim, *v = v_cache + kv * s.dim;
      int64_t h = (kv - first) * group;
      const int64_t stop = h + group;
      int asked = more;  // by the first of the heads that share them
      for (; h + 2 <= stop; h += 2, asked = 0)
        stepped<2>(s, queries + h * s.dim, k, v, slots, count, coming, asked, peaks + h, totals + h, acc + h * s.dim);
      for (; h < stop; ++h, asked = 0)
        stepped<1>(s, queries + h * s.dim, k, v, slots, count, coming, asked, peaks + h, totals + h, acc + h * s.dim);
    }
    count = more;
    std::copy(coming, coming + more, slots);
  }
  for (int64_t h = 0; h < heads; ++h) {
    float total = totals[h], gain = s.v_scale;
    if (sinks != nullptr && total > 0) {
      const float sink = sinks[from + h], high = std::max(sink, peaks[h]);
      gain *= exponential(peaks[h] - high);
      total = total * exponential(peaks[h] - high) + exponential(sink - high);
    }
    const float inverse = total > 0 ? gain / total : 0.0f;
    for (int64_t d = 0; d < s.dim; ++d) narrow(acc[h * s.dim + d] * inverse, out + (from + h) * s.dim + d);
  }
}

template <typename T>
void batch(const Shape& s, const T* q, int64_t q_row, const T* k, const T* v, const int32_t* table,
           int64_t table_width, const int32_t* lengths, int64_t sequences, int64_t block_size, int64_t window,
           const float* sinks, int64_t threads, T* out) {
  const int64_t parts = sequences >= 2 * threads ? 1 : s.kv_heads;  // of a sequence's heads
  const int64_t tasks = sequences * parts, share = s.kv_heads / parts;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
  for (int64_t task = 0; task < tasks; ++task) {
    const int64_t b = task / parts, first = (task % parts) * share;
    const auto keys = [&](int64_t row) {
      const int64_t end = row < sequences ? lengths[row] : 0;
      const int64_t begin = window > 0 ? std::max<int64_t>(0, end - window) : 0;
      return Keys{table + row * table_width, block_size, begin, end};
    };
    sequence(s, q + b * q_row, k, v, keys(b), keys(b + 1), sinks, first, first + share, out + b * s.heads * s.dim);
  }
}

}  // namespace

// kind 0: float32, 1: bfloat16; q, caches and out are of one kind. See cpu.py for the shapes.
extern "C" void paged_decode(int32_t kind, const void* q, int64_t q_row, const void* k, const void* v,
                             const int32_t* table, int64_t table_width, const int32_t* lengths,
                             int64_t sequences, int64_t heads, int64_t kv_heads, int64_t dim,
                             int64_t block_size, int64_t window, float scale, float softcap, float k_scale,
                             float v_scale, const float* sinks, int64_t threads, void* out) {
  const Shape s{heads, kv_heads, dim, kv_heads * dim, scale, softcap, k_scale, v_scale};
  if (kind == 0)
    batch(s, static_cast<const float*>(q), q_row, static_cast<const float*>(k), static_cast<const float*>(v),
          table, table_width, lengths, sequences, block_size, window, sinks, threads, static_cast<float*>(out));
  else
    batch(s, static_cast<const uint16_t*>(q), q_row, static_cast<const uint16_t*>(k),
          static_cast<const uint16_t*>(v), table, table_width, lengths, sequences, block_size, window, sinks,
          threads, static_cast<uint16_t*>(out));
}
