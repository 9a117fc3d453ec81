"""The catalog is offered to a model: `app.model_agent(tools=tool_agent)`."""

from __future__ import annotations

from pathlib import Path

import httpx

from arp import App
from arp.tools.app.agent import ToolAgent
from tests.support.serving import serving
from tests.tools.house import house


def test_model_calls_the_active_tools_of_the_catalog(tmp_path: Path) -> None:
    """Pydantic AI's test model calls each tool that it is offered once."""
    service, _ = house(tmp_path)
    for name in ("count", "fail", "picture"):
        service.registry.remove(name)
    app = App("Model")
    app.model_agent("test", tools=ToolAgent(service=service))
    with serving(app, ledger="memory:") as server:
        answer = httpx.post(f"{server.http}/model", json={"message": "go"}, timeout=30).json()
    assert answer["status"] == "completed", answer
    assert sorted(tool["tool"] for tool in answer["tools"]) == ["add", "rows"]
    shown = [part["props"]["items"] for part in answer["components"] if part["type"] == "key-value"]
    assert shown == [[{"key": "sum", "value": 0}]]
    (table,) = [part["props"] for part in answer["components"] if part["type"] == "table"]
    assert table == {
        "title": "Rows",
        "headers": ["name", "count"],
        "rows": [["tea", 3], ["jam", 0]],
    }
    # The test model answers with what it has read.
    assert '{"rows":{"columns":["name","count"],"rows":[["tea",3],["jam",0]]}}' in str(
        [answer["text"], *answer["tools"]]
    ).replace("\\\\", "")
