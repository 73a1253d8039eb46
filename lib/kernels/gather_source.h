// The gather of a granule, driven by a plan (lib/steps/gather_plan.hpp says what its words mean).
// This is the source of the GPU's kernel, and of the same loops on CPUs for tests: plain C, no
// header of any vendor. `scripts/make-gpu-kernels` compiles it to the text that lies in
// formats/loader/gpu/.
#ifndef MXFP4_GATHER_SOURCE_H_
#define MXFP4_GATHER_SOURCE_H_
// It is C:
// NOLINTBEGIN(clang-diagnostic-old-style-cast,bugprone-implicit-widening-*)

#ifdef __CUDA__
#define GATHER_FUNCTION static __attribute__((device)) inline __attribute__((always_inline))
#else
#define GATHER_FUNCTION static inline
#endif

typedef unsigned int gather_u32;
typedef unsigned long long gather_u64;
typedef gather_u32 gather_u32x4 __attribute__((vector_size(16)));

enum GatherHead {
  kGatherOutBytes,
  kGatherInBytes,
  kGatherUnit,  // nibbles that stay together from the input to the element map, or to the output
  kGatherOuterUnit,  // from there to the output
  kGatherMap,        // 0: none; 1: a table; 2: bits that move
  kGatherMapIn,
  kGatherMapOut,  // bytes of an element
  kGatherMapAt,
  kGatherMapWords,
  kGatherInnerAt,
  kGatherOuterAt,
  kGatherBytes,  // of the quick way, else 0: which 4 places of a span have the bytes of a word
  kGatherLow,    // and which nibbles of them are a word's low ones, and its high ones
  kGatherHigh,
  kGatherHeadWords
};
enum GatherOperation { kGatherEnd, kGatherDigits, kGatherRows, kGatherPad };

#ifdef __CUDA__
#define GATHER_UNROLL _Pragma("unroll")
#else
#define GATHER_UNROLL
#endif

#define GATHER_FILLED 0xFFFFFFFFU
#define GATHER_MOST_SPAN 8

// n / d, where `magic` is 2^32 / d, or log2(d) for a power of two.
GATHER_FUNCTION gather_u32 gather_quotient(gather_u32 n, gather_u32 d, gather_u32 magic) {
  if (magic < 32) return n >> magic;
  gather_u32 q = (gather_u32)(((gather_u64)n * magic) >> 32);
  return n - q * d >= d ? q + 1 : q;
}

// The sum of the digits of `index` times their strides; `digits` are `count` times extent, magic,
// stride.
GATHER_FUNCTION gather_u32 gather_digits(const gather_u32* digits, gather_u32 count,
                                         gather_u32 index) {
  gather_u32 at = 0;
  for (; count > 1; --count, digits += 3) {
    gather_u32 q = gather_quotient(index, digits[0], digits[1]);
    at += (index - q * digits[0]) * digits[2];
    index = q;
  }
  return at + index * digits[2];
}

// Where nibble `index` of what the operations from `op` on make comes from; GATHER_FILLED and the
// byte for a filling.
GATHER_FUNCTION gather_u32 gather_place(const gather_u32* op, gather_u32 index, gather_u32* fill) {
  for (;;) {
    if (op[0] == kGatherDigits) {
      index = gather_digits(op + 2, op[1], index);
      op += 2 + 3 * op[1];
    } else if (op[0] == kGatherRows) {
      gather_u32 row = gather_quotient(index, op[1], op[2]);
      *fill = op[4];
      if (row >= op[3] || op[5 + row] == GATHER_FILLED) return GATHER_FILLED;
      index += (op[5 + row] - row) * op[1];
      op += 5 + op[3];
    } else if (op[0] == kGatherPad) {
      gather_u32 row = gather_quotient(index, op[1], op[2]);
      gather_u32 column = index - row * op[1];
      *fill = op[5];
      if (row >= op[4] || column >= op[3]) return GATHER_FILLED;
      index = row * op[6] + op[7] + column;
      op += 8;
    } else {
      return index;
    }
  }
}

// `count` nibbles, at most 8 and at least one, from nibble `at` on. Runs of 2 or more begin with a
// byte.
GATHER_FUNCTION gather_u32 gather_read(const unsigned char* in, gather_u32 at, gather_u32 count) {
  gather_u32 value = 0;
  const unsigned char* from = in + (at >> 1);
  if (count == 1) return (gather_u32)(*from >> (4 * (at & 1))) & 15;
  if (count == 2) return *from;
  if (count == 8 && ((gather_u64)from & 3) == 0) return *(const gather_u32*)from;
  for (gather_u32 k = 0; k < count; k += 2) value |= (gather_u32)*from++ << (4 * k);
  return value;
}

GATHER_FUNCTION gather_u32 gather_low(gather_u32 value, gather_u32 nibbles) {
  return nibbles >= 8 ? value : value & ((1U << (4 * nibbles)) - 1);
}

// `count` nibbles from `index` on, at most 8 and a multiple of the span, of what the inner chain
// makes. A chain begins with the nibbles of a span, whose places lie the same way in each, and the
// digits of the span's number.
GATHER_FUNCTION gather_u32 gather_inner(const gather_u32* plan, const unsigned char* in,
                                        gather_u32 index, gather_u32 count) {
  const gather_u32* chain = plan + plan[kGatherInnerAt];
  gather_u32 span = 1U << chain[0];
  const gather_u32* digits = chain + 1 + GATHER_MOST_SPAN;
  const gather_u32* rest = digits + 1 + 3 * digits[0];
  gather_u32 limit = 2 * plan[kGatherInBytes];
  gather_u32 unit = plan[kGatherUnit] < span ? plan[kGatherUnit] : span;
  gather_u32 value = 0;
  for (gather_u32 k = 0; k < count; k += span) {
    gather_u32 base = gather_digits(digits + 1, digits[0], (index + k) >> chain[0]);
    for (gather_u32 j = 0; j < span; j += unit) {
      gather_u32 fill = 0;
      gather_u32 at = gather_place(rest, base + chain[1 + j], &fill);
      gather_u32 piece = fill * 0x01010101U;
      if (at < limit && unit <= limit - at) piece = gather_read(in, at, unit);
      value |= gather_low(piece, unit) << (4 * (k + j));
    }
  }
  return value;
}

// An element behind the element map.
GATHER_FUNCTION gather_u32 gather_element(const gather_u32* plan, const unsigned char* in,
                                          gather_u32 element) {
  gather_u32 nibbles = 2 * plan[kGatherMapIn];
  gather_u32 from = gather_inner(plan, in, element * nibbles, nibbles);
  const gather_u32* map = plan + plan[kGatherMapAt];
  if (plan[kGatherMap] == 1) return map[from];
  gather_u32 value = 0;
  for (gather_u32 i = 0; i < plan[kGatherMapWords]; i += 2) {
    gather_u32 bits = from & map[i + 1];
    value |= bits << map[i] | bits >> ((32 - map[i]) & 31);
  }
  return value;
}

// `count` nibbles, at most 8, that lie together in what the outer chain takes.
GATHER_FUNCTION gather_u32 gather_mapped(const gather_u32* plan, const unsigned char* in,
                                         gather_u32 index, gather_u32 count) {
  gather_u32 size = 2 * plan[kGatherMapOut];
  gather_u32 value = 0;
  for (gather_u32 k = 0; k < count;) {
    gather_u32 element = (index + k) / size;
    gather_u32 inside = index + k - element * size;
    gather_u32 taken = size - inside < count - k ? size - inside : count - k;
    value |= gather_low(gather_element(plan, in, element) >> (4 * inside), taken) << (4 * k);
    k += taken;
  }
  return value;
}

// `count` nibbles of the output from `index` on, at most 8.
GATHER_FUNCTION gather_u32 gather_word(const gather_u32* plan, const unsigned char* in,
                                       gather_u32 index, gather_u32 count) {
  if (plan[kGatherMap] == 0) return gather_inner(plan, in, index, count);
  gather_u32 unit = plan[kGatherOuterUnit] < 8 ? plan[kGatherOuterUnit] : 8;
  gather_u32 value = 0;
  for (gather_u32 k = 0; k < count; k += unit) {
    gather_u32 fill = 0;
    gather_u32 at = gather_place(plan + plan[kGatherOuterAt], index + k, &fill);
    gather_u32 piece = fill * 0x01010101U;
    if (at != GATHER_FILLED) piece = gather_mapped(plan, in, at, unit);
    value |= gather_low(piece, unit) << (4 * k);
  }
  return value;
}

// How many words gather_words() makes at a time: 4 where 16 bytes stay together.
GATHER_FUNCTION gather_u32 gather_at_once(const gather_u32* plan) {
  return plan[kGatherMap] == 0 && plan[kGatherUnit] == 32 ? 4 : 1;
}

// gather_at_once() words of a granule from `word` on, or what there is of them.
GATHER_FUNCTION void gather_some(const gather_u32* plan, const unsigned char* in, gather_u32 word,
                                 unsigned char* out) {
  gather_u32 end = 2 * plan[kGatherOutBytes];
  gather_u32 index = 8 * word;
  unsigned char* to = out + 4 * (gather_u64)word;
  if (gather_at_once(plan) == 4) {
    const gather_u32* chain = plan + plan[kGatherInnerAt];
    const gather_u32* digits = chain + 1 + GATHER_MOST_SPAN;
    gather_u32 fill = 0;
    gather_u32 at = gather_place(digits + 1 + 3 * digits[0],
                                 gather_digits(digits + 1, digits[0], index >> chain[0]), &fill);
    const unsigned char* from = in + (at >> 1);
    gather_u32 limit = 2 * plan[kGatherInBytes];
    if (at < limit && 32 <= limit - at) {
      if ((((gather_u64)from | (gather_u64)to) & 15) == 0) {
        *(gather_u32x4*)to = *(const gather_u32x4*)from;
      } else {
        for (gather_u32 b = 0; b < 16; ++b) to[b] = from[b];
      }
    } else {
      for (gather_u32 b = 0; b < 16; ++b) to[b] = (unsigned char)fill;
    }
    return;
  }
  gather_u32 count = end - index < 8 ? end - index : 8;
  gather_u32 value = gather_word(plan, in, index, count);
  if (count == 8 && ((gather_u64)to & 3) == 0) {
    *(gather_u32*)to = value;
  } else {
    for (gather_u32 b = 0; 2 * b < count; ++b) to[b] = (unsigned char)(value >> (8 * b));
  }
}

// Byte i of the result is byte `order >> 4 i`, 0 to 7, of low and high.
GATHER_FUNCTION gather_u32 gather_bytes(gather_u32 low, gather_u32 high, gather_u32 order) {
#ifdef __CUDA__
  return __nvvm_prmt(low, high, order & 0x7777);
#else
  gather_u64 from = (gather_u64)high << 32 | low;
  gather_u32 value = 0;
  for (gather_u32 i = 0; i < 4; ++i) {
    value |= (gather_u32)(from >> (8 * ((order >> (4 * i)) & 7)) & 255) << (8 * i);
  }
  return value;
#endif
}

#define GATHER_MOST_GRANULES 4

// A word of the quick way: where its four bytes lie in a granule, which of them are not fillings, and
// what those are; whether the four are one word of the input; and what the plan says of all words.
struct GatherPlaces {
  gather_u32 at[4], keep, filling;
  int word;
  gather_u32 low, high, map_words;
  const gather_u32* map;
};

// The word at `places` of `granules` granules, a constant.
GATHER_FUNCTION void gather_places(struct GatherPlaces places, const unsigned char* in,
                                   gather_u64 in_step, unsigned char* out, gather_u64 out_step,
                                   const gather_u32 granules) {
  gather_u32 made[GATHER_MOST_GRANULES] = {0, 0, 0, 0};
  gather_u32 moved[GATHER_MOST_GRANULES] = {0, 0, 0, 0};
  GATHER_UNROLL
  for (gather_u32 g = 0; g < GATHER_MOST_GRANULES; ++g, in += in_step) {
    if (g >= granules) break;
    gather_u32 value;
    if (places.word && ((gather_u64)(in + places.at[0]) & 3) == 0) {
      value = *(const gather_u32*)(in + places.at[0]);
    } else {
      value = in[places.at[0]] | (gather_u32)in[places.at[1]] << 8 |
              (gather_u32)in[places.at[2]] << 16 | (gather_u32)in[places.at[3]] << 24;
    }
    value = (value & places.keep) | places.filling;
    gather_u32 even = value & 0x0F0F0F0F, odd = (value >> 4) & 0x0F0F0F0F;
    made[g] = gather_bytes(even, odd, places.low) | gather_bytes(even, odd, places.high) << 4;
  }
  if (places.map_words > 0) {
    for (gather_u32 i = 0; i < places.map_words; i += 2) {
      gather_u32 by = places.map[i] & 31, mask = places.map[i + 1];
      GATHER_UNROLL
      for (gather_u32 g = 0; g < GATHER_MOST_GRANULES; ++g) {
        if (g >= granules) break;
        gather_u32 bits = made[g] & mask;
        moved[g] |= bits << by | bits >> ((32 - by) & 31);
      }
    }
    GATHER_UNROLL
    for (gather_u32 g = 0; g < GATHER_MOST_GRANULES; ++g) made[g] = moved[g];
  }
  GATHER_UNROLL
  for (gather_u32 g = 0; g < GATHER_MOST_GRANULES; ++g, out += out_step) {
    if (g >= granules) break;
    *(gather_u32*)out = made[g];
  }
}

// The quick way: a word of several granules. Where its bytes lie is the same in all of them, and is
// found once.
GATHER_FUNCTION void gather_quickly(const gather_u32* plan, const unsigned char* in,
                                    gather_u64 in_step, unsigned char* out, gather_u64 out_step,
                                    gather_u32 granules, gather_u32 word) {
  const gather_u32* chain = plan + plan[kGatherInnerAt];
  const gather_u32* digits = chain + 1 + GATHER_MOST_SPAN;
  gather_u32 base = gather_digits(digits + 1, digits[0], word);
  struct GatherPlaces places = {{0, 0, 0, 0},
                                0,
                                0,
                                plan[kGatherUnit] == 8,
                                plan[kGatherLow],
                                plan[kGatherHigh],
                                plan[kGatherMap] != 0 ? plan[kGatherMapWords] : 0,
                                plan + plan[kGatherMapAt]};
  for (gather_u32 b = 0; b < 4; ++b) {
    gather_u32 fill = 0;
    gather_u32 place = base + chain[1 + ((plan[kGatherBytes] >> (8 * b)) & 7)];
    place = gather_place(digits + 1 + 3 * digits[0], place, &fill);
    int inside = place < 2 * plan[kGatherInBytes];
    GATHER_UNROLL
    for (gather_u32 k = 0; k < 4; ++k) {
      places.at[k] = k == b && inside ? place >> 1 : places.at[k];
    }
    places.keep |= (inside ? 255U : 0U) << (8 * b);
    places.filling |= (inside ? 0U : fill & 255) << (8 * b);
    places.word = places.word && inside && place >> 1 == places.at[0] + b;
  }
  out += 4 * (gather_u64)word;
  for (; granules >= GATHER_MOST_GRANULES; granules -= GATHER_MOST_GRANULES) {
    gather_places(places, in, in_step, out, out_step, GATHER_MOST_GRANULES);
    in += GATHER_MOST_GRANULES * in_step;
    out += GATHER_MOST_GRANULES * out_step;
  }
  for (; granules > 0; --granules, in += in_step, out += out_step) {
    gather_places(places, in, in_step, out, out_step, 1);
  }
}

// gather_at_once() words, from `word` on, of `granules` granules, which lie `in_step` and `out_step`
// bytes apart; 1 granule or more.
GATHER_FUNCTION void gather_words(const gather_u32* plan, const unsigned char* in,
                                  gather_u64 in_step, unsigned char* out, gather_u64 out_step,
                                  gather_u32 granules, gather_u32 word) {
  int whole = 4 * word + 4 <= plan[kGatherOutBytes];
  if (plan[kGatherBytes] != 0 && whole && (((gather_u64)out | out_step) & 3) == 0) {
    gather_quickly(plan, in, in_step, out, out_step, granules, word);
    return;
  }
  for (; granules > 0; --granules, in += in_step, out += out_step) gather_some(plan, in, word, out);
}

// NOLINTEND(clang-diagnostic-old-style-cast,bugprone-implicit-widening-*)
#endif
