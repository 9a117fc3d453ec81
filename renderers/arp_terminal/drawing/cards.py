"""Small components: status cards, key-values, progress, images, product cards."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.json_value import JsonObject
from arp_terminal.drawing.blocks import HangingBlock, cut, indented, rail, stack
from arp_terminal.drawing.code_block import draw_code
from arp_terminal.drawing.markdown import shown_address
from arp_terminal.drawing.palette import (
    ACCENT,
    BOLD,
    DIM,
    HEADING,
    LINK,
    PLAIN,
    TITLE,
    WARN,
    series,
    tone,
)
from arp_terminal.drawing.props import label, line, lines, objects, output, paragraph
from arp_terminal.options import Options

SIGNS = {
    "success": ("✓", "OK"),
    "error": ("✗", "ERROR"),
    "warning": ("▲", "WARNING"),
    "info": ("ℹ", "INFO"),
}
"""Sign of each state of a card, and the word that replaces it in ASCII."""

STEPS = {
    "done": ("✓", "[x]", "success"),
    "active": ("▸", "[>]", "info"),
    "pending": ("○", "[ ]", "muted"),
    "failed": ("✗", "[!]", "error"),
}
"""Sign of each state of a step, its form in ASCII, and its tone."""

MAX_KEY = 28
"""Maximum width of the column of keys, in cells."""


def status_card(props: JsonObject, options: Options) -> RenderableType:
    """Draw `status-card`: a rail in the colour of the state, its sign, title, message."""
    status = line(props.get("status"), "info")
    style = tone(status)
    sign, word = SIGNS.get(status, SIGNS["info"])
    head = label(f"{sign} " if options.unicode else f"{word}: ", style + BOLD)
    head.append(line(props.get("title")), style=TITLE)
    parts: list[RenderableType | None] = [head]
    if props.get("message"):
        parts.append(paragraph(props["message"]))
    for section in objects(props.get("sections")):
        parts.append(label(section.get("label"), DIM))
        content = lines(section.get("content"))
        if section.get("style") == "code":
            parts.append(indented(draw_code(content, "", options)))
        else:
            parts.append(indented(Text(content, style=tone(line(section.get("style"))))))
    return rail(stack(parts), "┃" if options.unicode else "|", style)


def author(props: JsonObject, options: Options) -> RenderableType:
    """Draw `x-arp-author`: the name of the agent that speaks from here on, in its own colour."""
    name = line(props.get("name"))
    style = series(sum(name.encode())) + BOLD
    return Text(f"● {name}" if options.unicode else f"{name}:", style=style)


def key_value(props: JsonObject, options: Options) -> RenderableType:
    """Draw `key-value`: keys in one column, values in the next; long values take several lines."""
    found = objects(props.get("items"))
    title = line(props.get("title"))
    keys = [line(item.get("key")) for item in found]
    width = min(MAX_KEY, max(map(cell_len, keys), default=0), max(4, options.width // 2))
    parts: list[RenderableType | None] = [label(title, HEADING) if title else None]
    for key, item in zip(keys, found, strict=True):
        marker = cut(label(key, DIM), width, options.unicode)
        marker.append(" " * (width - cell_len(marker.plain) + 2))
        value = (
            lines(item["value"])
            if isinstance(item.get("value"), str)
            else line(item.get("value"), "–")
        )
        parts.append(HangingBlock(marker, Text(value, style=tone(line(item.get("style"))))))
    return stack(parts)


def progress(props: JsonObject, options: Options) -> RenderableType:
    """Draw `progress`: a bar of the finished steps, then each step with its sign and detail."""
    steps = objects(props.get("steps"))
    done = sum(1 for step in steps if step.get("status") == "done")
    title = line(props.get("title"))
    head = label(title, HEADING)
    head.append("  " if title else "")
    head.append_text(_bar(done, len(steps), options))
    parts: list[RenderableType | None] = [head]
    for step in steps:
        status = line(step.get("status"))
        sign, ascii_sign, tone_name = STEPS.get(status, STEPS["pending"])
        style = tone(tone_name)
        text = label(
            step.get("name"), BOLD if status == "active" else DIM if status == "pending" else PLAIN
        )
        if step.get("detail"):
            text.append("  ")
            text.append(
                line(output(step["detail"])), style=tone("error") if status == "failed" else DIM
            )
        parts.append(HangingBlock(f"{sign if options.unicode else ascii_sign} ", text, style=style))
    return stack(parts)


def image(props: JsonObject, options: Options) -> RenderableType:
    """Draw `image`: its description, size, address and caption."""
    head = label("▣ " if options.unicode else "[image] ", ACCENT)
    head.append(line(props.get("alt")) or "image", style=TITLE)
    size = [line(props.get(side)) for side in ("width", "height") if props.get(side) is not None]
    if size:
        head.append(f"  {('×' if options.unicode else 'x').join(size)}", style=DIM)
    source = line(props.get("src"))
    address = Text(shown_address(source, options), style=LINK)
    caption = line(props.get("caption"))
    return stack(
        [
            head,
            indented(address) if source else None,
            indented(Text(caption, style=DIM)) if caption else None,
        ]
    )


def product_cards(props: JsonObject, options: Options) -> RenderableType:
    """Draw `product-cards`: one card below the other, with name and price first."""
    title = line(props.get("title"))
    sign = "▌" if options.unicode else "|"
    cards = [rail(_product(card, options), sign, ACCENT) for card in objects(props.get("cards"))]
    return stack([label(title, HEADING) if title else None, stack(cards, gap=1)])


def _product(card: JsonObject, options: Options) -> RenderableType:
    head = label(card.get("name"), TITLE)
    if card.get("price") is not None:
        head.append("  ")
        head.append(line(card["price"]), style=tone("success"))
    if card.get("badge"):
        head.append(f"  [{line(card['badge'])}]", style=WARN)
    parts: list[RenderableType | None] = [head]
    if card.get("brand"):
        parts.append(label(card["brand"], DIM))
    if card.get("description"):
        parts.append(paragraph(card["description"]))
    for name in ("url", "image"):
        if card.get(name):
            address = label(f"{name}: " if name == "image" else "", DIM)
            parts.append(address.append(shown_address(line(card[name]), options), style=LINK))
    return stack(parts)


def _bar(done: int, steps: int, options: Options) -> Text:
    """Return a bar of at most 20 cells, and the count."""
    cells = min(20, max(4, options.width // 4))
    full = cells * done // steps if steps else 0
    sign, rest = ("━", "╌") if options.unicode else ("#", ".")
    text = label(sign * full, tone("success"))
    text.append(rest * (cells - full), style=DIM)
    return text.append(f" {done}/{steps}")
