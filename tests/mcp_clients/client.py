"""Does the steps of a request with the Python SDK and prints, as JSON, what came of each.

The request is the one argument: {command | url, headers, cwd, env, mode, steps}.
"""

import json
import re
import sys
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

request = json.loads(sys.argv[1])
asked = None


def place():
    if "url" in request:
        headers = httpx2.AsyncClient(headers=request.get("headers"), timeout=60)
        return streamable_http_client(request["url"], http_client=headers)
    command, *args = request["command"]
    return StdioServerParameters(
        command=command, args=args, cwd=request["cwd"], env=request["env"]
    )


async def elicit(context, params):
    """Does what a person does in a browser: types the value into the page and sends it."""
    global asked
    place = urlsplit(params.url)
    asked = {"mode": params.mode, "host": place.hostname}
    async with httpx2.AsyncClient() as browser:
        page = (await browser.get(params.url)).text
        csrf = re.search(r'name="csrf" value="([^"]*)"', page).group(1)
        form = {"csrf": csrf, "value": request["value"], "lines": ""}
        form |= {"lifetime": "session", "answer": "give"}
        origin = {"Origin": f"{place.scheme}://{place.netloc}"}
        sent = await browser.post(params.url, data=form, headers=origin)
    asked["status"] = sent.status_code
    return ElicitResult(action="accept")


async def call(client, step):
    global asked
    told, asked = [], None
    with anyio.CancelScope() as scope:

        async def progress(value, total, message):
            told.append(value)
            if step.get("cancel"):
                scope.cancel()

        wanted = step.get("progress") or step.get("cancel")
        result = await client.call_tool(
            step["call"],
            step.get("arguments"),
            progress_callback=progress if wanted else None,
        )
    if scope.cancelled_caught:
        return {"cancelled": True}
    is_text = len(result.content) == 1 and result.content[0].type == "text"
    return {
        "error": bool(result.is_error),
        "structured": result.structured_content,
        "text": result.content[0].text if is_text else None,
        "progress": bool(told) and told == sorted(set(told)),
        "asked": asked,
    }


async def tools(client, _):
    listed = await client.list_tools()
    return [
        {
            "name": tool.name,
            "parts": sorted(tool.model_dump(by_alias=True, exclude_none=True)),
            "hints": tool.annotations.model_dump(by_alias=True, exclude_none=True),
        }
        for tool in listed.tools
    ]


async def main():
    outcomes = []
    async with Client(
        place(), mode=request["mode"], elicitation_callback=elicit
    ) as client:
        for step in request["steps"]:
            try:
                outcomes.append(await (call if "call" in step else tools)(client, step))
            except MCPError as error:
                outcomes.append({"code": error.error.code, "message": error.error.message})
        name = client.server_info.name if client.server_info else None
        version = client.protocol_version
    print(json.dumps({"name": name, "version": version, "outcomes": outcomes}))


anyio.run(main)
