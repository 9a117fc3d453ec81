"""What passes on a channel."""

from __future__ import annotations

from tests.record.rig import Notes


def test_messages_and_forwarded_permissions_carry_the_channels_id() -> None:
    notes = Notes()
    channel = notes.record.channel("chat-room")
    channel.message("in", "hello")
    channel.permission_forwarded("r", "shell", "operator")
    channel.permission_returned("r", "shell", "allow")
    ids = {"channel_id": "chat-room"}
    assert notes.told() == [
        ("channel.message", {"direction": "in", "text": "hello"}, ids),
        (
            "channel.permission_forwarded",
            {"tool": "shell", "to": "operator"},
            {**ids, "request_id": "r"},
        ),
        (
            "channel.permission_returned",
            {"tool": "shell", "decision": "allow"},
            {**ids, "request_id": "r"},
        ),
    ]
