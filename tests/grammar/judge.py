"""Judges texts by a grammar, for the tests of the grammars.

Reads {"judge", "grammar", "texts"} as JSON and prints a list of true and false. "generate" reads
{"judge", "grammar", "words", "closers", "count", "seed"} and prints texts that llguidance lets a
model write: each is made of words that the grammar allows at their place.
"""

import json
import random
import sys


def lark(request):
    from lark import Lark
    from lark.exceptions import LarkError

    parser = Lark(request["grammar"], parser="lalr")

    def accepts(text):
        try:
            parser.parse(text)
        except LarkError:
            return False
        return True

    return [accepts(text) for text in request["texts"]]


def matcher(grammar, kind):
    import llguidance

    class Bytes:
        """One token per byte."""

        eos_token_id = 256
        bos_token_id = None
        special_token_ids = [256]
        tokens = [bytes([byte]) for byte in range(256)] + [b"\xff<end>"]

        def __call__(self, text):
            return list(text.encode() if isinstance(text, str) else text)

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))
    compiled = llguidance.grammar_from(kind, grammar)

    def new():
        made = llguidance.LLMatcher(tokenizer, compiled)
        if made.is_error():
            sys.exit(made.get_error())
        return made

    return new


def allows(machine, text):
    tokens = list(text.encode())
    return machine.validate_tokens(tokens) == len(tokens)


def llguidance(request, kind):
    # A new matcher would read the grammar again for each text.
    first = matcher(request["grammar"], kind)()

    def accepts(text):
        machine = first.deep_copy()
        return allows(machine, text) and machine.consume_tokens(list(text.encode())) and machine.is_accepting()

    return [accepts(text) for text in request["texts"]]


LETTERS = [chr(code) for code in range(32, 127)] + ["\n"]


def generate(request):
    new = matcher(request["grammar"], "gbnf")
    choose = random.Random(request["seed"])

    def one():
        machine, text = new(), ""
        budget = choose.randint(10, 80)
        while not machine.is_accepting():
            words = choose.sample(request["words"], len(request["words"]))
            if len(text) > 20 * budget:
                words = request["closers"] + words
            # A word may stop inside a tag; then a single character goes on.
            words += choose.sample(LETTERS, len(LETTERS))
            word = next((word for word in words if allows(machine, word)), None)
            if word is None:
                sys.exit(f"no word may follow {text!r}")
            machine.consume_tokens(list(word.encode()))
            text += word
        return text

    return [one() for _ in range(request["count"])]


def json_schema(request):
    from jsonschema import Draft202012Validator

    schema = json.loads(request["grammar"])
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    return [validator.is_valid(json.loads(text)) for text in request["texts"]]


JUDGES = {
    "lark": lark,
    "llguidance-lark": lambda request: llguidance(request, "lark"),
    "llguidance-gbnf": lambda request: llguidance(request, "gbnf"),
    "json-schema": json_schema,
    "generate": generate,
}

request = json.load(sys.stdin)
json.dump(JUDGES[request["judge"]](request), sys.stdout)
