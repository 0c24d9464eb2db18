// Looks at a page as a person does: opens it in a real browser, types a value, presses a button.
// Arguments: the browser, the address of the page, the value, the words on the button.
// Prints, as JSON, what the page said before and after, and what the console of the page told.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [program, address, value, words] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), "karyi-browser-"));
const browser = spawn(program, [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
  "--remote-debugging-port=0", `--user-data-dir=${home}`, "about:blank",
], { stdio: ["ignore", "ignore", "pipe"] });

const door = await new Promise((found, failed) => {
  let told = "";
  browser.on("exit", () => failed(new Error(`the browser ended: ${told}`)));
  browser.stderr.on("data", (bytes) => {
    told += bytes;
    const line = told.match(/DevTools listening on (ws:\S+)/);
    if (line) found(line[1]);
  });
});

const socket = new WebSocket(door);
await new Promise((opened) => socket.addEventListener("open", opened));
const answers = new Map();
const events = [];
const waiting = [];
let last = 0;
socket.addEventListener("message", ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) return answers.get(message.id)(message);
  events.push(message);
  for (const look of waiting) look();
});
function ask(method, params = {}, sessionId) {
  last += 1;
  socket.send(JSON.stringify({ id: last, method, params, sessionId }));
  return new Promise((done, failed) => {
    answers.set(last, ({ result, error }) => error ? failed(new Error(error.message)) : done(result));
  });
}
function event(method) {
  return new Promise((done) => {
    const look = () => {
      const at = events.findIndex((event) => event.method === method);
      if (at < 0) return;
      waiting.splice(waiting.indexOf(look), 1);
      done(events.splice(at, 1)[0].params);
    };
    waiting.push(look);
    look();
  });
}

const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
const page = (method, params) => ask(method, params, sessionId);
const run = async (expression) => {
  const asked = { expression, returnByValue: true, awaitPromise: true };
  const { result } = await page("Runtime.evaluate", asked);
  return result.value;
};
await page("Page.enable");
await page("Network.enable");
await page("Log.enable");
const shows = async (action) => {
  const loaded = event("Page.loadEventFired");
  await action();
  await loaded;
  return run("document.body.innerText");
};

const before = await shows(() => page("Page.navigate", { url: address }));
// The field has the cursor by the time a person sees it: they type at once. A browser gives it when it
// draws the page, and a busy one draws late.
const field = await run(`new Promise((done) => {
  const until = performance.now() + 20000;
  const look = () => {
    const { name, type } = document.activeElement;
    if (name || performance.now() > until) done(name + " " + type);
    else requestAnimationFrame(look);
  };
  look();
})`);
await page("Input.insertText", { text: value });
const place = await run(`(() => {
  const button = [...document.querySelectorAll("button")].find((one) => one.innerText === ${JSON.stringify(words)});
  const box = button.getBoundingClientRect();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
})()`);
const mouse = (type) => page("Input.dispatchMouseEvent", { type, ...place, button: "left", clickCount: 1 });
const after = await shows(async () => { await mouse("mousePressed"); await mouse("mouseReleased"); });
const sent = events.filter((event) => event.method === "Network.requestWillBeSent")
  .map(({ params }) => `${params.request.method} ${new URL(params.request.url).host}`);
const told = events.filter((event) => event.method === "Log.entryAdded")
  .map(({ params }) => params.entry.text);
console.log(JSON.stringify({ before, field, after, sent, told }));
browser.removeAllListeners("exit");
const gone = new Promise((ended) => browser.on("exit", ended));
// It may be gone before it has answered.
ask("Browser.close");
await gone;
rmSync(home, { recursive: true, force: true });
process.exit(0);
