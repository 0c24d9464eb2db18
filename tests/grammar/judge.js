// Judges texts by a grammar with llama.cpp's own grammar engine, for the tests of the grammars.
// Its argument is the native part of the package node-llama-cpp; otherwise as judge.py.
const { AddonGrammar } = require(process.argv[2]);
const request = JSON.parse(require("fs").readFileSync(0, "utf8"));
const grammar = new AddonGrammar(request.grammar, {});
process.stdout.write(JSON.stringify(request.texts.map((text) => grammar.isTextCompatible(text))));
