// Norms, rotations, gated activations and cache writes on the CPU, a row at a time. Knows no tensors.
//
// Each is one pass over a row in the cache, where a library of tensors needs five to ten calls. What
// a row gives depends on that row alone: neither the number of threads nor the other rows change a
// bit. Strides and widths count elements; elements of a row lie side by side.

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math")  // else no comparison of floats is vectorised
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int LANES = 16;            // sums that run side by side, so that the compiler may vectorise
constexpr int64_t WORTH = 1 << 15;   // elements from which threads are worth their start

inline float widen(float value) { return value; }

inline float widen(uint16_t value) {  // bfloat16: the high half of a float
  const uint32_t bits = uint32_t(value) << 16;
  float wide;
  std::memcpy(&wide, &bits, 4);
  return wide;
}

inline void narrow(float value, float* to) { *to = value; }

inline void narrow(float value, uint16_t* to) {  // to nearest, ties to even
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  *to = uint16_t(value != value ? 0x7fc0 : rounded);
}

// exp to about one unit in the last place, saturating: 2^n times a series on [-ln 2 / 2, ln 2 / 2].
// No branch, so that a loop of it is vectorised.
inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // to the nearest whole
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;    // ln 2 in two parts
  float series = 1.0f / 5040;
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  const int32_t power = (int32_t(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &power, 4);
  return series * scale;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

template <typename T>
void norm_row(const T* x, const T* weight, T* y, int64_t width, float eps, float offset) {
  float lanes[LANES] = {};
  int64_t i = 0;
  for (; i + LANES <= width; i += LANES)
    for (int lane = 0; lane < LANES; ++lane) {
      const float value = widen(x[i + lane]);
      lanes[lane] += value * value;
    }
  for (int lane = 0; i < width; ++i, ++lane) lanes[lane] += widen(x[i]) * widen(x[i]);
  for (int half = LANES / 2; half; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  const float scale = 1.0f / std::sqrt(lanes[0] / float(width) + eps);
  for (i = 0; i < width; ++i) narrow(widen(x[i]) * scale * (widen(weight[i]) + offset), y + i);
}

// Row r of x lies at (r / inner) * outer_stride + (r % inner) * inner_stride; y is dense.
template <typename T>
void norms(const T* x, const T* weight, T* y, int64_t rows, int64_t inner, int64_t outer_stride,
           int64_t inner_stride, int64_t width, float eps, float offset, int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > WORTH)
  for (int64_t r = 0; r < rows; ++r)
    norm_row(x + (r / inner) * outer_stride + (r % inner) * inner_stride, weight, y + r * width,
             width, eps, offset);
}

template <typename T>
void add_norms(const T* x, T* residual, const T* weight, T* y, int64_t rows, int64_t x_stride,
               int64_t residual_stride, int64_t width, float eps, float offset, int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > WORTH)
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * x_stride;
    T* to = residual + r * residual_stride;
    for (int64_t i = 0; i < width; ++i) narrow(widen(to[i]) + widen(from[i]), to + i);
    norm_row(to, weight, y + r * width, width, eps, offset);
  }
}

template <typename T>
void turn(T* heads, int64_t count, int64_t stride, const float* cos, const float* sin,
          int64_t half) {
  for (int64_t h = 0; h < count; ++h) {
    T* low = heads + h * stride;
    T* high = low + half;
    for (int64_t i = 0; i < half; ++i) {
      const float one = widen(low[i]), two = widen(high[i]);
      narrow(one * cos[i] - two * sin[i], low + i);
      narrow(two * cos[i] + one * sin[i], high + i);
    }
  }
}

template <typename T>
void turns(T* q, T* k, const int64_t* positions, const float* table, int64_t tokens,
           int64_t q_heads, int64_t q_token, int64_t q_head, int64_t k_heads, int64_t k_token,
           int64_t k_head, int64_t row, int64_t half, int threads) {
  const int64_t elements = tokens * (q_heads + k_heads) * half;
#pragma omp parallel for num_threads(threads) if (threads > 1 && elements > WORTH)
  for (int64_t t = 0; t < tokens; ++t) {
    const float* cos = table + positions[t] * row;
    turn(q + t * q_token, q_heads, q_head, cos, cos + half, half);
    turn(k + t * k_token, k_heads, k_head, cos, cos + half, half);
  }
}

struct Silu {
  float operator()(float x, float up) const { return x * sigmoid(x) * up; }
};

struct Gelu {  // (1 + tanh(z)) / 2 is sigmoid(2z)
  float operator()(float x, float up) const {
    return x * sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x)) * up;
  }
};

struct Clamped {
  float alpha, limit;
  float operator()(float x, float up) const {
    x = x > limit ? limit : x;
    up = up > limit ? limit : up;
    up = up < -limit ? -limit : up;
    return (up + 1.0f) * x * sigmoid(alpha * x);
  }
};

template <typename T, typename F>
void gates(const T* x, T* y, int64_t rows, int64_t stride, int64_t width, int threads, F act) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > WORTH / 4)
  for (int64_t r = 0; r < rows; ++r) {
    const T* gate = x + r * stride;
    T* to = y + r * width;
    for (int64_t i = 0; i < width; ++i)
      narrow(act(widen(gate[i]), widen(gate[width + i])), to + i);
  }
}

}  // namespace

// kind: 0 float32, 1 bfloat16.
#define BY_KIND(call32, call16) \
  if (kind == 0)                \
    call32;                     \
  else                          \
    call16;

using Half = uint16_t;

extern "C" {

void rms_norm_rows(int32_t kind, const void* x, const void* weight, void* y, int64_t rows,
                   int64_t inner, int64_t outer_stride, int64_t inner_stride, int64_t width,
                   float eps, float offset, int32_t threads) {
  BY_KIND(norms((const float*)x, (const float*)weight, (float*)y, rows, inner, outer_stride,
                inner_stride, width, eps, offset, threads),
          norms((const Half*)x, (const Half*)weight, (Half*)y, rows, inner, outer_stride,
                inner_stride, width, eps, offset, threads))
}

void add_rms_norm_rows(int32_t kind, const void* x, void* residual, const void* weight, void* y,
                       int64_t rows, int64_t x_stride, int64_t residual_stride, int64_t width,
                       float eps, float offset, int32_t threads) {
  BY_KIND(add_norms((const float*)x, (float*)residual, (const float*)weight, (float*)y, rows,
                    x_stride, residual_stride, width, eps, offset, threads),
          add_norms((const Half*)x, (Half*)residual, (const Half*)weight, (Half*)y, rows, x_stride,
                    residual_stride, width, eps, offset, threads))
}

void rope_rows(int32_t kind, void* q, void* k, const void* positions, const void* table,
               int64_t tokens, int64_t q_heads, int64_t q_token, int64_t q_head, int64_t k_heads,
               int64_t k_token, int64_t k_head, int64_t row, int64_t half, int32_t threads) {
  BY_KIND(turns((float*)q, (float*)k, (const int64_t*)positions, (const float*)table, tokens,
                q_heads, q_token, q_head, k_heads, k_token, k_head, row, half, threads),
          turns((Half*)q, (Half*)k, (const int64_t*)positions, (const float*)table, tokens, q_heads,
                q_token, q_head, k_heads, k_token, k_head, row, half, threads))
}

void silu_mul_rows(int32_t kind, const void* x, void* y, int64_t rows, int64_t stride,
                   int64_t width, int32_t threads) {
  BY_KIND(gates((const float*)x, (float*)y, rows, stride, width, threads, Silu()),
          gates((const Half*)x, (Half*)y, rows, stride, width, threads, Silu()))
}

void gelu_mul_rows(int32_t kind, const void* x, void* y, int64_t rows, int64_t stride,
                   int64_t width, int32_t threads) {
  BY_KIND(gates((const float*)x, (float*)y, rows, stride, width, threads, Gelu()),
          gates((const Half*)x, (Half*)y, rows, stride, width, threads, Gelu()))
}

void swiglu_clamped_rows(int32_t kind, const void* x, void* y, int64_t rows, int64_t stride,
                         int64_t width, int32_t threads, float alpha, float limit) {
  const Clamped act{alpha, limit};
  BY_KIND(gates((const float*)x, (float*)y, rows, stride, width, threads, act),
          gates((const Half*)x, (Half*)y, rows, stride, width, threads, act))
}

// Copies of heads; `size` is the bytes of a head, strides count bytes here.
void kv_write_rows(const void* k, const void* v, void* k_cache, void* v_cache, const void* slots,
                   int64_t tokens, int64_t kv_heads, int64_t size, int64_t k_token, int64_t k_head,
                   int64_t v_token, int64_t v_head, int64_t block_size, int64_t cache_block,
                   int64_t cache_offset, int64_t cache_head) {
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t slot = ((const int64_t*)slots)[t];
    if (slot < 0) continue;
    const int64_t place = slot / block_size * cache_block + slot % block_size * cache_offset;
    for (int64_t h = 0; h < kv_heads; ++h) {
      std::memcpy((char*)k_cache + place + h * cache_head, (const char*)k + t * k_token + h * k_head,
                  size);
      std::memcpy((char*)v_cache + place + h * cache_head, (const char*)v + t * v_token + h * v_head,
                  size);
    }
  }
}
}
