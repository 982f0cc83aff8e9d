// Routing, permutation and weighted sums of a mixture of experts on the CPU. Knows no tensors.
//
// Rows are dense; what a token gives depends on that token alone.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr float WORST = -std::numeric_limits<float>::infinity();
constexpr int64_t WORTH = 1 << 16;  // elements from which threads are worth their start

inline float wide(float value) { return value; }

inline float wide(uint16_t value) {  // bfloat16: the high half of a float
  const uint32_t bits = uint32_t(value) << 16;
  float found;
  std::memcpy(&found, &bits, 4);
  return found;
}

inline void put(float* to, float value) { *to = value; }

inline void put(uint16_t* to, float value) {  // to nearest, ties to even
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  *to = value == value ? uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16) : 0x7fc0;
}

// The first of the largest that are not taken.
int64_t best(const float* values, const char* taken, int64_t begin, int64_t end) {
  int64_t at = -1;
  for (int64_t i = begin; i < end; ++i)
    if (!taken[i] && (at < 0 || values[i] > values[at])) at = i;
  return at;
}

struct Room {
  std::vector<float> score, rank, group;
  std::vector<char> taken, kept;
};

void scores(const float* logits, int64_t experts, const float* bias, bool softmax, Room& room) {
  float total = 0.0f, largest = WORST;
  if (softmax) largest = *std::max_element(logits, logits + experts);
  for (int64_t e = 0; e < experts; ++e) {
    room.score[e] = softmax ? std::exp(logits[e] - largest) : 1.0f / (1.0f + std::exp(-logits[e]));
    total += room.score[e];
  }
  for (int64_t e = 0; e < experts; ++e) {
    if (softmax) room.score[e] /= total;
    const float rank = bias ? room.score[e] + bias[e] : room.score[e];
    room.rank[e] = rank == rank ? rank : WORST;
  }
}

// Experts of all groups but the best are the worst from here on.
void limit(int64_t experts, int64_t groups, int64_t groups_kept, int64_t group_top, Room& room) {
  const int64_t size = experts / groups;
  for (int64_t g = 0; g < groups; ++g) {
    room.group[g] = 0.0f;
    for (int64_t j = 0; j < std::min(group_top, size); ++j) {
      const int64_t at = best(room.rank.data(), room.taken.data(), g * size, (g + 1) * size);
      room.taken[at] = 1;
      room.group[g] += room.rank[at];
    }
  }
  std::fill(room.taken.begin(), room.taken.end(), 0);
  std::fill(room.kept.begin(), room.kept.end(), 0);
  for (int64_t j = 0; j < groups_kept; ++j) room.kept[best(room.group.data(), room.kept.data(), 0, groups)] = 1;
  for (int64_t e = 0; e < experts; ++e)
    if (!room.kept[e / size]) room.rank[e] = WORST;
}

template <typename T>
void combine(const T* rows, const int32_t* inverse, const float* weights, int64_t tokens, int64_t top_k,
             int64_t width, int64_t threads, T* y) {
#pragma omp parallel num_threads(threads) if (threads > 1 && tokens * top_k * width > WORTH)
  {
    std::vector<int32_t> order(top_k);
    std::vector<float> total(width);
#pragma omp for schedule(static)
    for (int64_t t = 0; t < tokens; ++t) {
      const int32_t* at = inverse + t * top_k;
      for (int64_t j = 0; j < top_k; ++j) order[j] = int32_t(j);
      std::sort(order.begin(), order.end(), [at](int32_t a, int32_t b) { return at[a] < at[b]; });
      std::fill(total.begin(), total.end(), 0.0f);
      for (const int32_t j : order) {
        if (at[j] < 0) continue;
        const T* row = rows + at[j] * width;
        const float weight = weights[t * top_k + j];
        for (int64_t c = 0; c < width; ++c) total[c] += weight * wide(row[c]);
      }
      for (int64_t c = 0; c < width; ++c) put(y + t * width + c, total[c]);
    }
  }
}

}  // namespace

extern "C" {

void moe_route_rows(const float* logits, int64_t tokens, int64_t experts, const float* bias, int32_t softmax,
                    int32_t renormalise, int64_t groups, int64_t groups_kept, int64_t group_top, float scale,
                    float least, int64_t top_k, float* weights, int32_t* picked) {
  Room room;
  room.score.resize(experts), room.rank.resize(experts), room.group.resize(groups);
  room.taken.resize(experts), room.kept.resize(groups);
  for (int64_t t = 0; t < tokens; ++t, weights += top_k, picked += top_k) {
    scores(logits + t * experts, experts, bias, softmax, room);
    std::fill(room.taken.begin(), room.taken.end(), 0);
    if (groups > 1) limit(experts, groups, groups_kept, group_top, room);
    float total = least;
    for (int64_t j = 0; j < top_k; ++j) {
      const int64_t at = best(room.rank.data(), room.taken.data(), 0, experts);
      room.taken[at] = 1;
      picked[j] = int32_t(at);
      weights[j] = room.score[at];
      total += weights[j];
    }
    for (int64_t j = 0; j < top_k; ++j) weights[j] = (renormalise ? weights[j] / total : weights[j]) * scale;
  }
}

// A stable counting sort of tokens * top_k pairs, and a copy of `bytes` a row.
void moe_permute_rows(const char* x, int64_t bytes, const int32_t* experts, int64_t tokens, int64_t top_k,
                      int64_t count, char* rows, int32_t* offsets, int32_t* inverse) {
  const int64_t pairs = tokens * top_k;
  std::vector<int32_t> next(count + 1, 0);
  for (int64_t p = 0; p < pairs; ++p)
    if (experts[p] >= 0 && experts[p] < count) ++next[experts[p] + 1];
  for (int64_t e = 0; e < count; ++e) next[e + 1] += next[e];
  std::copy(next.begin(), next.end(), offsets);
  for (int64_t p = 0; p < pairs; ++p) {
    const int32_t expert = experts[p];
    inverse[p] = expert >= 0 && expert < count ? next[expert]++ : -1;
    if (inverse[p] >= 0) std::memcpy(rows + inverse[p] * bytes, x + p / top_k * bytes, bytes);
  }
  std::memset(rows + offsets[count] * bytes, 0, (pairs - offsets[count]) * bytes);
}

// kind 0: float32, 1: bfloat16, of rows and y.
void moe_combine_rows(int32_t kind, const void* rows, const int32_t* inverse, const float* weights, int64_t tokens,
                      int64_t top_k, int64_t width, int64_t threads, void* y) {
  if (kind == 0)
    combine((const float*)rows, inverse, weights, tokens, top_k, width, threads, (float*)y);
  else
    combine((const uint16_t*)rows, inverse, weights, tokens, top_k, width, threads, (uint16_t*)y);
}
}
