"""Inputs that are almost right: URDFs, project files, results, worlds, truths and trajectories, damaged at random but by seed.

Used by ``fuzz.py`` with thousands, and by ``tests/test_fuzz.py`` with a few of them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import yaml

#: Values that programs trip over.
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 1e-320, 1e-9, -1e-9, 1e9, -1e9, 1e15, 1e100, 1e300, -1e300, 10**18, 10**400, float("inf")),
    *(float("-inf"), float("nan"), 0.1, 3.14159, 2**31, 2**63, 1e-300),
)
WORDS: tuple[Any, ...] = (
    *("", " ", "auto", "nan", "inf", "1e999", "0x10", "true", "j1", "nobody", "../../etc", "\u0000"),
    *("\ud83d\ude00", "a" * 5000, "1 2 3", "{}", "%s%n", "<a/>", "&amp;", "-", "é", "9" * 5000, "2024-01-01", "~"),
    *("[", "*x"),
)
SHAPES: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"a": 1}, [1, 2, 3], ["j1"], [[1, 0], [0, 1]], [[[1]]])

_DIRT = ("<", ">", '"', "&", "\u0000", "\u2028", "[" * 2000, "{", ":", "\t", "-", "9" * 400)
_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical", "")


def number_text(dice: random.Random) -> str:
    """A number as text, or what stands in its place."""
    return dice.choice([*(repr(value) for value in NUMBERS), "", "x", "1,5", "1e", "--1", "0x1p3", "1 2", "\u0661", "1_0"])


def mutate_data(data: Any, dice: random.Random) -> Any:
    """Changes one to three entries of nested data."""
    data = deepcopy(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        _mutate_one(data, dice)
    return data


def _mutate_one(data: Any, dice: random.Random) -> None:
    places: list[tuple[Any, Any]] = []

    def walk(node: Any, depth: int = 0) -> None:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if len(keys) > 30:
            keys = dice.sample(keys, 30)
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], (dict, list)) and depth < 12:
                walk(node[key], depth + 1)

    if not isinstance(data, (dict, list)) or not data:
        return
    walk(data)
    node, key = dice.choice(places)
    other, place = dice.choice(places)
    action = dice.randrange(9)
    if action == 0:
        del node[key]
    elif action == 1:
        node[key] = dice.choice(SHAPES)
    elif action == 2:
        node[key] = dice.choice(WORDS)
    elif action in (3, 4):
        node[key] = dice.choice(NUMBERS)
    elif action == 5 and isinstance(node[key], (int, float)) and not isinstance(node[key], bool):
        node[key] = node[key] * dice.choice((-1, 0, 1e3, 1e-3, 1e12, 0.5))
    elif action == 6:
        node[key] = deepcopy(other[place])
    elif action == 7 and isinstance(node, dict):
        node[str(dice.choice(WORDS)) if dice.random() < 0.5 else f"{key}x"] = node.pop(key)
    elif action == 8 and isinstance(node[key], list) and node[key]:
        items = node[key]
        dice.choice((lambda: items.append(deepcopy(items[0])), lambda: items.pop(), lambda: items.reverse()))()
    else:
        node[key] = [node[key]]


#: Ends of texts, comments and elements, and what starts something else, in languages that names are written into.
HOSTILE = (
    *('j"; x("y"); //', "a\nb", "a\rb", "a\u2028b", "a\x85b", "\x1b[2J", "back\\", "??/", "*/ x /*"),
    *("</script><b>", "<!--", "$(x)", "`x`", "$x^{$", "$$", "\\$x^{$", "{a} %s {{b}} @HEADER@", '"""'),
    *("{a: [b]} # c", "- a", "null", "1e5", "é手🤖", "\u202ea", " a ", "a,b", "#0b6bcb", "x" * 499, "y" * 501),
    *("z" * 20_000, "_a", ".", "..", "/", "a/b", "a.b", "q_1", "t", "", "\ud800", "\x00"),
)


def hostile_name(dice: random.Random) -> str:
    """A name of some kind, alone or within others."""
    name = dice.choice(HOSTILE)
    return name if dice.random() < 0.6 else f"j{name}{dice.choice(('', '1', dice.choice(HOSTILE)))}"


def as_reference(name: str) -> str:
    """A name as text of an XML attribute."""
    return "".join(letter if letter.isalnum() else f"&#{ord(letter)};" for letter in name)


def mutate_text(text: str, dice: random.Random) -> str:
    """Cuts, doubles, swaps or soils a piece of text."""
    if not text:
        return text
    at, length = dice.randrange(len(text)), dice.choice((1, 1, 3, 10, 100))
    action = dice.randrange(7)
    if action == 0:
        return text[:at]
    if action == 1:
        return text[:at] + text[at + length :]
    if action == 2:
        return text[:at] + text[at : at + length] * 2 + text[at + length :]
    if action == 3:
        return text[:at] + dice.choice(_DIRT) + text[at:]
    if action == 4:
        other = dice.randrange(len(text))
        return text[:at] + text[other : other + length] + text[at + length :]
    lines = text.split("\n")
    k = dice.randrange(len(lines))
    if action == 5:
        return "\n".join(lines[:k] + lines[k + 1 :])
    return "\n".join([*lines[:k], lines[dice.randrange(len(lines))], *lines[k:]])


def mutate_urdf(text: str, dice: random.Random) -> str:
    """Changes numbers, attributes and elements of a URDF."""
    for _ in range(dice.choice((1, 1, 2, 3))):
        action = dice.randrange(10)
        values = list(re.finditer(r'(\w+)="([^"]*)"', text))
        elements = list(re.finditer(r"<(\w+)[^<>]*/>", text))
        if action <= 3 and values:  # a number
            item = dice.choice(values)
            parts = item[2].split(" ")
            parts[dice.randrange(len(parts))] = number_text(dice)
            text = text[: item.start(2)] + " ".join(parts).replace('"', "") + text[item.end(2) :]
        elif action == 4 and values:  # an attribute less
            item = dice.choice(values)
            text = text[: item.start()] + text[item.end() :]
        elif action == 5 and elements:  # an element less or twice
            item = dice.choice(elements)
            text = text[: item.start()] + item[0] * dice.choice((0, 2, 2)) + text[item.end() :]
        elif action == 6 and values:  # a value of another attribute
            item, other = dice.choice(values), dice.choice(values)
            text = text[: item.start(2)] + other[2] + text[item.end(2) :]
        elif action == 7:  # another kind
            text = re.sub(r'type="\w+"', lambda m: f'type="{dice.choice(_KINDS)}"' if dice.random() < 0.5 else m[0], text)
        elif action == 8:  # a block less or twice
            blocks = list(re.finditer(r"<(link|joint|inertial|visual|collision)\b[^>]*>.*?</\1>", text, re.DOTALL))
            if blocks:
                item = dice.choice(blocks)
                text = text[: item.start()] + item[0] * dice.choice((0, 2)) + text[item.end() :]
        else:
            text = mutate_text(text, dice)
    return text


def mutate_table(text: str, dice: random.Random) -> str:
    """Changes cells, columns and rows of a CSV."""
    rows = [line.split(",") for line in text.strip().split("\n")]
    for _ in range(dice.choice((1, 1, 2, 4))):
        action, k = dice.randrange(8), dice.randrange(len(rows))
        row = rows[k]
        if action <= 2 and row:
            row[dice.randrange(len(row))] = number_text(dice)
        elif action == 3 and row:
            row.pop()
        elif action == 4:
            rows.insert(k, list(row))
        elif action == 5 and len(rows) > 2:
            del rows[k : k + dice.choice((1, 50, 10**6))]
        elif action == 6 and rows[0]:
            rows[0][dice.randrange(len(rows[0]))] = str(dice.choice(WORDS))[:50]
        elif action == 7:
            scale, column = dice.choice((0.0, 1e9, 1e300, -1.0)), dice.randrange(max(len(rows[0]), 1))
            for cells in rows[1:]:
                if column < len(cells):
                    try:
                        cells[column] = repr(scale * float(cells[column]))
                    except ValueError:
                        continue
        if not rows:
            break
    text = "\n".join(",".join(cells) for cells in rows) + "\n"
    return mutate_text(text, dice) if dice.random() < 0.1 else text


def as_yaml(data: Any, dice: random.Random) -> str:
    """YAML text of nested data; sometimes soiled."""
    try:
        text = yaml.safe_dump(data, allow_unicode=True)
    except (yaml.YAMLError, ValueError):
        text = repr(data)
    return mutate_text(text, dice) if dice.random() < 0.15 else text


def as_json(data: Any, dice: random.Random) -> str:
    """JSON text of nested data; sometimes soiled."""
    text = json.dumps(data)
    return mutate_text(text, dice) if dice.random() < 0.1 else text


def urdf() -> str:
    """A small robot with everything that a URDF can hold."""
    link = (
        '<link name="{0}">\n<inertial>\n<origin xyz="0.02 -0.01 0.1" rpy="0.2 0 0.1"/>\n<mass value="{1}"/>\n'
        '<inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.025" iyz="0" izz="0.015"/>\n</inertial>\n<visual>\n'
        '<origin xyz="0 0 0.1" rpy="0 0 0"/>\n<geometry>\n<box size="0.1 0.1 0.2"/>\n</geometry>\n</visual>\n<collision>\n'
        '<geometry>\n<cylinder radius="0.05" length="0.2"/>\n</geometry>\n</collision>\n</link>'
    )
    joint = (
        '<joint name="{0}" type="{1}">\n<parent link="{2}"/>\n<child link="{3}"/>\n<origin xyz="0 0.05 0.2" rpy="0.1 0 0.2"/>\n'
        '<axis xyz="{4}"/>\n<limit lower="-2" upper="2" velocity="3" effort="100"/>\n<dynamics damping="0.1" friction="0.2"/>\n'
        "</joint>"
    )
    return "\n".join(
        [
            '<?xml version="1.0"?>',
            '<robot name="arm">',
            '<link name="base"/>',
            link.format("l1", 4.0),
            joint.format("j1", "revolute", "base", "l1", "0 0 1"),
            link.format("l2", 2.0),
            joint.format("j2", "revolute", "l1", "l2", "0 1 0"),
            link.format("l3", 1.0),
            joint.format("j3", "prismatic", "l2", "l3", "1 0 0"),
            link.format("tool", 0.5),
            joint.format("flange", "fixed", "l3", "tool", "1 0 0"),
            '<transmission name="t1">\n<joint name="j1"/>\n<actuator name="m1"/>\n</transmission>',
            '<gazebo reference="l1">\n<mu1>0.2</mu1>\n</gazebo>',
            "</robot>",
        ]
    )


#: A project file that says a little of everything.
PROJECT: dict[str, Any] = {
    "robot": {"urdf": "robot.urdf", "joints": ["j1", "j2", "j3"], "gravity": [0, 0, -9.81]},
    "drive": {"reduction": [100.0, 50.0, 20.0], "gain": [1.0, 2.0, 3.0], "joint_offset": [0.0, 0.1, 0.0]},
    "log": {
        "rate": 200.0,
        "columns": {"time": "t", "position": ["q_j1", "q_j2", "q_j3"]},
        "units": {"position": "rad"},
        "side": {"position": "joint", "effort": "joint"},
    },
    "signals": {"cutoff": 8.0, "decimate": 20.0, "velocity": "auto", "periodic": "auto"},
    "validation": {"score_cutoff": 9.0},
    "model": {"friction": ["viscous", "coulomb"], "rotor_inertia": True},
    "estimation": {"method": "wls", "covariance": "auto"},
    "consistency": {"method": "lmi", "relative_std": 0.3, "total_mass": 7.5},
    "excitation": {"duration": 2.0, "harmonics": 2, "budget": 0.3},
    "simulation": {"rate": 100.0, "step": 5e-4, "controller": {"type": "pd", "bandwidth": 1.0}},
}
WORLD: dict[str, Any] = {
    "base": {"xyz": [0, 0, 0.8], "rpy": [0, 0, 0]},
    "clearance": 0.02,
    "objects": {
        "table": {"box": [1.6, 1.0, 0.04], "xyz": [0.4, 0, 0.76]},
        "floor": {"plane": [0, 0, 1], "offset": 0.0},
        "post": {"cylinder": [0.05, 1.2], "xyz": [0, 0.9, 0.6]},
        "ball": {"sphere": 0.1, "xyz": [1, 1, 1]},
    },
    "tool": {"frame": "tool", "box": [[-2, -2, -2], [2, 2, 3]]},
    "allow": [["base", "table"]],
}
TRUTH: dict[str, Any] = {
    "joints": ["j1", "j2", "j3"],
    "rotor_inertia": [0.1, 0.1, 0.5],
    "friction": {"viscous": [0.1, 0.1, 0.2], "coulomb": [2.0, 1.0, 3.0]},
}

MUTATORS: dict[str, Callable[[Any, random.Random], str]] = {
    "urdf": mutate_urdf,
    "project": lambda data, dice: as_yaml(mutate_data(data, dice), dice),
    "world": lambda data, dice: as_yaml(mutate_data(data, dice), dice),
    "truth": lambda data, dice: as_yaml(mutate_data(data, dice), dice),
    "result": lambda data, dice: as_json(mutate_data(data, dice), dice),
    "trajectory": mutate_table,
}
