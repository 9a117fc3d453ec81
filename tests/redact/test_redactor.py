"""What is taken for a secret, what is not, and that looking costs what the text is long."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.redact.redactor import HELD_FROM, MARK, Redactor, known_shapes
from arp.redact.settings import Pattern, Redaction
from arp.redact.shapes import SHAPES, SIGNS

PLAIN = known_shapes()

KEY = "MIIEpAIBAAKCAQEA1234567890abcdef\nq0w9e8r7t6z5==\n"

BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"

SECRETS = [
    ("use sk-abcDEF1234567890abcdefgh now", "use sk-[redacted] now", "api-key"),
    ("sk-proj-abcDEF1234567890_-cdefgh", "sk-proj-[redacted]", "api-key"),
    ("sk-ant-api03-abcDEF1234567890abcdefgh", "sk-ant-api03-[redacted]", "api-key"),
    ("sk_live_abcDEF1234567890abcdefgh", "sk_live_[redacted]", "api-key"),
    ("hf_abcDEF1234567890abcdefgh", "hf_[redacted]", "api-key"),
    ("glpat-abcDEF1234567890abcd", "glpat-[redacted]", "api-key"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789.", "ghp_[redacted].", "github-token"),
    (
        "arp_0123456789ab_abcDEF1234567890_-abcDEF1234567890_-abcdefg",
        "arp_0123456789ab_[redacted]",
        "arp-token",
    ),
    ("github_pat_11ABCDEFG0abcdefghijkl_x", "github_pat_[redacted]", "github-token"),
    ("xoxb-123456789012-abcdef", "xoxb-[redacted]", "slack-token"),
    (
        "https://hooks.slack.com/services/T00/B00/abcdefghijklmnop",
        "https://hooks.slack.com/services/[redacted]",
        "slack-webhook",
    ),
    ("(AKIAIOSFODNN7EXAMPLE)", "(AKIA[redacted])", "aws-key-id"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIz[redacted]", "google-key"),
    ("ya29.a0AfH6SMBx1234567890abcdef", "ya29[redacted]", "google-token"),
    ("eyJhbGciOiJI.eyJzdWIiOiIxMjM0NTY3.dozjgNryP4J3", "eyJ[redacted]", "json-web-token"),
    ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]", "authorization"),
    ("authorization: token abcdef123", "authorization: token [redacted]", "authorization"),
    (
        "-H 'Authorization: Basic QWxhZGRpbjpv'",
        "-H 'Authorization: Basic [redacted]'",
        "authorization",
    ),
    ("sent Bearer abcdefgh12345678", "sent Bearer [redacted]", "authorization"),
    ("Cookie: sid=abc123; theme=dark\nnext", "Cookie: [redacted]\nnext", "cookie"),
    ("https://ann:s3cr3t@db.example/x", "https://ann:[redacted]@db.example/x", "url-credentials"),
    ("https://abcdefgh12345678@host/", "https://[redacted]@host/", "url-credentials"),
    ("f?a=1&X-Amz-Signature=abcdef123456", "f?a=1&X-Amz-Signature=[redacted]", "url-signature"),
    ("u?access_token=abc123def&x=1", "u?access_token=[redacted]&x=1", "assignment"),
    ("password=hunter2", "password=[redacted]", "assignment"),
    ("DB_PASSWORD=correcthorse", "DB_PASSWORD=[redacted]", "assignment"),
    ("password: hunter2!", "password: [redacted]", "assignment"),
    ('the "api_key": "letmein" of it', 'the "api_key": "[redacted]" of it', "assignment"),
    ("aws_secret_access_key = wJalr/K7MD", "aws_secret_access_key = [redacted]", "assignment"),
    (
        f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}-----END RSA PRIVATE KEY-----\nnext",
        "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\nnext",
        "private-key",
    ),
    (
        f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0\n\n{KEY}{END}",
        "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----",
        "private-key",
    ),
]


@pytest.mark.parametrize(("text", "cleaned", "rule"), SECRETS)
def test_a_secret_is_taken_out_and_what_leads_to_it_stays(
    text: str, cleaned: str, rule: str
) -> None:
    assert PLAIN.text(text) == (cleaned, {rule: 1})
    assert PLAIN.text(cleaned) == (cleaned, {}), "the mark is found again"


ORDINARY = [
    "risk-assessment-2024-of-the-long-word-kind, task-1234567890abcdefghijkl",
    "sk-learn, sk-container-id-1, ghp_short, AKIA, eyJ",
    "Bearer tokens and Basic understanding, Basic internationalization",
    "The password: must have 8 characters. The secret: bring two kilos.",
    "token = await get_token(); password=new_password; api_key=settings.api_key2",
    "max_tokens=4096, total tokens: 128000, token: 404",
    "http://127.0.0.1:8080/x https://example.com/a@b mailto:ann@example.com",
    "git@github.com:ann/sales.git and https://example.com:8443?x=1",
    "password=$PASSWORD token=<your token> secret=**** key: ${KEY}",
    "a file that begins with -----BEGIN PRIVATE KEY----- is a key. Keep it -- well.",
    "session Zt4kQ0y8VbA1x9Wc3LmN7p turn t12 epoch 9f86d081884c7d65",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "the cookie: chocolate, with nuts and more",
    "def connect(password=None, token: str | None = None): ...",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert PLAIN.text(text) == (text, {})


def test_all_secrets_of_a_text_are_found() -> None:
    text = (
        "https://ghp_abcdefghijklmnopqrstuvwxyz012345:x-oauth@github.com and AKIAIOSFODNN7EXAMPLE"
    )
    cleaned = "https://ghp_[redacted]:[redacted]@github.com and AKIA[redacted]"
    assert PLAIN.text(text) == (
        cleaned,
        {"github-token": 1, "url-credentials": 1, "aws-key-id": 1},
    )


def test_fields_are_known_by_their_names() -> None:
    value = {
        "user": "ann",
        "password": "x",
        "headers": {"Authorization": ["letter by letter"], "accept": "text/html"},
        "n": [{"client_secret": "y", "credentials": "include"}],
        "token": 5,
        "next_page_token": "abc",
    }
    assert PLAIN.clean(value) == (
        {
            "user": "ann",
            "password": MARK,
            "headers": {"Authorization": [MARK], "accept": "text/html"},
            "n": [{"client_secret": MARK, "credentials": "include"}],
            "token": 5,
            "next_page_token": "abc",
        },
        {"secret-field": 3},
    )


def test_what_holds_no_secret_comes_back_itself() -> None:
    value = {"rows": [[1, "a"], [2, "b"]], "password": "••••••", "secret": MARK}
    cleaned, found = PLAIN.clean(value)
    assert cleaned is value
    assert found == {}


def test_a_text_that_is_json_is_cleaned_as_json() -> None:
    text = '{"to": "x", "auth": {"password": "p"}, "in": "{\\"secret\\":\\"s\\"}"}'
    cleaned, found = PLAIN.clean(text)
    assert msgspec.json.decode(cleaned) == {
        "to": "x",
        "auth": {"password": MARK},
        "in": '{"secret":"[redacted]"}',
    }
    assert found == {"secret-field": 2}
    assert PLAIN.clean('{"a": 1}') == ('{"a": 1}', {})
    assert PLAIN.clean('{"password": "hunter2"')[0] == '{"password": "[redacted]"'


def test_nested_beyond_reason_is_read_as_text() -> None:
    deep = "[" * 5_000 + '"ghp_abcdefghijklmnopqrstuvwxyz012345"' + "]" * 5_000
    cleaned, found = PLAIN.clean(deep)
    assert cleaned == deep.replace("abcdefghijklmnopqrstuvwxyz012345", MARK)
    assert found == {"github-token": 1}


def test_encoded_json_is_read() -> None:
    raw = msgspec.Raw(b'{"password":"hunter2","n":1}')
    assert PLAIN.clean({"x": raw}) == (
        {"x": {"password": MARK, "n": 1}},
        {"secret-field": 1},
    )
    harmless = {"x": msgspec.Raw(b'{"n":1}')}
    assert PLAIN.clean(harmless)[0] is harmless


def test_what_is_shown_keeps_a_column_that_is_called_token() -> None:
    value = {"rows": [{"token": "hello", "password": "p"}]}
    assert PLAIN.clean(value, shown=True)[0] == {"rows": [{"token": "hello", "password": MARK}]}


def test_known_secrets_are_found_wherever_they_stand() -> None:
    redactor = Redactor(Redaction(secrets=('quo"ted\nsecret', "correct horse battery", "short")))
    assert redactor.text('x correct horse battery, quo"ted\nsecret, short') == (
        "x [redacted], [redacted], short",
        {"known-secret": 2},
    )
    assert redactor.text('{"a":"quo\\"ted\\nsecret"}')[0] == '{"a":"[redacted]"}'


def test_an_operator_adds_shapes_and_names() -> None:
    settings = Redaction(
        fields=("Kontonummer",), patterns=(Pattern("acme", "acme:", "0-9a-f]", 6),)
    )
    redactor = Redactor(settings)
    assert redactor.text("acme:12ab]9z acme:12") == ("acme:[redacted]z acme:12", {"acme": 1})
    assert redactor.clean({"kontonummer": "12"}) == ({"kontonummer": MARK}, {"secret-field": 1})


def test_switched_off_nothing_is_taken_out() -> None:
    off = Redactor(Redaction(enabled=False, secrets=("correct horse battery",)))
    assert not off.is_on
    for text, _, _ in SECRETS:
        assert off.text(text) == (text, {})
        assert not off.has_sign(text)
    assert off.clean({"password": "x"}) == ({"password": "x"}, {})
    assert off.text("correct horse battery")[1] == {}


def test_every_secret_has_a_sign_in_its_lead() -> None:
    """So that most texts need one look."""
    for text, cleaned, _ in SECRETS:
        assert PLAIN.has_sign(cleaned.partition(MARK)[0]), text
    assert not PLAIN.has_sign("token ")


@pytest.mark.parametrize("lead", ["Bearer", "BEARER", "Basic", "SG"])
def test_the_beginning_of_a_lead_without_a_sign_is_unfinished_at_every_length(lead: str) -> None:
    """Only the last characters of a text are searched for it, so none may be too few."""
    least = 2 if lead == "SG" else 1
    for count in range(least, len(lead) + 1):
        assert PLAIN.unfinished("word " * 40 + lead[:count])
        assert PLAIN.unfinished(lead[:count])
    assert not PLAIN.unfinished(f"{lead} word")


def test_the_first_characters_of_each_known_secret_are_unfinished() -> None:
    redactor = Redactor(Redaction(secrets=("correct horse battery", "staple-of-8")))
    for secret in redactor.known:
        for count in range(1, HELD_FROM):
            assert redactor.unfinished("word " * 40 + secret[:count])
    assert not redactor.unfinished("word")


@pytest.mark.parametrize(
    "piece",
    [
        *("sk-", "eyJ.", "-----BEGIN PRIVATE KEY-----", "://", "://a:", 'token="', "cookie: "),
        *("&key=", "ghp_", "Authorization: ", "Bearer ", "-", "://a:b", "password='x"),
    ],
)
def test_no_text_makes_looking_take_longer_than_it_is_long(piece: str) -> None:
    """Each place is looked at a bounded number of times: counted by the calls, not by a clock."""
    counts = []
    for size in (4_000, 16_000):
        redactor = Redactor(Redaction())
        looked = 0
        shapes = []
        for shape in redactor._shapes:

            def decide(*given: object, of=shape.decide) -> object:  # type: ignore[no-untyped-def]
                nonlocal looked
                looked += 1 + len(given[2])  # type: ignore[arg-type]
                return of(*given)

            shapes.append(msgspec.structs.replace(shape, decide=decide))
        redactor._shapes = shapes
        redactor.text((piece * size)[:size])
        counts.append(looked)
    assert counts[1] <= 5 * counts[0] + 10_000
    assert counts[1] <= 16_000 * 300


@pytest.mark.parametrize("number", range(len(SHAPES)))
@given(data=st.data())
def test_nothing_that_spares_a_closer_look_passes_a_lead_over(
    number: int, data: st.DataObject
) -> None:
    """Each lead that is written in a usual way is found by what it begins with, and has a sign."""
    shape = SHAPES[number]
    ascii_only = st.characters(codec="ascii")
    small = shape.lead.replace("(?i:", "(?:")
    lead = data.draw(st.from_regex(small, fullmatch=True, alphabet=ascii_only))
    if small != shape.lead:
        case = data.draw(st.sampled_from(["lower", "title", "upper"]))
        lead = str(getattr(lead, case)())
    found = PLAIN._begins.match(lead)
    assert found is not None
    assert number in PLAIN._by_begin[found.group()]
    assert set(lead) & set(SIGNS)


def test_what_was_looked_through_is_not_looked_through_again() -> None:
    """Long texts and the value itself, as long as somebody says so, and by identity alone."""
    redactor = Redactor(Redaction())
    secret = "sk-" + "aB3dE5fG7h" * 3
    long, nested = (
        "word " * 300 + secret,
        msgspec.json.encode({"password": "hunter22", "x": "y" * 2000}).decode(),
    )
    value = {"a": [long, {"b": nested}], "c": 1, "d": "short"}
    expected = redactor.clean(value)
    known = redactor.look_through(value)
    with redactor.knowing(known):
        assert redactor.clean(value) == expected
        assert redactor.clean({"answer": long}) == (
            {"answer": long.replace(secret, "sk-[redacted]")},
            {"api-key": 1},
        )
        assert redactor.clean({"answer": nested}, shown=True)[1] == {"secret-field": 1}
        assert redactor.clean({"a": "x" * 2000}) == ({"a": "x" * 2000}, {})
    assert redactor.clean(value) == expected
    assert Redactor(Redaction(enabled=False)).look_through(value) == []
