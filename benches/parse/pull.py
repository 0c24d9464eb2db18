"""Pull parsers of Python over a file: `pull.py FILE CHUNK PARSER` prints MB/s and the number of calls.

Each turns the block into elements with names, attributes and text, and lets a call go when it is
complete, as a program that runs calls would.
"""

import gc
import sys
import time


def expat(pieces):
    from xml.parsers import expat

    calls = 0
    stack = []

    def start(name, attributes):
        stack.append((name, attributes, [], []))

    def end(_name):
        nonlocal calls
        name, attributes, text, children = stack.pop()
        if len(stack) == 1:
            calls += 1
        elif stack:
            stack[-1][3].append((name, attributes, "".join(text), children))

    def text(data):
        stack[-1][2].append(data)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    for piece in pieces:
        parser.Parse(piece)
    parser.Parse(b"", True)
    return calls


def lxml(pieces):
    from lxml import etree

    calls = 0
    depth = 0
    parser = etree.XMLPullParser(events=("start", "end"), huge_tree=True)
    for piece in pieces:
        parser.feed(piece)
        for event, element in parser.read_events():
            if event == "start":
                depth += 1
                continue
            depth -= 1
            if depth == 1:
                calls += 1
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
    parser.close()
    return calls


def main():
    path, chunk, parser = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "rb") as file:
        data = file.read()
    pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    parse = {"expat": expat, "lxml": lxml}[parser]
    gc.disable()
    start = time.perf_counter()
    calls = parse(pieces)
    seconds = time.perf_counter() - start
    print(len(data) / seconds / 1e6, calls)


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:
        sys.exit(f"missing: {error}")
