"""The formulas of `list layouts`, evaluated: the loaded tensors, moved as a layout's lines say, have to be the written
ones, every byte. lib/layouts/layout.hpp says what a line may be; a line that is not read fails."""
import re

import numpy

WEIGHTS = ("weight", "code", "sign", "magnitude")
KINDS = {"value byte": "weight", "weight byte": "weight", "code": "code", "number": "code", "sign": "sign", "magnitude": "magnitude",
         "scale": "scale", "bias": "bias"}
ROUNDED = "code: -0 becomes 0, then the magnitude * 2^-d is rounded to the nearest code, ties up"
INT4 = "number: v / scale, to the nearest integer, ties to even, at most 7; two's complement"
PROSE = ("of a group of 32 values v = code * 2^(s-127), each step rounded to BF16:", "scale: max(largest |v|, 1e-6) / 7",
         "input scale: maximum over the experts, NaN if any is NaN", "w13_bias: a NaN becomes 0x7FFF, F32 is rounded", "out = in",
         "the four bytes of a word then mix: half(low nibbles) | half(high nibbles) << 16, where half puts the bits of the codes "
         "a, b, c, d of slots 0..3 as", "  bit 15  14  13  12  11  10  9   8..6  5..3  2..0")
MAGNITUDES = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


class Names(dict):
    """Values by name; a name that a line defines is evaluated when it is asked for."""

    def __init__(self, values, definitions):
        super().__init__(values, max=numpy.maximum, min=numpy.minimum, up=lambda x, m: -(-x // m) * m)
        self.definitions = definitions

    def __missing__(self, name):
        return self.of(self.definitions[name])

    def of(self, text):
        """An expression: / divides integers, 2I is 2 * I, x[3] is bit 3 of x; max and min without arguments are numbers."""
        text = re.sub(r"\b(\w+)\[(\d+)\]", r"(\1>>\2&1)", text.replace("'", "_").replace("^", "**").replace("/", "//"))
        text = re.sub(r"\b(max|min)\b(?!\()", r"\1_byte", re.sub(r"\b(\d+)([A-Zir]_?)\b", r"(\1*\2)", text))
        return eval(text, {}, self)


class Rules:
    """What the lines of a layout say, and before them those of the layouts that they name."""

    def __init__(self, formulas, layout):
        self.formulas, self.moves, self.places, self.becomes, self.definitions = formulas, [], {}, {}, {}
        self.columns, self.ones = (1, 0), 0  # scales: multiple and byte of padded columns; the byte of all padding
        self.mix, self.rounded, self.repeats, self.by_row, self.int4 = None, False, False, False, False
        for line in formulas[layout].split("\n"):
            self.read(line)

    def take(self, kinds, layout):
        other = Rules(self.formulas, layout)
        self.definitions.update(other.definitions)
        for kind in kinds:
            self.places.pop(kind, None)
            self.places.update({kind: other.places[kind]} if kind in other.places else {})
        self.becomes.update(other.becomes)
        self.ones, self.rounded, self.repeats, self.by_row = other.ones, other.rounded, other.repeats, other.by_row
        self.columns = other.columns if self.columns == (1, 0) else self.columns
        if "weight" in kinds:
            self.moves, self.mix = self.moves + other.moves * (len(kinds) > 5), other.mix

    def read(self, line):
        other = re.fullmatch(r"(?:(.*): )?as ([a-z0-9]+/[a-z0-9-]+)", line)
        place = re.fullmatch(r"(\w+(?: byte)?) (?:\((\w),(\w)\)|(n))(?:, .*? with (\w+))?: (.*?)(?:; 0 beyond the columns)?", line)
        move = re.fullmatch(r"(w13|w13_bias|every)(?: first)?:? (row|index) (.*?)(?: of the last axis)? (takes|->) (?:row )?"
                            r"(.*?)(?: \((gpt_oss|generic)\))?(, not in the bias|, biases too)?", line)
        value = re.fullmatch(r"(scale|second scale): (.*?)(, halved for int8|, 0 for new rows, in the order of biases)?", line)
        columns = re.search(r"scale .*, columns padded to a multiple of (\d+) with (\w+):", line)
        if columns:
            self.columns = (int(columns.group(1)), int(columns.group(2), 0))
        if line in PROSE:
            return
        if line in (ROUNDED, INT4):
            self.rounded, self.int4 = line == ROUNDED, line == INT4
        elif line.endswith("as loaded"):
            for kind in WEIGHTS * ("weight" in line):
                self.places.pop(kind, None)
        elif line.startswith("      a."):
            self.mix = [(slot, int(bit)) for slot, bits in re.findall(r"([a-d])\.(\d+)", line) for bit in bits]
        elif other and other.group(1) == "mix":
            self.mix = Rules(self.formulas, other.group(2)).mix
        elif other:
            subject = other.group(1) or ""
            kinds = [kind for word, kind in KINDS.items() if word in subject]
            kinds = (WEIGHTS + ("scale", "bias") if not subject else
                     (WEIGHTS * ("weight" in kinds) + ("scale",) * ("scale" in kinds)))
            self.take(kinds, other.group(2))
        elif move:
            scope, axis, one, verb, two, family, bias = move.groups()
            self.moves.append((scope, axis, *((two, one) if verb == "takes" else (one, two)), family, bias))
        elif place:
            self.places[KINDS[place.group(1)]] = ((place.group(2) or "n", place.group(3)), place.group(6))
            for kind in {"code": ("sign", "magnitude"), "sign": ("code",)}.get(KINDS[place.group(1)], ()):
                self.places.pop(kind, None)
        elif line == "padded with codes 0, scale bytes 127, biases 0":
            self.ones = 127
        elif line.startswith("max, min over the "):
            self.by_row, self.repeats = "over the row's" in line, "repeat" in line
        elif line == "span = 12 (float8e4m3) or 3 (int8)":
            self.definitions["span"] = "3 if int8 else 12"
        elif value:
            self.becomes[value.group(1)] = value.group(2).removeprefix("2^") + (" - int8" if "halved" in line else "")
        else:
            self.definitions.update([re.fullmatch(r"(\w+) = (.*)", line).groups()])


def moved(rules, name, array, names, family):
    """One expert's rows and columns after the lines about rows."""
    for scope, axis, source, target, only, bias in rules.moves:
        if (scope not in ("every", name[:3], name) or scope == "w13_bias" != name or only not in (None, family)
                or (name.endswith("bias") and bias == ", not in the bias")):
            continue
        array = array.T if axis == "index" and array.shape[1] > 1 else array
        here = Names({**names, "r": numpy.arange(len(array)), "d": numpy.arange(len(array)), "n": len(array)}, {})
        here["g"], here["i"] = numpy.indices((2, names["I"]))
        out = numpy.empty_like(array)
        out[here.of(target)] = array[here.of(source)]
        array = out.T if axis == "index" and array.shape[1] > 1 and name[-4:] != "bias" else out
    return array


def position(target, names, shape, a_byte):
    """Where elements go, counted in elements of which a byte holds `a_byte`."""
    part = re.fullmatch(r"(nibble|byte) (.*?) of (word|byte) (.*)", target)
    if part:
        return position(part.group(4), names, shape, 1) * ((4 if part.group(3) == "word" else 1) * a_byte) + names.of(part.group(2))
    for pattern, in_row in ((r"\[(.*?)\]\[(.*)\]", 1), (r"row (.*), column (.*)", a_byte), (r"row (.*), word (.*), slot (.*)", a_byte)):
        found = re.fullmatch(pattern, target)
        if found:
            row, *places = map(names.of, found.groups())
            return row * shape[-1] * in_row + (places[0] if len(places) == 1 else 4 * places[0] + places[1])
    where = names.of(target.removeprefix("offset "))
    return numpy.ravel_multi_index(numpy.broadcast_arrays(*where), shape[1:]) if isinstance(where, tuple) else where


def placed(place, array, names, shape, size, a_byte=1):
    (row, column), target = place
    here = Names(names, names.definitions)
    here[row], here[column] = numpy.indices(array.shape)
    out = numpy.zeros(size * a_byte, array.dtype)
    out[position(target, here, shape, a_byte)] = array
    return out


def mixed(order, data):
    """Words of four bytes in which the bits of the codes of each half lie in another order."""
    slots = data.reshape(-1, 4).astype("u4")
    words = numpy.zeros(len(slots), "u4")
    for half in (0, 1):
        for bit, (slot, source) in enumerate(reversed(order)):
            words |= (slots[:, "abcd".index(slot)] >> (4 * half + source) & 1) << (16 * half + bit)
    return words.view("u1")


def bf16(x):
    fraction, exponent = numpy.frexp(x)
    return numpy.ldexp(numpy.rint(numpy.ldexp(fraction, 8)), exponent - 8)


def int4(codes, scales):
    """Numbers in two's complement and the bits of their BF16 scales."""
    values = MAGNITUDES[codes & 7] * 2.0 ** (scales.repeat(32, axis=1) - 127)
    largest = values.reshape(len(values), -1, 32).max(axis=2)
    scale = bf16(numpy.maximum(largest, bf16(1e-6)) / 7)
    numbers = numpy.minimum(7, numpy.rint(bf16(values / scale.repeat(32, axis=1)))).astype(int)
    return numpy.where(codes & 8, -numbers, numbers) & 15, (scale.astype("f4").view("u4") >> 16).astype("u2")


def rounded(codes, down):
    codes = numpy.where(codes == 8, 0, codes)
    middles = (MAGNITUDES[1:] + MAGNITUDES[:-1]) / 2
    return codes & 8 | numpy.searchsorted(middles, MAGNITUDES[codes & 7] * 2.0 ** -down, side="right")


def check_pair(rules, prefix, loaded, written, names, family):
    """w13 or w2 of one expert, by tensor: what is written of it must be what the lines say."""
    arrays = {name: moved(rules, prefix + name, loaded[prefix + name], names, family)
              for name in ("weight", "weight_scale", "bias") if prefix + name in loaded}
    data, scales = arrays["weight"], arrays["weight_scale"].astype(int)
    names = Names({**names, "N": len(data), "K": 2 * data.shape[1], "C": data.shape[1], "S": scales.shape[1]}, rules.definitions)
    rows, columns = (names["N_"], names["K_"]) if names["padded"] else data.shape * numpy.array([1, 2])
    largest = scales.max(axis=1, keepdims=True, initial=0)
    padding = ((0, rows - len(data)), (0, (columns - 2 * data.shape[1]) // 2))
    data = numpy.pad(data, padding)
    across = columns // 32 - scales.shape[1]
    if rules.repeats:
        scales = numpy.hstack([scales, largest.repeat(across, axis=1)])
    scales = numpy.pad(scales, (padding[0], (0, columns // 32 - scales.shape[1])), constant_values=rules.ones)
    scales = numpy.pad(scales, ((0, 0), (0, -scales.shape[1] % rules.columns[0])), constant_values=rules.columns[1])
    codes = numpy.stack([data & 15, data >> 4], axis=2).reshape(rows, columns).astype(int)
    axis = 1 if rules.by_row else None
    names.update(s=scales, max_byte=scales.max(axis=axis, keepdims=True), min_byte=scales.min(axis=axis, keepdims=True))
    if rules.rounded:
        codes = rounded(codes, names["d"].repeat(32, axis=1))
    if rules.int4:
        codes, scales = int4(codes, scales)
    elif "scale" in rules.becomes:
        scales = names.of(rules.becomes["scale"])
    for name, got in written.items():
        if not name.startswith(prefix):
            continue
        kind, size = name[len(prefix):], got.nbytes
        if kind == "weight":
            want = data.reshape(-1)
            if "weight" in rules.places:
                want = placed(rules.places["weight"], data, names, got.shape, size)
            for part, mask in (("code", 15), ("sign", 8), ("magnitude", 7)):
                if part in rules.places:
                    nibbles = placed(rules.places[part], (codes & mask).astype("u1"), names, got.shape, size, 2)
                    nibbles = nibbles[::2] | nibbles[1::2] << 4
                    want = want | nibbles if part == "magnitude" else nibbles
            want = mixed(rules.mix, want) if rules.mix else want
        elif kind == "weight_scale":
            wide = got.itemsize if "scale" in rules.becomes or rules.int4 else 1
            want = scales.astype("<u%d" % wide)
            if "scale" in rules.places:
                want = placed(rules.places["scale"], want, names, got.shape, size // wide)
        elif kind == "bias":
            want = numpy.pad(arrays["bias"], (padding[0], (0, 0)))
            if "bias" in rules.places:
                want = placed((("n", "_"), rules.places["bias"][1]), want, names, got.shape, len(want))
            want = want.astype("u4") << 16 if got.itemsize > want.itemsize else want
        elif kind == "input_scale":
            continue
        else:
            want = numpy.ldexp(numpy.float32(1), numpy.broadcast_to(names.of(rules.becomes["second scale"]), (rows if rules.by_row else 1, 1)))
            if rules.by_row:
                want[loaded[prefix + "weight"].shape[0]:] = 0
                want = placed((("n", "_"), rules.places["bias"][1]), want.view("u4") >> 16, names, got.shape, len(want)).astype("u2")
        assert want.tobytes() == got.tobytes(), "%s is not what the formula says" % name


def share_of(array, expert, experts, rows):
    """What a written tensor has of one expert: a part of its own, or as many rows of all experts' rows."""
    if array.shape[0] == experts:
        return array[expert:expert + 1]
    part = rows * array.shape[1] if array.ndim == 2 else array.size // experts
    return array.reshape(-1)[expert * part:(expert + 1) * part]


def check(layouts, layout, loaded, written, family, int8):
    """`layouts` by id as `list layouts --json` has them; the tensors of one layer as loaded and as written."""
    rules = Rules({name: row["formula"] for name, row in layouts.items()}, layout)
    experts, width, height = loaded["w2_weight"].shape
    padded = re.match(r"N' = (.*), K' = (.*)\n", layouts[layout]["outputs"])
    names = {"E": experts, "H": width, "I": 2 * height, "int8": int8, "padded": padded is not None}
    if padded:
        rules.definitions.update(N_=padded.group(1), K_=padded.group(2))
    else:
        rules.definitions.update(N_="N", K_="K")
    assert written.keys() >= loaded.keys() - {"w13_input_scale", "w2_input_scale"}
    for expert in range(experts):
        one = {name: rest[expert].reshape(rest[expert].shape[0] if rest.ndim > 1 else 1, -1) for name, rest in loaded.items()}
        for prefix in ("w13_", "w2_"):
            share = {name: share_of(array, expert, experts, one[prefix + "weight"].shape[0]) for name, array in written.items()
                     if name.startswith(prefix) and "input_scale" not in name}
            check_pair(rules, prefix, one, share, names, family)
    for name, array in written.items():  # of joined experts, what lies behind the last
        used = experts * loaded[name.split("_")[0] + "_weight"].shape[1]
        assert array.ndim != 2 or (array[used:] == 0x7F).all(), name + " has other bytes behind the last expert"


def check_outputs(outputs, loaded, written):
    """A layout's `outputs`: "NAME, NAME: TYPE or TYPE [SIZES]", or "as loaded", and before them what N' and K' are. loaded,
    written: {name: [type, shape]} of one layer, as manifests have them."""
    experts, hidden, half = loaded["w2_weight"][1]
    definitions = {letter + "_": text for letter, text in re.findall(r"([NK])' = (up\(\w,\d+\))", outputs)}
    for name, (dtype, shape) in written.items():
        n, k = (4 * half, hidden) if name.startswith("w13_") else (hidden, 2 * half)
        names = Names({"E": experts, "H": hidden, "I": 2 * half, "N": n, "K": k, "C": k // 2, "S": k // 32}, definitions)
        said = []
        for words in re.findall(rf"(?m)^(?:\w+, )*{name}(?:, \w+)*: (.*)", outputs):
            if words.startswith("as loaded"):
                said.append(loaded[name])
                continue
            types, sizes = re.match(r"([\w ]+) \[(.*?)\]", words).groups()
            said += [[one, [names.of(size) for size in sizes.split(", ") if size]] for one in types.split(" or ")]
        assert [dtype, shape] in said, f"{name}: {dtype} {shape}, in words {said}"
