"""Reads one XML document per line of stdin, in hexadecimal; prints its tree, or the error, as JSON."""

import json
import sys
import xml.parsers.expat


def element(name, attributes, start):
    pairs = list(zip(attributes[::2], attributes[1::2]))
    return {"name": name, "attributes": pairs, "children": [], "text": "", "cdata": False, "start": start}


def tree(document):
    parser = xml.parsers.expat.ParserCreate()
    parser.ordered_attributes = True
    parser.buffer_text = True
    stack = [element("", [], 0)]

    def start(name, attributes):
        child = element(name, attributes, parser.CurrentByteIndex)
        stack[-1]["children"].append(child)
        stack.append(child)

    def text(piece):
        stack[-1]["text"] += piece

    def cdata():
        stack[-1]["cdata"] = True

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: stack.pop()
    parser.CharacterDataHandler = text
    parser.StartCdataSectionHandler = cdata
    parser.Parse(document, True)
    return stack[0]["children"][0]


for line in sys.stdin:
    try:
        answer = {"tree": tree(bytes.fromhex(line))}
    except xml.parsers.expat.ExpatError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
