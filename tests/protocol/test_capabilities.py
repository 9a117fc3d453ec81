"""What the agent side says of itself is what it can do."""

from __future__ import annotations

import msgspec

from arp.protocol.capabilities import AGENT_FEATURES, LEVELS, agent_hello, hello_frame
from arp.protocol.catalog import CATALOG
from arp.protocol.codec import ENCODINGS, agent_decoder
from arp.protocol.limits import Limits


def test_hello_offers_components_versions_features_limits_and_encodings() -> None:
    """protocol.md 2.1."""
    offered = agent_hello(Limits(max_surfaces=3)).capabilities
    assert offered.components == list(CATALOG)
    assert offered.versions == dict.fromkeys(offered.components, 1)
    assert set(offered.features) == set(AGENT_FEATURES)
    assert offered.limits["max_surfaces"] == 3
    assert offered.limits["max_message_bytes"] == 1_048_576
    assert offered.encodings == ["json", "msgpack", "cbor"]


def test_hello_frame_is_the_hello_in_each_encoding() -> None:
    for encoding in ENCODINGS:
        frame = hello_frame(Limits(), encoding)
        assert agent_decoder(encoding).decode(frame) == [agent_hello(Limits())]
        assert hello_frame(Limits(), encoding) is frame


def test_who_takes_no_input_offers_none() -> None:
    offered = agent_hello(Limits(), takes_input=False).capabilities.features
    assert set(AGENT_FEATURES) - set(offered) == {"input"}


def test_levels_are_those_of_the_protocol() -> None:
    """protocol.md 7."""
    assert LEVELS["minimal"] == ("text",)
    assert set(LEVELS["basic"]) >= {"text", "table", "form", "confirm", "choices"}
    assert set(LEVELS["standard"]) == set(CATALOG)


def test_hello_can_be_written() -> None:
    plain = msgspec.to_builtins(agent_hello(Limits()))
    assert plain["type"] == "hello"
    assert plain["v"] == 1
