"""JSON Schemas of tools: checks of the schemas, and of values against them.

A schema is not trusted. Its references may point only into the schema itself, so that no check
opens a URL or a file. Patterns that could take forever are refused (`schema_patterns`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import (
    InvalidToolCall,
    InvalidToolMeta,
    ToolAgentError,
    ToolCallFailed,
    extra_missing,
)
from arp.tools.registry.models import ToolMeta
from arp.tools.registry.schema_patterns import check_patterns, try_pattern

MAX_SCHEMA_BYTES: Final = 256 * 2**10
"""Maximum size of a schema in bytes; the schema of a form with a thousand fields is smaller."""
MAX_MESSAGE: Final = 300
"""Maximum length of the validator's message about a value, in characters."""


def check_schemas(tool: ToolMeta) -> None:
    """Check that the schemas of a tool can be used.

    Raises:
        InvalidToolMeta: One is not a JSON Schema; the message names it and the path in it.
    """
    check_schema(tool.input_schema, "input_schema")
    check_schema(tool.output_schema, "output_schema")


def check_schema(schema: JsonObject, name: str) -> None:
    """Check that a schema can be used.

    Raises:
        InvalidToolMeta: It is not a JSON Schema; the message has the name and the path in it.
    """
    text = msgspec.json.encode(schema, order="sorted")
    if len(text) > MAX_SCHEMA_BYTES:
        raise InvalidToolMeta(f"{name} has more than {MAX_SCHEMA_BYTES} bytes")
    _checker(text, name)


def check_params(tool: ToolMeta, params: Json) -> JsonObject:
    """Return parameters if they fit a tool's `input_schema`.

    Raises:
        InvalidToolCall: They do not fit; the message names the path.
    """
    if not isinstance(params, dict):
        raise InvalidToolCall("params is no JSON object")
    problem = problem_of(tool.input_schema, params, "params")
    if problem:
        raise InvalidToolCall(f"tool {tool.tool_id} does not take this: {problem}")
    return params


def check_result(tool: ToolMeta, result: Json) -> None:
    """Check that a result fits a tool's `output_schema`.

    Raises:
        ToolCallFailed: It does not; the message names the path.
    """
    problem = problem_of(tool.output_schema, result, "result")
    if problem:
        raise ToolCallFailed(f"the result of tool {tool.tool_id} is not as declared: {problem}")


def problem_of(schema: JsonObject, value: Json, root: str) -> str | None:
    """Return the error of a value, with its path from `root`; `None` if the value fits."""
    if not schema:
        return None
    checker = _checker(msgspec.json.encode(schema, order="sorted"), "schema")
    from jsonschema.exceptions import best_match

    try:
        error = best_match(checker.iter_errors(value))
    except ToolAgentError:
        raise
    except RecursionError:
        return f"{root}: it is nested too deep"
    except Exception as failed:  # noqa: BLE001 # for example an unresolvable reference
        return f"{root}: the schema cannot be used ({type(failed).__name__}: {failed!s:.120})"
    if error is None:
        return None
    return f"{root}{error.json_path[1:]}: {error.message[:MAX_MESSAGE]}"


@lru_cache(maxsize=512)
def _checker(schema: bytes, name: str) -> Any:
    """Return the validator of a schema.

    Raises:
        InvalidToolMeta: It is not a JSON Schema.
    """
    try:
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import extend, validator_for
        from referencing import Registry
    except ImportError as error:
        raise extra_missing("jsonschema") from error
    value = msgspec.json.decode(schema)
    kind = validator_for(value, default=Draft202012Validator)
    try:
        kind.check_schema(value)
    except SchemaError as wrong:
        where = f"{name}{wrong.json_path[1:]}"
        raise InvalidToolMeta(f"{where}: {wrong.message[:MAX_MESSAGE]}") from wrong
    except RecursionError as wrong:
        raise InvalidToolMeta(f"{name} is nested too deep") from wrong
    check_patterns(value, name)
    bounded: Any = extend(kind, {"pattern": try_pattern})  # type: ignore[no-untyped-call] # it has no types
    return bounded(value, registry=Registry())
