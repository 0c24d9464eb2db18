# The examples of the guide, as they are written there.

curl -X POST http://localhost:8000/api/tools/list \
  -H "Content-Type: application/json" \
  -H "X-Tenant-ID: yantian" \
  -H "X-Site-ID: yantian-main" \
  -H "X-Trace-ID: trace-$(date +%s)" \
  -d '{"ai_callable_only": true}'

curl -X POST http://localhost:8000/api/tools/call \
  -H "Content-Type: application/json" \
  -H "X-Tenant-ID: yantian" \
  -H "X-Site-ID: yantian-main" \
  -H "X-Trace-ID: trace-$(date +%s)" \
  -d '{
    "tool_name": "search_content",
    "input": {
      "query": "严氏家训",
      "limit": 5
    },
    "context": {
      "tenant_id": "yantian",
      "site_id": "yantian-main",
      "trace_id": "trace-001"
    }
  }'

curl -X POST http://localhost:8000/api/tools/call \
  -H "Content-Type: application/json" \
  -H "X-Tenant-ID: yantian" \
  -H "X-Site-ID: yantian-main" \
  -H "X-Trace-ID: trace-$(date +%s)" \
  -d '{
    "tool_name": "get_npc_profile",
    "input": {
      "npc_id": "ancestor_yan"
    },
    "context": {
      "tenant_id": "yantian",
      "site_id": "yantian-main",
      "trace_id": "trace-002"
    }
  }'

curl -X POST http://localhost:8000/api/tools/call \
  -H "Content-Type: application/json" \
  -H "X-Tenant-ID: yantian" \
  -H "X-Site-ID: yantian-main" \
  -H "X-Trace-ID: trace-$(date +%s)" \
  -d '{
    "tool_name": "create_draft_content",
    "input": {
      "content_type": "knowledge",
      "title": "严田村古井传说",
      "body": "村中心的古井相传有千年历史...",
      "tags": ["传说", "古井"]
    },
    "context": {
      "tenant_id": "yantian",
      "site_id": "yantian-main",
      "trace_id": "trace-003"
    }
  }'

curl -X POST http://localhost:8000/api/tools/call \
  -H "Content-Type: application/json" \
  -H "X-Tenant-ID: yantian" \
  -H "X-Site-ID: yantian-main" \
  -H "X-Trace-ID: trace-$(date +%s)" \
  -d '{
    "tool_name": "get_prompt_active",
    "input": {
      "npc_id": "ancestor_yan",
      "prompt_type": "system"
    },
    "context": {
      "tenant_id": "yantian",
      "site_id": "yantian-main",
      "trace_id": "trace-004"
    }
  }'
