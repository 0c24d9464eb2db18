// Does the steps of a request with the TypeScript SDK and prints, as JSON, what came of each.
// The request is the one argument: {modules, command | url, headers, cwd, env, steps}.
import { createRequire } from "node:module";

const request = JSON.parse(process.argv[2]);
const require = createRequire(request.modules + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const {
  StreamableHTTPClientTransport,
} = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

function transport() {
  if (request.url) {
    const options = { requestInit: { headers: request.headers } };
    return new StreamableHTTPClientTransport(new URL(request.url), options);
  }
  const [command, ...args] = request.command;
  return new StdioClientTransport({ command, args, cwd: request.cwd, env: request.env });
}

// What a person does in a browser: looks at the page, types the value, sends the form.
async function fillIn(url, value) {
  const page = await (await fetch(url)).text();
  const csrf = page.match(/name="csrf" value="([^"]*)"/)[1];
  const body = new URLSearchParams({ csrf, value, lines: "", lifetime: "session", answer: "give" });
  const headers = { Origin: new URL(url).origin };
  return (await fetch(url, { method: "POST", body, headers })).status;
}

const client = new Client(
  { name: "karyi-test", version: "1" },
  { capabilities: { elicitation: { form: {}, url: {} } } },
);
let asked = null;
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  asked = { mode: params.mode, host: new URL(params.url).hostname };
  asked.status = await fillIn(params.url, request.value);
  return { action: "accept" };
});

async function call(step) {
  const told = [];
  const abort = new AbortController();
  const options = { timeout: 60000, signal: abort.signal };
  if (step.progress || step.cancel) {
    options.onprogress = (news) => {
      told.push(news.progress);
      if (step.cancel) abort.abort();
    };
  }
  asked = null;
  const wish = { name: step.call, arguments: step.arguments };
  const result = await client.callTool(wish, undefined, options);
  const isText = result.content.length === 1 && result.content[0].type === "text";
  const grows = told.every((value, at) => at === 0 || value > told[at - 1]);
  return {
    error: result.isError === true,
    structured: result.structuredContent ?? null,
    text: isText ? result.content[0].text : null,
    progress: told.length > 0 && grows,
    asked,
  };
}

async function list() {
  const { tools } = await client.listTools();
  return tools.map((tool) => ({
    name: tool.name,
    parts: Object.keys(tool).sort(),
    hints: tool.annotations,
  }));
}

await client.connect(transport());
const outcomes = [];
for (const step of request.steps) {
  try {
    outcomes.push(step.call ? await call(step) : await list());
  } catch (error) {
    outcomes.push(step.cancel ? { cancelled: true } : { code: error.code, message: error.message });
  }
}
const server = { name: client.getServerVersion().name, outcomes };
await client.close();
console.log(JSON.stringify(server));
