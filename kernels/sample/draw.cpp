// Which ids of a row can have the largest log probability plus Gumbel noise. Draws none itself.
//
// Noise is SplitMix64's (see reference.py). Most ids need no logarithm: with the best score so far
// and a block's largest log probability, u = exp(-exp(largest - best)) is the least uniform number
// that could win, and it is compared as an integer. Scores are sums in float64; whatever is within
// MARGIN of the best is named, so that another logarithm's last bit decides nothing.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

constexpr int BLOCK = 512;
constexpr double MARGIN = 1e-6;
constexpr double UNIT = 1.0 / 9007199254740992.0;  // 2^-53

inline uint64_t mixed(uint64_t state) {
  uint64_t z = state + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

inline double score(float logprob, uint64_t bits) {
  return double(logprob) - std::log(-std::log((double(bits) + 0.5) * UNIT));
}

// The least of the 53-bit numbers that may reach `best` from `largest`; lower by far more than
// exp's error.
inline uint64_t least(float largest, double best) {
  const double u = std::exp(-std::exp(double(largest) - best + MARGIN));
  return u * (1 - 1e-9) * 9007199254740992.0 < 1 ? 0 : uint64_t(u * (1 - 1e-9) * 9007199254740992.0) - 1;
}

}  // namespace

// Writes at most `room` ids, ascending -> how many there are, or -1 where `room` did not suffice.
// `likeliest` is an id of the largest log probability; none may be NaN.
extern "C" int64_t candidates(const float* logprobs, int64_t size, int64_t likeliest, int64_t seed,
                              int64_t position, int64_t room, int64_t* ids) {
  const uint64_t key = mixed(uint64_t(seed) + mixed(uint64_t(position)));
  double best = score(logprobs[likeliest], mixed(key + uint64_t(likeliest)) >> 11);
  int64_t count = 0;
  uint64_t bits[BLOCK];
  for (int64_t start = 0; start < size; start += BLOCK) {
    const int length = int(std::min<int64_t>(BLOCK, size - start));
    float largest = -INFINITY;
    for (int i = 0; i < length; ++i) largest = logprobs[start + i] > largest ? logprobs[start + i] : largest;
    if (std::isinf(largest)) continue;
    for (int i = 0; i < BLOCK; ++i) bits[i] = mixed(key + uint64_t(start + i)) >> 11;
    const uint64_t enough = least(largest, best);
    for (int i = 0; i < length; ++i) {
      if (bits[i] < enough || std::isinf(logprobs[start + i])) continue;
      const double mine = score(logprobs[start + i], bits[i]);
      if (mine < best - MARGIN) continue;
      best = std::max(best, mine);
      if (count == room) return -1;
      ids[count++] = start + i;
    }
  }
  return count;
}
