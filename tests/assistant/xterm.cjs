// A terminal of xterm.js without a window. Each line of standard input is a command; each has one line for its answer.
const path = require("node:path");
const readline = require("node:readline");
const { Terminal } = require(path.resolve("target/xterm/node_modules/@xterm/headless"));

const terminal = new Terminal({ cols: 100, rows: 40, scrollback: 5000, allowProposedApi: true });

// Returns all lines; one that was wrapped is whole.
function lines() {
  const buffer = terminal.buffer.active;
  const found = [];
  for (let row = 0; row < buffer.length; row++) {
    const line = buffer.getLine(row);
    const text = line.translateToString(true);
    if (line.isWrapped) found[found.length - 1] += text;
    else found.push(text);
  }
  return found;
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const command = JSON.parse(line);
  const answer = (value) => console.log(JSON.stringify(value));
  if (command.write !== undefined) return terminal.write(command.write, () => answer(null));
  if (command.resize) terminal.resize(...command.resize);
  answer(command.resize ? null : lines());
});
