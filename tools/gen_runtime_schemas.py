"""Write the JSON Schemas of facts and snapshots, and return whether any is out of date.

    python -m tools.gen_runtime_schemas            writes them
    python -m tools.gen_runtime_schemas --check    fails if that would change a byte

The schemas of facts come from the tables of `arp.ledger`; those of snapshots from the list of their
required fields.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools import event_schema, snapshot_schema
from tools.generated_files import write_or_check

ROOT = Path(__file__).resolve().parent.parent

FOLDER = "arp/ledger/schemas"


def main(arguments: list[str]) -> int:
    """Write or check every file; return the exit code."""
    return write_or_check(ROOT, files(), "schemas", arguments)


def files() -> dict[str, str]:
    """Return every schema by its path from the root."""
    schemas = {
        "agentruntime-event": event_schema.public(),
        "agentruntime-snapshot": snapshot_schema.public(),
        "agentruntime-lime-profile-event": event_schema.profile(),
        "agentruntime-lime-profile-snapshot": snapshot_schema.profile(),
        "arp-facts": event_schema.strict(),
        "arp-snapshot": snapshot_schema.strict(),
    }
    return {
        f"{FOLDER}/{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
