#!/bin/sh
# Lets a model work on a task until it asks for nothing more:
#     examples/loop.sh "claude -p" "Make the tests pass."
# The first argument is any command that reads the conversation and prints the model's answer:
# "llm", "claude -p", "ollama run qwen3-coder". You are not asked before a command runs.
model=$1 task=$2
talk=$(mktemp -d) || exit
trap 'rm -rf "$talk"' EXIT
{ karyi tools prompt; printf '\nThe task: %s\n' "$task"; } > "$talk/all"
turns=0
until
    [ $((turns += 1)) -le 50 ] || { echo "no end after 50 answers" >&2; exit 1; }
    $model < "$talk/all" > "$talk/answer" || exit
    cat "$talk/answer"
    karyi run --format xml "$talk/answer" > "$talk/report" &&
        grep -q 'code="no-block"' "$talk/report"
do
    cat "$talk/answer" "$talk/report" >> "$talk/all"
done
