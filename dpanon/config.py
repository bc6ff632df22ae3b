"""YAML values -> a frozen dataclass beside its model -> ``--set a.b=c``.

Every key of the file is a field of the dataclass. An unknown, missing, repeated or mistyped key is a
``ConfigError`` that names the file, the key's path and the nearest known key.
"""

import argparse
import dataclasses
import difflib
import os
import re
import types
import typing
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

import yaml

from dpanon.errors import ConfigError

T = TypeVar("T")

# YAML 1.1 reads 1e-3 as text, because it has no dot; people write it all the same.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf")  # inf: as the options of recipes say it


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice: the second would win in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_config(cls: type[T], path: Path | str | None, overrides: Sequence[str] = ()) -> T:
    """Read ``path`` (None: the defaults alone), apply ``overrides`` and build ``cls``.

    Args:
        cls: a frozen dataclass; its fields may be dataclasses themselves.
        path: YAML file of values, or None.
        overrides: ``"a.b=c"``, as ``--set`` takes them; ``c`` is YAML.
    """
    where = str(path) if path is not None else cls.__name__
    values = {} if path is None else _read(Path(path))
    known_from: dict[str, str] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not all(key.split(".")):
            raise ConfigError(f"--set {override}: expected KEY=VALUE, with KEY like 'lr' or 'privacy.epsilon'")
        try:
            value = yaml.load(text, _Loader)  # a SafeLoader
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {override}: {text!r} is not YAML: {_first_line(error)}") from error
        _set(values, key.split("."), value, f"--set {override}")
        known_from[key] = f"--set {override}"
    return _build(cls, values, where, "", known_from)


def save_config(config: Any, path: Path | str) -> None:
    """Write the resolved config, so that ``load_config`` of the file gives an equal one."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(f".{path.name}.tmp{os.getpid()}")
    tmp.write_text(yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True), encoding="utf-8")
    tmp.rename(path)


def parse_set(parser: argparse.ArgumentParser) -> None:
    """Add ``--config FILE`` and ``--set a.b=c`` (may be repeated) to a command line."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file of values (default: the defaults)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a value, e.g. privacy.epsilon=1.0"
    )


def nearest(name: str, known: Sequence[str]) -> str:
    """``"; did you mean 'x'?"`` when something known is close, else the list of what is known."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(sorted(known))}" if known else ""


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # a SafeLoader
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {_first_line(error)}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected KEY: VALUE lines, found {_kind(values)}")
    return values


def _first_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    line = f"line {mark.line + 1}: " if mark is not None else ""
    return line + (getattr(error, "problem", None) or str(error).splitlines()[0])


def _set(values: dict[str, Any], keys: list[str], value: Any, where: str) -> None:
    for depth, key in enumerate(keys[:-1]):
        inner = values.setdefault(key, {})
        if inner is None:
            inner = values[key] = {}
        if not isinstance(inner, dict):
            raise ConfigError(f"{where}: {'.'.join(keys[: depth + 1])} is a value, not a section")
        values = inner
    values[keys[-1]] = value


def _build(cls: Any, values: Mapping[str, Any], where: str, at: str, sets: Mapping[str, str]) -> Any:
    """One dataclass from one mapping; ``at`` is the key path of the mapping, '' at the top."""
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    hints = typing.get_type_hints(cls)
    for key in values:
        if key not in fields:
            path = _join(at, str(key))
            place = sets.get(path, where) + (f": {at}" if at else "")
            raise ConfigError(f"{place}: unknown key {key!r}{nearest(str(key), list(fields))}")
    arguments = {}
    for name, field in fields.items():
        path = _join(at, name)
        if name in values:
            arguments[name] = _convert(hints[name], values[name], where, path, sets)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where}: {path}: missing; give it in the file or with --set {path}=VALUE")
    try:
        return cls(**arguments)
    except (ValueError, TypeError) as error:  # a __post_init__ that refuses the values
        raise ConfigError(f"{where}: {at + ': ' if at else ''}{error}") from error


def _convert(hint: Any, value: Any, where: str, path: str, sets: Mapping[str, str]) -> Any:
    """``value`` as the type ``hint``, or a ConfigError; never a silent cast that changes it."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise _mistyped(
                f"a section ({', '.join(f.name for f in dataclasses.fields(hint))})", value, where, path, sets
            )
        return _build(hint, value, where, path, sets)
    if origin in (Union, types.UnionType):
        return _convert_union(args, value, where, path, sets)
    if origin is Literal:
        if value in args and any(type(value) is type(arg) for arg in args):
            return value
        raise _mistyped(" or ".join(repr(arg) for arg in args), value, where, path, sets)
    if origin in (list, tuple, Sequence):
        return _convert_sequence(origin, args, value, where, path, sets)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise _mistyped("KEY: VALUE lines", value, where, path, sets)
        return {
            _convert(args[0], k, where, f"{path}.{k}", sets): _convert(args[1], v, where, f"{path}.{k}", sets)
            for k, v in value.items()
        }
    return _convert_scalar(hint, value, where, path, sets)


def _convert_scalar(hint: Any, value: Any, where: str, path: str, sets: Mapping[str, str]) -> Any:
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return float(value)
    if hint is str and isinstance(value, str):
        return value
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is type(None) and value is None:
        return None
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}
    raise _mistyped(names.get(hint, getattr(hint, "__name__", str(hint))), value, where, path, sets)


def _convert_union(args: tuple[Any, ...], value: Any, where: str, path: str, sets: Mapping[str, str]) -> Any:
    if value is None and type(None) in args:
        return None
    members = [arg for arg in args if arg is not type(None)]
    errors = []
    for member in members:
        try:
            return _convert(member, value, where, path, sets)
        except ConfigError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise _mistyped(" or ".join(getattr(m, "__name__", str(m)) for m in members), value, where, path, sets)


def _convert_sequence(
    origin: Any, args: tuple[Any, ...], value: Any, where: str, path: str, sets: Mapping[str, str]
) -> Any:
    if not isinstance(value, list | tuple):
        raise _mistyped("a list", value, where, path, sets)
    fixed = origin is tuple and args[-1] is not Ellipsis
    if fixed and len(args) != len(value):
        raise _mistyped(f"a list of {len(args)}", value, where, path, sets)
    hints = args if fixed else (args[0],) * len(value)
    items = [_convert(h, v, where, f"{path}[{i}]", sets) for i, (h, v) in enumerate(zip(hints, value, strict=True))]
    return items if origin is list else tuple(items)


def _mistyped(expected: str, value: Any, where: str, path: str, sets: Mapping[str, str]) -> ConfigError:
    return ConfigError(f"{sets.get(path, where)}: {path}: expected {expected}, found {_kind(value)}")


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r}"


def _join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _plain(value: Any) -> Any:
    """Dataclasses, tuples and paths as the YAML values they are read from."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
