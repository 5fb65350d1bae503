"""Protobuf's encoding by hand, for files that no library would write."""


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number, payload):
    """A length-delimited field: message, string or bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def nested(innermost, levels):
    """innermost inside the last of `levels`, that inside the one before it ...; a level is (other fields, number of the
    field that holds the next one). Each byte is written once, so depth costs no time."""
    pieces, size = [innermost], len(innermost)
    for front, number in reversed(levels):
        head = front + varint(number << 3 | 2) + varint(size)
        pieces.append(head)
        size += len(head)
    return b"".join(reversed(pieces))


HEADER = b"\x08\x08" + field(8, b"\x10\x0d")  # ir_version 8, opset 13
OUTPUT = field(12, field(1, b"z"))  # of a graph


def nested_ifs(depth):
    """A model of `depth` If nodes inside each other."""
    level = [(OUTPUT, 1), (field(1, b"c") + field(2, b"z") + field(4, b"If"), 5), (field(1, b"then_branch") + b"\xa0\x01\x05", 6)]
    return nested(OUTPUT, [(HEADER, 7), *level * depth])


def nested_sequences(depth):
    """A model whose input is a sequence of sequences of ..."""
    return nested(b"", [(HEADER, 7), (OUTPUT, 11), (field(1, b"x"), 2), *[(b"", 4), (b"", 1)] * depth])


def fields_of(message):
    """[(field number, wire type, payload)] of an encoded message: an int for varints, else bytes; None if it is none."""
    fields, at = [], 0
    while at < len(message):
        tag, at = read_varint(message, at)
        number, kind = (tag or 0) >> 3, (tag or 0) & 7
        if number == 0:
            return None
        if kind == 0:
            payload, at = read_varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            payload, at = message[at:at + size], at + size
        elif kind == 2:
            size, at = read_varint(message, at)
            if size is None:
                return None
            payload, at = message[at:at + size], at + size
        else:
            return None
        if payload is None or at > len(message):
            return None
        fields.append((number, kind, payload))
    return fields


def read_varint(data, at):
    """(value, where it ends); the value is None where there is none."""
    value = 0
    for k in range(10):
        if at + k >= len(data):
            break
        value |= (data[at + k] & 127) << 7 * k
        if data[at + k] < 128:
            return value, at + k + 1
    return None, len(data) + 1


def message_of(fields):
    """The encoded message of such fields."""
    out = bytearray()
    for number, kind, payload in fields:
        out += varint(number << 3 | kind)
        if kind == 0:
            out += varint(payload & (1 << 64) - 1)
        elif kind == 2:
            out += varint(len(payload)) + payload
        else:
            out += payload
    return bytes(out)
