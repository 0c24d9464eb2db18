"""The stack of the guide that the server replaces: FastAPI, pydantic v2, one uvicorn worker, SQLite.

Serves `search_content` alone, with the checks, the search and the ledger row of that stack. Where there is a choice it
takes what is faster: uvloop and httptools, statements without an ORM, a handler without a thread, no log, and a ledger
that does not wait for the disk.

    peer.py SITE_DATABASE LEDGER_DATABASE       prints its port
"""

import hashlib
import json
import socket
import sqlite3
import sys
import time
from datetime import datetime, timezone
from typing import Annotated, Any, Optional

import uvicorn
from fastapi import FastAPI, Header
from pydantic import BaseModel, Field, ValidationError

SITE, LEDGER = sys.argv[1:3]


class SearchInput(BaseModel):
    query: str = Field(min_length=1, max_length=200)
    content_type: Optional[str] = None
    tags: Optional[list[str]] = None
    status: str = "published"
    limit: int = Field(default=10, ge=1, le=50)


class Item(BaseModel):
    id: str
    content_type: str
    title: str
    summary: Optional[str] = None
    body: str
    tags: list[str]
    domains: list[str]
    credibility_score: float
    verified: bool


class SearchOutput(BaseModel):
    items: list[Item]
    total: int
    query: str


class Context(BaseModel):
    tenant_id: Optional[str] = None
    site_id: Optional[str] = None
    trace_id: Optional[str] = None


class CallRequest(BaseModel):
    tool_name: str
    input: dict[str, Any]
    context: Optional[Context] = None


class Audit(BaseModel):
    trace_id: str
    tool_name: str
    status: str
    latency_ms: int
    request_payload_hash: str
    error_type: Optional[str] = None
    error_message: Optional[str] = None


class CallResponse(BaseModel):
    success: bool
    output: Optional[SearchOutput] = None
    error: Optional[str] = None
    error_type: Optional[str] = None
    audit: Audit


sites = sqlite3.connect(f"file:{SITE}?mode=ro", uri=True)
ledger = sqlite3.connect(LEDGER, isolation_level=None)
ledger.execute("PRAGMA journal_mode = WAL")
ledger.execute("PRAGMA synchronous = NORMAL")
ledger.execute(
    "CREATE TABLE trace_ledger (id INTEGER PRIMARY KEY, tenant_id TEXT, site_id TEXT, trace_id TEXT, user_id TEXT, "
    "request_type TEXT, request_input TEXT, tool_calls TEXT, latency_ms INTEGER, status TEXT, error TEXT, created_at TEXT)"
)
ledger.execute("CREATE INDEX trace_ledger_trace ON trace_ledger (trace_id)")
app = FastAPI()


def search(tenant: str, site: str, wish: SearchInput) -> SearchOutput:
    """The search of that stack: a part of title or body, the most credible first."""
    sql = (
        "SELECT content FROM contents JOIN sites ON sites.number = contents.site "
        "WHERE tenant_id = ? AND site_id = ? AND status = ? AND (title LIKE ? OR body LIKE ?)"
    )
    pattern = f"%{wish.query}%"
    parameters = [tenant, site, wish.status, pattern, pattern]
    if wish.content_type is not None:
        sql += " AND content_type = ?"
        parameters.append(wish.content_type)
    sql += " ORDER BY credibility DESC LIMIT ?"
    parameters.append(wish.limit)
    items = []
    for (text,) in sites.execute(sql, parameters):
        content = json.loads(text)
        content["body"] = content["body"][:500]
        items.append(Item(**content))
    return SearchOutput(items=items, total=len(items), query=wish.query)


def record(tenant: str, site: str, user: Optional[str], audit: Audit) -> None:
    """Inserts the row of a call."""
    call = {"name": audit.tool_name, "status": audit.status, "latency_ms": audit.latency_ms, "payload_hash": audit.request_payload_hash}
    ledger.execute(
        "INSERT INTO trace_ledger (tenant_id, site_id, trace_id, user_id, request_type, request_input, tool_calls, "
        "latency_ms, status, error, created_at) VALUES (?, ?, ?, ?, 'tool_call', ?, ?, ?, ?, ?, ?)",
        (
            tenant, site, audit.trace_id, user, json.dumps({"tool_name": audit.tool_name}), json.dumps([call]),
            audit.latency_ms, audit.status, audit.error_message, datetime.now(timezone.utc).isoformat(),
        ),
    )


@app.post("/api/tools/call")
async def call(
    request: CallRequest,
    x_tenant_id: Annotated[str, Header()],
    x_site_id: Annotated[str, Header()],
    x_trace_id: Annotated[str, Header()],
    x_user_id: Annotated[Optional[str], Header()] = None,
) -> CallResponse:
    since = time.perf_counter()
    text = json.dumps(request.input, sort_keys=True, ensure_ascii=False)
    payload_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
    output, error = None, None
    try:
        if request.tool_name != "search_content":
            raise ValueError(f"Unknown tool: {request.tool_name}")
        output = search(x_tenant_id, x_site_id, SearchInput(**request.input))
    except (ValueError, ValidationError) as found:
        error = found
    audit = Audit(
        trace_id=x_trace_id,
        tool_name=request.tool_name,
        status="success" if error is None else "error",
        latency_ms=int((time.perf_counter() - since) * 1000),
        request_payload_hash=payload_hash,
        error_type=None if error is None else type(error).__name__,
        error_message=None if error is None else str(error),
    )
    record(x_tenant_id, x_site_id, x_user_id, audit)
    return CallResponse(
        success=error is None,
        output=output,
        error=audit.error_message,
        error_type=audit.error_type,
        audit=audit,
    )


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
