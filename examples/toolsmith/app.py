"""Ask for a tool in the chat, allow its build, and use it: `arp serve examples/toolsmith/app.py`.

By default, a script builds the tool (`smith.py`). With TOOLSMITH_RUNTIME=claude-code, or another
runtime, that agent builds any tool that you ask for.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

from arp import App, Turn, ui
from arp.api import FileRef, LiveSettings, ToolAgent, ToolService, ToolSettings, existing_tool

sys.path.insert(0, str(Path(__file__).parent))
from smith import ScriptedSmith  # type: ignore[import-not-found]  # the file beside this one

runtime = os.environ.get("TOOLSMITH_RUNTIME")
settings = ToolSettings()
if "TOOL_AGENT_DATA_DIR" not in os.environ:
    settings = settings.model_copy(update={"data_dir": Path(".arp/toolsmith")})
if not runtime:  # a script costs nothing, so nothing is reserved for it
    settings = settings.model_copy(update={"coding_task_usd": 0.0})
tools = ToolAgent(runtime or ScriptedSmith(), service=ToolService(LiveSettings(settings)))

app = App(
    title="Toolsmith",
    description="Builds the tools that you ask for.",
    tools=tools,
    suggestions=["I need a tool that compresses images", "Which tools are there?"],
)


@app.agent
async def toolsmith(turn: Turn) -> None:
    """Find or build a tool, and use it on the pictures of the message."""
    pictures = [file for file in turn.files if file.mime.startswith("image/")]
    if "which tools" in turn.text.lower():
        list_tools(turn)
        return
    text = turn.text or "compress this image"
    found = existing_tool(text, tools.service.registry.tools())
    tool_id = found.tool_id if found is not None else (await tools.build(turn, text)).tool_id
    if pictures:
        for picture in pictures:
            await use(turn, tool_id, picture)
    elif found is not None:
        await turn.say(f"`{tool_id}` does that. Send a picture along, and I use it.")
    else:
        await turn.say("Send a picture along, and I use it.")


def list_tools(turn: Turn) -> None:
    """Show the catalog."""
    rows = [
        [tool.tool_id, tool.name, tool.category, str(tool.status)]
        for tool in tools.service.registry.tools()
    ]
    if rows:
        turn.show(ui.table(title="Tools", headers=["Id", "Name", "Category", "Status"], rows=rows))
    else:
        turn.show("There is no tool yet. Ask for one.")


async def use(turn: Turn, tool_id: str, picture: FileRef) -> None:
    """Call a tool with a picture, and show its result."""
    content = base64.b64encode(await turn.read_file(picture)).decode()
    await turn.use(tool_id, {"image": f"data:{picture.mime};base64,{content}"})
