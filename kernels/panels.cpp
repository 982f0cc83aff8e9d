// y = x W^T + b on the CPU, for weights that lie in panels of 16 outputs, or are gathered into such
// where they are used. Knows no tensors.
//
// A panel is a [16, K] part of W turned to [K, 16], in its own place: whoever packs once needs no
// more memory. Six rows of x meet one panel in registers, as in Goto and van de Geijn, Anatomy of
// High-Performance Matrix Multiplication, 2008. 16-bit weights are widened a panel at a time and
// summed in float32. What a row gives depends on that row alone: every sum runs along K in order,
// whatever the number of rows and threads.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int WIDTH = 8;          // floats of a vector
constexpr int PANEL = 2 * WIDTH;  // outputs of a panel
constexpr int TILE = 6;           // rows of x in registers
constexpr int64_t BLOCK = 96;     // rows of x that stay in the cache while panels pass
constexpr int AHEAD = 3;          // binary logarithm of a tile's multiplications between two lines asked for
constexpr int64_t LINE = 64;      // bytes
constexpr int64_t WORTH = 1 << 18;  // multiplications from which threads are worth their start

typedef float Vector __attribute__((vector_size(4 * WIDTH), aligned(4)));
typedef uint32_t Words __attribute__((vector_size(4 * WIDTH)));
typedef uint16_t Halves __attribute__((vector_size(2 * WIDTH), aligned(2)));

inline Vector load(const float* from) { return *reinterpret_cast<const Vector*>(from); }

inline Vector load(const uint16_t* from) {  // bfloat16: the high half of a float
  const Halves halves = *reinterpret_cast<const Halves*>(from);
  return (Vector)(__builtin_convertvector(halves, Words) << 16);
}

inline void store(float* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }

inline void store(uint16_t* to, Vector value) {  // to nearest, ties to even
  const Words bits = (Words)value;
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Words quiet = Words{} + 0x7fc0u;
  *reinterpret_cast<Halves*>(to) = __builtin_convertvector(value == value ? rounded : quiet, Halves);
}

// R rows of x by one panel; x in float32, rows `inner` apart. Asks for a line from `ahead` on every
// 2^every multiplications: the next panel comes from memory while this one is multiplied.
template <int R, typename W, typename T>
inline void tile(const float* x, const W* panel, int64_t inner, const float* bias, const char* ahead, int every,
                 T* y, int64_t outputs) {
  Vector low[R], high[R];
  const Vector none = {};
  for (int r = 0; r < R; ++r) {
    low[r] = bias ? load(bias) : none;
    high[r] = bias ? load(bias + WIDTH) : none;
  }
  for (int64_t k = 0; k < inner; ++k) {
    if ((k & ((1 << every) - 1)) == 0) __builtin_prefetch(ahead + (k >> every) * LINE, 0, 2);
    const Vector left = load(panel + k * PANEL), right = load(panel + k * PANEL + WIDTH);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float value = x[r * inner + k];
      low[r] += value * left;
      high[r] += value * right;
    }
  }
  for (int r = 0; r < R; ++r) {
    store(y + r * outputs, low[r]);
    store(y + r * outputs + WIDTH, high[r]);
  }
}

template <typename W, typename T>
void some(int64_t rows, const float* x, const W* panel, int64_t inner, const float* bias, const char* ahead, int every,
          T* y, int64_t outputs) {
  switch (rows) {
    case 6: return tile<6>(x, panel, inner, bias, ahead, every, y, outputs);
    case 5: return tile<5>(x, panel, inner, bias, ahead, every, y, outputs);
    case 4: return tile<4>(x, panel, inner, bias, ahead, every, y, outputs);
    case 3: return tile<3>(x, panel, inner, bias, ahead, every, y, outputs);
    case 2: return tile<2>(x, panel, inner, bias, ahead, every, y, outputs);
    case 1: return tile<1>(x, panel, inner, bias, ahead, every, y, outputs);
  }
}

// Whole tiles and a rest, or tiles as equal as there can be: a multiplication waits for the one before
// it, so that one of two rows takes as long as one of four. Few tiles ask for more of the next panel
// each, which has a line for every multiplication, or for every second one where weights are 16-bit.
template <typename W, typename T>
void tiles(const float* x, int64_t rows, const W* panel, int64_t inner, const float* bias, const char* ahead, T* y,
           int64_t outputs) {
  int64_t left = (rows + TILE - 1) / TILE;
  const bool equal = rows % TILE > 2;
  int every = sizeof(T) == 4 ? 0 : 1;
  for (int64_t tiles = left; tiles > 1 && every < AHEAD; tiles /= 2) ++every;
  for (; left > 0; --left) {
    const int64_t count = equal ? (rows + left - 1) / left : std::min<int64_t>(rows, TILE);
    some(count, x, panel, inner, bias, ahead, every, y, outputs);
    x += count * inner, y += count * outputs, rows -= count, ahead += (inner >> every) * LINE;
  }
}

template <typename T>
void turn(const T* rows, int64_t inner, T* panel) {  // [PANEL, inner] -> [inner, PANEL]
  constexpr int64_t PART = 16;
  for (int64_t begin = 0; begin < inner; begin += PART) {
    const int64_t end = std::min(begin + PART, inner);
    for (int64_t k = begin; k < end; ++k)
      for (int j = 0; j < PANEL; ++j) panel[k * PANEL + j] = rows[j * inner + k];
  }
}

const float* widened(const float* x, int64_t, std::vector<float>&) { return x; }

const float* widened(const uint16_t* x, int64_t count, std::vector<float>& room) {
  room.resize(count + WIDTH);
  int64_t i = 0;
  for (; i + WIDTH <= count; i += WIDTH) store(room.data() + i, load(x + i));
  for (; i < count; ++i) {
    const uint32_t bits = uint32_t(x[i]) << 16;
    std::memcpy(room.data() + i, &bits, 4);
  }
  return room.data();
}

// A panel of `width` rows [width, inner] of a weight that is not packed; what it lacks is zero.
template <typename T>
const T* collected(const T* rows, int64_t width, int64_t inner, std::vector<T>& room) {
  room.resize(PANEL * inner);
  if (width == PANEL) {
    turn(rows, inner, room.data());
  } else {
    std::fill(room.begin(), room.end(), T(0));
    for (int64_t j = 0; j < width; ++j)
      for (int64_t k = 0; k < inner; ++k) room[k * PANEL + j] = rows[j * inner + k];
  }
  return room.data();
}

// `packed` or not, every output is the same sum. A last panel of fewer outputs goes through `spare`.
template <typename T>
void multiply(const T* x, int64_t rows, int64_t inner, const T* weight, int64_t outputs, const float* bias,
              int64_t threads, bool packed, T* y) {
#pragma omp parallel num_threads(threads) if (threads > 1 && rows * inner * outputs > WORTH)
  {
    thread_local std::vector<float> wide_x, wide_panel;
    thread_local std::vector<T> room, spare;
    for (int64_t begin = 0; begin < rows; begin += BLOCK) {
      const int64_t count = std::min(BLOCK, rows - begin);
      const float* block = widened(x + begin * inner, count * inner, wide_x);
#pragma omp for schedule(static) nowait
      for (int64_t p = 0; p < (outputs + PANEL - 1) / PANEL; ++p) {
        const T* own = weight + p * PANEL * inner;
        const int64_t width = std::min<int64_t>(PANEL, outputs - p * PANEL), every = width < PANEL ? PANEL : outputs;
        const T* panel = packed ? own : collected(own, width, inner, room);
        const char* ahead = (const char*)(own + PANEL * inner);
        float few[PANEL] = {};
        const float* added = bias ? bias + p * PANEL : nullptr;
        T* const result = y + begin * outputs + p * PANEL;
        T* to = result;
        if (width < PANEL) {
          spare.resize(count * PANEL);
          to = spare.data();
          if (bias) std::copy(added, added + width, few), added = few;
        }
        if (count < TILE)
          tiles(block, count, panel, inner, added, ahead, to, every);
        else
          tiles(block, count, widened(panel, PANEL * inner, wide_panel), inner, added, ahead, to, every);
        if (width < PANEL)
          for (int64_t r = 0; r < count; ++r) std::copy(to + r * PANEL, to + r * PANEL + width, result + r * outputs);
      }
    }
  }
}

template <typename T>
void pack(T* weight, int64_t outputs, int64_t inner) {
  std::vector<T> turned(PANEL * inner);
  for (int64_t p = 0; p < outputs / PANEL; ++p) {
    T* panel = weight + p * PANEL * inner;
    turn(panel, inner, turned.data());
    std::memcpy(panel, turned.data(), sizeof(T) * PANEL * inner);
  }
}

}  // namespace

extern "C" {

// kind 0: float32, 1: bfloat16, of x, weight and y; bias in float32. x and y are dense.
void panel_linear(int32_t kind, const void* x, int64_t rows, int64_t inner, const void* weight, int64_t outputs,
                  const float* bias, int64_t threads, int32_t packed, void* y) {
  if (kind == 0)
    multiply((const float*)x, rows, inner, (const float*)weight, outputs, bias, threads, packed, (float*)y);
  else
    multiply((const uint16_t*)x, rows, inner, (const uint16_t*)weight, outputs, bias, threads, packed, (uint16_t*)y);
}

// As panel_linear without bias, for `experts` weights of [outputs, inner] one after another: expert e
// multiplies rows offsets[e] to offsets[e + 1].
void panel_grouped(int32_t kind, const void* x, const int32_t* offsets, int64_t experts, int64_t inner,
                   const void* weight, int64_t outputs, int64_t threads, int32_t packed, void* y) {
  const int64_t size = kind == 0 ? 4 : 2;
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t begin = offsets[e], rows = offsets[e + 1] - begin;
    if (rows == 0) continue;
    panel_linear(kind, (const char*)x + begin * inner * size, rows, inner,
                 (const char*)weight + e * outputs * inner * size, outputs, nullptr, threads, packed,
                 (char*)y + begin * outputs * size);
  }
}

// [outputs, inner] to panels, in place.
void panel_pack(int32_t size, void* weight, int64_t outputs, int64_t inner) {
  if (size == 4)
    pack((uint32_t*)weight, outputs, inner);
  else
    pack((uint16_t*)weight, outputs, inner);
}
}
