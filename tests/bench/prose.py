"""42 kB of Markdown such as agents write: headings, lists, code, tables."""

from __future__ import annotations

from collections.abc import Iterator

_BLOCK = '''## Harbour report

The *evening tide* comes at **18:40**; see [the table](https://harbour.example/tides) for `berth 7`
and what lies there. Ships above eight metres wait outside, smaller ones come in with the pilot, and
nobody anchors in the fairway.

1. Clear the quay
2. Move the crane
3. Open the gate

```python
def clearance(depth, draught, tide):
    """Metres of water below the keel."""
    free = depth + tide - draught
    if free < 0:
        raise ValueError("aground")
    return free

for ship in ships:
    print(ship.name, clearance(9.5, ship.draught, 1.2))
    if ship.waits:
        queue.append(ship)
```

| Ship | Draught | Berth |
|---|---|---|
| Aurora | 7.1 | 4 |
| Brise | 5.4 | 7 |
| Corona | 8.8 | - |

'''

_TIMES = 58

PROSE = _BLOCK * _TIMES


def pieces(count: int) -> Iterator[str]:
    """Yield the text in `count` pieces of equal length."""
    for number in range(count):
        yield PROSE[number * len(PROSE) // count : (number + 1) * len(PROSE) // count]
