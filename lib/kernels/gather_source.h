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
  kGatherWords,  // of an item of the quick way: 4 or 1; 0: there is no such way
  kGatherApart,  // from one of them to the next, in words of the output
  kGatherItemsAt,
  kGatherPlaces,  // runs of the input that an item is made of: 4 or 1
  kGatherPlace,   // where they begin, from the item's first nibble on
  kGatherLow =
      kGatherPlace + 4,  // which nibbles of four bytes are a word's low ones, and its high ones
  kGatherHigh,
  kGatherHeadWords
};
enum GatherOperation { kGatherEnd, kGatherDigits, kGatherRows };

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
      gather_u32 column = index - row * op[1];
      *fill = op[4];
      if (row >= op[3] || column >= op[6] || op[8 + row] == GATHER_FILLED) return GATHER_FILLED;
      index = op[8 + row] * op[5] + op[7] + column;
      op += 8 + op[3];
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

GATHER_FUNCTION gather_u32 gather_left(gather_u32 value, gather_u32 by) {
  return value << (by & 31) | value >> ((32 - by) & 31);
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
    value |= gather_left(from, map[i]) & map[i + 1];
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

// Word `word` of a granule, or what there is of it.
GATHER_FUNCTION void gather_slowly(const gather_u32* plan, const unsigned char* in, gather_u32 word,
                                   unsigned char* out) {
  gather_u32 end = 2 * plan[kGatherOutBytes];
  gather_u32 index = 8 * word;
  unsigned char* to = out + 4 * (gather_u64)word;
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

// An item of the quick way: where its runs lie in a granule, which bytes of them are no fillings, and
// what those are; and what the plan says of all items.
struct GatherItem {
  gather_u32 at[4], keep[4], filling[4];
  gather_u32 apart, low, high, map_words;
  const gather_u32* map;
};

// What an item has of a granule: four words that lie together; or the k-th bytes of four runs are word
// k; or a word; or a word of four bytes.
GATHER_FUNCTION void gather_load(const struct GatherItem* item, const unsigned char* in,
                                 const gather_u32 places, const gather_u32 words,
                                 gather_u32* made) {
  if (places == 1 && words == 4) {
    gather_u32x4 four = *(const gather_u32x4*)(in + item->at[0]);
    GATHER_UNROLL
    for (gather_u32 k = 0; k < 4; ++k) made[k] = (four[k] & item->keep[0]) | item->filling[0];
  } else if (places == 1) {
    made[0] = (*(const gather_u32*)(in + item->at[0]) & item->keep[0]) | item->filling[0];
  } else if (words == 4) {
    gather_u32 run[4];
    GATHER_UNROLL
    for (gather_u32 k = 0; k < 4; ++k) {
      run[k] = (*(const gather_u32*)(in + item->at[k]) & item->keep[k]) | item->filling[k];
    }
    gather_u32 low[2] = {gather_bytes(run[0], run[1], 0x5140),
                         gather_bytes(run[2], run[3], 0x5140)};
    gather_u32 high[2] = {gather_bytes(run[0], run[1], 0x7362),
                          gather_bytes(run[2], run[3], 0x7362)};
    made[0] = gather_bytes(low[0], low[1], 0x5410);
    made[1] = gather_bytes(low[0], low[1], 0x7632);
    made[2] = gather_bytes(high[0], high[1], 0x5410);
    made[3] = gather_bytes(high[0], high[1], 0x7632);
  } else {
    gather_u32 value = 0;
    GATHER_UNROLL
    for (gather_u32 k = 0; k < 4; ++k) value |= (gather_u32)in[item->at[k]] << (8 * k);
    made[0] = (value & item->keep[0]) | item->filling[0];
  }
}

// For word k of each granule g. The bounds of the loops are numbers, or the compiler leaves the words in
// memory.
#define GATHER_EACH_WORD                                              \
  GATHER_UNROLL for (gather_u32 g = 0; g < GATHER_MOST_GRANULES; ++g) \
      GATHER_UNROLL for (gather_u32 k = 0; k < 4; ++k) if (g < granules && k < words)

// An item of `granules` granules, a constant as `places` and `words` are.
GATHER_FUNCTION void gather_item(const struct GatherItem* item, const unsigned char* in,
                                 gather_u64 in_step, unsigned char* out, gather_u64 out_step,
                                 const gather_u32 granules, const gather_u32 places,
                                 const gather_u32 words) {
  gather_u32 made[GATHER_MOST_GRANULES][4];
  gather_u32 moved[GATHER_MOST_GRANULES][4];
  GATHER_EACH_WORD made[g][k] = moved[g][k] = 0;
  GATHER_UNROLL
  for (gather_u32 g = 0; g < GATHER_MOST_GRANULES; ++g) {
    if (g < granules) gather_load(item, in + g * in_step, places, words, made[g]);
  }
  if (item->low != 0x3210 || item->high != 0x7654) {
    GATHER_EACH_WORD {
      gather_u32 even = made[g][k] & 0x0F0F0F0F, odd = (made[g][k] >> 4) & 0x0F0F0F0F;
      made[g][k] = gather_bytes(even, odd, item->low) | gather_bytes(even, odd, item->high) << 4;
    }
  }
  if (item->map_words > 0) {
    for (gather_u32 i = 0; i < item->map_words; i += 2) {
      gather_u32 by = item->map[i], mask = item->map[i + 1];
      GATHER_EACH_WORD moved[g][k] |= gather_left(made[g][k], by) & mask;
    }
    GATHER_EACH_WORD made[g][k] = moved[g][k];
  }
  GATHER_UNROLL
  for (gather_u32 g = 0; g < GATHER_MOST_GRANULES; ++g, out += out_step) {
    if (g >= granules) break;
    if (words == 4 && item->apart == 1) {  // 16 bytes at once
      gather_u32x4 four = {made[g][0], made[g][1], made[g][2], made[g][3]};
      *(gather_u32x4*)out = four;
    } else {
      GATHER_UNROLL
      for (gather_u32 k = 0; k < 4; ++k) {
        if (k < words) ((gather_u32*)out)[k * item->apart] = made[g][k];
      }
    }
  }
}

// The quick way: item `number` of several granules. Where its runs lie is the same in all of them, and is
// found once.
GATHER_FUNCTION void gather_quickly(const gather_u32* plan, const unsigned char* in,
                                    gather_u64 in_step, unsigned char* out, gather_u64 out_step,
                                    gather_u32 granules, gather_u32 number, const gather_u32 places,
                                    const gather_u32 words) {
  const gather_u32* digits = plan + plan[kGatherItemsAt];
  gather_u32 base = 0, to = 0;
  for (gather_u32 count = *digits++; count > 0; --count, digits += 4) {
    gather_u32 q = count > 1 ? gather_quotient(number, digits[0], digits[1]) : 0;
    base += (number - q * digits[0]) * digits[2];
    to += (number - q * digits[0]) * digits[3];
    number = q;
  }
  struct GatherItem item = {{0, 0, 0, 0},
                            {0, 0, 0, 0},
                            {0, 0, 0, 0},
                            plan[kGatherApart],
                            plan[kGatherLow],
                            plan[kGatherHigh],
                            plan[kGatherMap] != 0 ? plan[kGatherMapWords] : 0,
                            plan + plan[kGatherMapAt]};
  if (words == 4 && item.apart == 1) to &= ~3U;
  if (to + (gather_u64)(words - 1) * item.apart >= plan[kGatherOutBytes] / 4) return;
  out += 4 * (gather_u64)to;
  const gather_u32* chain = plan + plan[kGatherInnerAt];
  const gather_u32* digits_of_span = chain + 1 + GATHER_MOST_SPAN;
  const gather_u32* rest = digits_of_span + 1 + 3 * digits_of_span[0];
  gather_u32 run = places == 1 ? 8 * words : 2 * words, limit = 2 * plan[kGatherInBytes];
  GATHER_UNROLL
  for (gather_u32 k = 0; k < 4; ++k) {
    if (k >= places) break;
    gather_u32 fill = 0;
    gather_u32 place = gather_place(rest, base + plan[kGatherPlace + k], &fill) & ~(run - 1);
    int inside = place < limit && run <= limit - place;
    gather_u32 kept = inside ? ~0U : 0, filling = inside ? 0 : fill * 0x01010101U;
    item.at[k] = inside ? place >> 1 : 0;
    if (places == 4 && words == 1) {
      item.keep[0] |= kept & 255U << (8 * k);
      item.filling[0] |= filling & 255U << (8 * k);
    } else {
      item.keep[k] = kept;
      item.filling[k] = filling;
    }
  }
  for (; granules >= GATHER_MOST_GRANULES; granules -= GATHER_MOST_GRANULES) {
    gather_item(&item, in, in_step, out, out_step, GATHER_MOST_GRANULES, places, words);
    in += GATHER_MOST_GRANULES * in_step;
    out += GATHER_MOST_GRANULES * out_step;
  }
  for (; granules > 0; --granules, in += in_step, out += out_step) {
    gather_item(&item, in, in_step, out, out_step, 1, places, words);
  }
}

// What a thread makes of `granules` granules, which lie `in_step` and `out_step` bytes apart: items, or
// words where the plan has no quick way or memory does not lie as that needs, from `first` on, each
// `step`-th.
GATHER_FUNCTION void gather_granules(const gather_u32* plan, const unsigned char* in,
                                     gather_u64 in_step, unsigned char* out, gather_u64 out_step,
                                     gather_u32 granules, gather_u32 first, gather_u32 step) {
  gather_u32 words = plan[kGatherWords], places = plan[kGatherPlaces];
  gather_u32 run = places == 1 ? 4 * words : words;
  gather_u32 written = plan[kGatherApart] == 1 ? 4 * words : 4;
  int quick = words != 0 && (((gather_u64)in | in_step) & (run - 1)) == 0 &&
              (((gather_u64)out | out_step) & (written - 1)) == 0;
  gather_u32 end = (plan[kGatherOutBytes] + 3) / 4;
  if (quick && words == 4) end /= 4;
  for (; first < end; first += step) {
    if (!quick) {
      for (gather_u32 g = 0; g < granules; ++g) {
        gather_slowly(plan, in + g * in_step, first, out + g * out_step);
      }
    } else if (places == 1 && words == 4) {
      gather_quickly(plan, in, in_step, out, out_step, granules, first, 1, 4);
    } else if (places == 1) {
      gather_quickly(plan, in, in_step, out, out_step, granules, first, 1, 1);
    } else if (words == 4) {
      gather_quickly(plan, in, in_step, out, out_step, granules, first, 4, 4);
    } else {
      gather_quickly(plan, in, in_step, out, out_step, granules, first, 4, 1);
    }
  }
}

// NOLINTEND(clang-diagnostic-old-style-cast,bugprone-implicit-widening-*)
#endif
