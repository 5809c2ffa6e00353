#!/usr/bin/env python3
"""A backend in another language: a worker of `vyre fuzz` that needs nothing but Python.

It runs programs of a few integer ops and says `unsupported` to all others. docs/workers.md specifies what it speaks.

    vyre fuzz --subject exec:'python3 examples/worker.py' --preset ints --programs 500
"""

import json
import mmap
import os
import struct
import sys

WAITING, RUNNING, OUTPUTS, FAILED = range(4)


class Unsupported(Exception):
    pass


class Trap(Exception):
    pass


class OutOfFuel(Exception):
    pass


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Return(Exception):
    pass


# The types it knows: bits, whether there is a sign, and how an element is packed.
TYPES = {"u32": (32, False, "I"), "i32": (32, True, "I"), "u64": (64, False, "Q"), "i64": (64, True, "Q")}

# By op: what it does to numbers, and whether the result is a truth. Signed types come signed; results wrap.
BINARY = {
    "add": (lambda a, b: a + b, False),
    "sub": (lambda a, b: a - b, False),
    "mul": (lambda a, b: a * b, False),
    "bitand": (lambda a, b: a & b, False),
    "bitor": (lambda a, b: a | b, False),
    "bitxor": (lambda a, b: a ^ b, False),
    "min": (min, False),
    "max": (max, False),
    "and": (lambda a, b: a & b, True),
    "or": (lambda a, b: a | b, True),
    "eq": (lambda a, b: a == b, True),
    "ne": (lambda a, b: a != b, True),
    "lt": (lambda a, b: a < b, True),
    "le": (lambda a, b: a <= b, True),
    "gt": (lambda a, b: a > b, True),
    "ge": (lambda a, b: a >= b, True),
}

UNARY = {
    "neg": lambda a: -a,
    "not": lambda a: ~a,
}

SHIFTS = {
    "shl": lambda a, n: a << n,
    # A signed number stays signed.
    "shr": lambda a, n: a >> n,
}


def wrap(kind, number):
    """The value of a type that is equal to this number but for the bits that do not fit."""
    if kind == "bool":
        return (kind, int(number) & 1)
    bits, is_signed, _ = TYPES[kind]
    number &= (1 << bits) - 1
    return (kind, number - (1 << bits) if is_signed and number >> (bits - 1) else number)


def constants(program, given):
    """The values of its constants by name: what the dispatch says, else the default."""
    values = {}
    for const in program["consts"]:
        value = given.get(const["name"], const["default"])
        if value["kind"] == "bool":
            values[const["name"]] = ("bool", int(value["value"] == "true"))
        elif value["kind"] in TYPES:
            values[const["name"]] = wrap(value["kind"], int(value["value"]))
        elif value["kind"] == "dtype":
            values[const["name"]] = ("dtype", value["value"])
        else:
            raise Unsupported(f"a constant of type {value['kind']}")
    return values


def element(buffer, values):
    kind = buffer["element"]
    return kind["type"] if "type" in kind else values[kind["const"]][1]


def check(program, values):
    """Says what this worker lacks for a program, before anything runs."""
    for buffer in program["buffers"]:
        kind = element(buffer, values)
        if kind not in TYPES or buffer["access"] == "workgroup":
            raise Unsupported(f"a {buffer['access']} buffer of {kind}")
    for node in program["nodes"]:
        kind = node["kind"]
        if kind in ("atomic", "subgroup", "barrier", "vector", "extract"):
            raise Unsupported(kind)
        if kind == "unary" and node["op"] not in UNARY:
            raise Unsupported(node["op"])
        if kind == "binary" and node["op"] not in BINARY and node["op"] not in SHIFTS:
            raise Unsupported(node["op"])
        if kind == "ternary" and node["op"] != "select":
            raise Unsupported(node["op"])
        if kind == "lit" and node["type"] not in TYPES and node["type"] != "bool":
            raise Unsupported(node["type"])
        if kind in ("cast", "bitcast") and node["to"] not in TYPES and node["to"] != "bool":
            raise Unsupported(f"{kind} to {node['to']}")
        if kind == "builtin" and node["name"].startswith("subgroup."):
            raise Unsupported(node["name"])


class Invocation:
    def __init__(self, program, buffers, kinds, ids, values, fuel):
        self.nodes = program["nodes"]
        self.buffers = buffers
        self.kinds = kinds
        self.ids = ids
        self.variables = dict(values)
        self.fuel = fuel

    def value(self, number):
        node = self.nodes[number]
        kind = node["kind"]
        if kind == "lit":
            return wrap(node["type"], node["bits"])
        if kind == "var":
            return self.variables[node["name"]]
        if kind == "builtin":
            base, axis = node["name"].split(".")
            return ("u32", self.ids[base]["xyz".index(axis)])
        if kind == "len":
            return ("u32", len(self.buffers[node["buffer"]]))
        if kind == "load":
            words = self.buffers[node["buffer"]]
            _, index = self.value(node["index"])
            # Outside there is nothing but zeros.
            return wrap(self.kinds[node["buffer"]], words[index] if index < len(words) else 0)
        if kind == "unary":
            operand_kind, operand = self.value(node["args"][0])
            return wrap(operand_kind, UNARY[node["op"]](operand))
        if kind == "ternary":
            _, choice = self.value(node["args"][0])
            yes, no = self.value(node["args"][1]), self.value(node["args"][2])
            return yes if choice else no
        if kind == "cast":
            _, number = self.value(node["value"])
            return wrap(node["to"], number != 0 if node["to"] == "bool" else number)
        if kind == "bitcast":
            return wrap(node["to"], self.value(node["value"])[1])
        if kind == "binary":
            left_kind, left = self.value(node["args"][0])
            _, right = self.value(node["args"][1])
            if node["op"] in SHIFTS:
                return wrap(left_kind, SHIFTS[node["op"]](left, right % TYPES[left_kind][0]))
            run, is_truth = BINARY[node["op"]]
            return wrap("bool" if is_truth else left_kind, run(left, right))
        raise Unsupported(kind)

    def body(self, numbers):
        outside = set(self.variables)
        try:
            for number in numbers:
                self.step(number)
        finally:
            # What was declared inside is gone.
            self.variables = {name: value for name, value in self.variables.items() if name in outside}

    def step(self, number):
        self.fuel[0] -= 1
        if self.fuel[0] < 0:
            raise OutOfFuel()
        node = self.nodes[number]
        kind = node["kind"]
        if kind in ("let", "assign"):
            self.variables[node["name"]] = self.value(node["value"])
        elif kind == "store":
            words = self.buffers[node["buffer"]]
            _, index = self.value(node["index"])
            _, value = self.value(node["value"])
            if index < len(words):
                words[index] = value & ((1 << TYPES[self.kinds[node["buffer"]]][0]) - 1)
        elif kind == "if":
            self.body(node["then"] if self.value(node["cond"])[1] else node["else"])
        elif kind == "for":
            first, end = self.value(node["from"])[1], self.value(node["to"])[1]
            for i in range(first, end):
                self.fuel[0] -= 1
                if self.fuel[0] < 0:
                    raise OutOfFuel()
                outer = self.variables.get(node["var"])
                self.variables[node["var"]] = ("u32", i)
                try:
                    self.body(node["body"])
                except Continue:
                    pass
                except Break:
                    break
                finally:
                    self.variables.pop(node["var"], None)
                    if outer is not None:
                        self.variables[node["var"]] = outer
        elif kind in ("block", "region"):
            self.body(node["body"])
        elif kind == "trap":
            raise Trap(node["tag"])
        elif kind == "break":
            raise Break()
        elif kind == "continue":
            raise Continue()
        elif kind == "return":
            raise Return()
        else:
            raise Unsupported(kind)


def by_binding(program, modes):
    bound = [buffer for buffer in program["buffers"] if buffer["access"] in modes]
    return sorted(bound, key=lambda buffer: buffer["binding"])


def run(program, dispatch, inputs, output_sizes, fuel):
    """The bytes of the outputs."""
    if dispatch["buffers"] is not None:
        raise Unsupported("sequences")
    values = constants(program, dispatch["config"]["specialization"])
    check(program, values)
    buffers = {}
    kinds = {buffer["name"]: element(buffer, values) for buffer in program["buffers"]}
    width = lambda buffer: TYPES[kinds[buffer["name"]]][0] // 8
    layout = lambda buffer, count: f"<{count}{TYPES[kinds[buffer['name']]][2]}"
    for buffer, content in zip(by_binding(program, ("read", "read_write", "uniform")), inputs):
        count = len(content) // width(buffer)
        buffers[buffer["name"]] = list(struct.unpack(layout(buffer, count), content[: count * width(buffer)]))
    outputs = by_binding(program, ("read_write", "output"))
    for buffer, size in zip(outputs, output_sizes):
        if buffer["access"] == "output":
            buffers[buffer["name"]] = [0] * (size // width(buffer))
    trapped = None
    left = [fuel]
    group, grid = dispatch["workgroup"], dispatch["grid"]
    total = [size * count for size, count in zip(group, grid)]
    for z in range(total[2]):
        for y in range(total[1]):
            for x in range(total[0]):
                gid = (x, y, z)
                ids = {
                    "gid": gid,
                    "lid": [i % size for i, size in zip(gid, group)],
                    "wid": [i // size for i, size in zip(gid, group)],
                    "gid_count": total,
                    "lid_count": group,
                    "wid_count": grid,
                }
                try:
                    Invocation(program, buffers, kinds, ids, values, left).body(program["body"])
                except Return:
                    pass
                except Trap as trap:
                    # All others run to their end; the smallest invocation that trapped is told.
                    trapped = trapped or {"trap": {"tag": trap.args[0], "invocation": [x, y, z]}}
    if trapped:
        return {"failure": trapped}, []
    return {"outputs": []}, [struct.pack(layout(b, len(buffers[b["name"]])), *buffers[b["name"]]) for b in outputs]


def one(case, programs, memory):
    read = lambda region: bytes(memory[region["offset"] : region["offset"] + region["bytes"]])
    if len(case["run"]) != 1:
        return {"failure": {"unsupported": "sequences"}}
    dispatch = case["run"][0]
    sizes = [region["bytes"] for region in case["outputs"]]
    try:
        answer, found = run(programs[dispatch["program"]], dispatch, [read(r) for r in case["inputs"]], sizes, case["fuel"])
    except Unsupported as what:
        return {"failure": {"unsupported": str(what)}}
    except OutOfFuel:
        return {"failure": "out_of_fuel"}
    for region, content in zip(case["outputs"], found):
        if len(content) != region["bytes"]:
            return {"failure": {"unsupported": "a tail that is not a whole element"}}
        memory[region["offset"] : region["offset"] + region["bytes"]] = content
    return answer


def main():
    # What is printed must not be mistaken for an answer.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    source = sys.stdin.buffer

    def receive():
        head = source.read(4)
        if len(head) < 4:
            sys.exit(0)
        return json.loads(source.read(struct.unpack("<I", head)[0]))

    def send(message):
        content = json.dumps(message, separators=(",", ":")).encode()
        out.write(struct.pack("<I", len(content)) + content)
        out.flush()

    hello = receive()
    if hello["vyre_worker"] != 2 or "json" not in hello["encodings"]:
        sys.exit("this worker speaks protocol 2, in JSON")
    send({"vyre_worker": 2, "subject": "worker.py", "encoding": "json"})
    memory = None
    while True:
        batch = receive()
        if memory is None or len(memory) < batch["memory"]:
            memory = mmap.mmap(hello["memory_fd"], batch["memory"])
        answers = []
        for number, case in enumerate(batch["cases"]):
            status = lambda value: struct.pack_into("<Q", memory, batch["status"] + 8 * number, value)
            status(RUNNING)
            answer = one(case, batch["programs"], memory)
            status(FAILED if "failure" in answer else OUTPUTS)
            answers.append(answer)
        send({"answers": answers})


if __name__ == "__main__":
    main()
