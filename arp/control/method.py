"""Definition of methods: parameters as a Struct, and a function with a decorator.

The methods of one area are in one class, which holds a `ControlContext`. Their parameters are in
the same file:

    class StartTurn(Params): …

    class Turns:
        @method("agentSession/turn/start")
        async def start(self, request: StartTurn) -> TurnState: …

`arp.control.control` lists the classes. A new method needs no other change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Struct

from arp.protocol.errors import InvalidMessage
from arp.protocol.json_value import JsonObject
from arp.protocol.validate import explain

# -- parameter types that methods share --------------------------------------------------------

SessionId: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=256, description="1 to 256 characters")
]
Id: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=256, description="1 to 256 characters")
]
TurnId: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z",
        description="1 to 64 letters, digits, - and _, not - or _ first",
    ),
]
"""Id of a turn. Other ids are made from it, and it is stored in facts without escapes."""
ThreadId: TypeAlias = TurnId
"""Id of a thread; same rules as for the id of a turn."""
Sequence: TypeAlias = Annotated[int, Meta(ge=0, le=2**53, description="a whole number from 0")]
Traceparent: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[^\s]{0,200})?\Z",
        description="a traceparent of W3C Trace Context",
    ),
]
Kinds: TypeAlias = Annotated[tuple[Id, ...], Meta(max_length=150, description="at most 150 types")]
"""Types of facts (`tool.failed`) or families (`tool`); an empty list means all facts."""
Reason: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=2000, description="1 to 2000 characters")
]


class Params(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Parameters of a method, by name in camelCase; unknown names are refused."""

    @classmethod
    def check_names(cls, method: str, params: JsonObject) -> None:
        """Check the names in free-form parameters, before the parameters are parsed.

        Raises:
            InvalidMessage: A name is the old name of a field; the text has the new one.
        """


class SessionParams(Params, frozen=True, kw_only=True):
    """Parameters of a method about one session."""

    session_id: SessionId


P = TypeVar("P", bound=Params)
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])

_NAME = "rpc_name"


class Method(Struct, frozen=True):
    """A method that a client may call."""

    name: str
    params: type[Params]
    owner: type
    """Class that defines the method."""
    run: Callable[..., Awaitable[Any]]
    """Function of `owner`, called with an instance of it and the parameters.

    It returns a value that msgspec can encode as JSON, and raises `ArpError` to refuse a call.
    """


def method(name: str) -> Callable[[F], F]:
    """Mark a function of a class as the JSON-RPC method with that name.

    The annotation of the argument `request` is the type of the parameters.
    """

    def mark(function: F) -> F:
        setattr(function, _NAME, name)
        return function

    return mark


def methods_of(*owners: type) -> dict[str, Method]:
    """Return the marked functions of classes by method name, in the order of the source."""
    return {
        name: Method(name, get_type_hints(function)["request"], owner, function)
        for owner in owners
        for function in vars(owner).values()
        if (name := getattr(function, _NAME, None)) is not None
    }


def read_params(name: str, shape: type[P], params: JsonObject) -> P:
    """Return the parameters of a method as a Struct.

    Raises:
        InvalidMessage: A parameter is not valid; the text names the field as the caller wrote it.
    """
    shape.check_names(name, params)
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError:
        detail = explain(params, shape, "params")
        raise InvalidMessage(f"{name}: {detail}", detail=detail.partition(":")[0]) from None
