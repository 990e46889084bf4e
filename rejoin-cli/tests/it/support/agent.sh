#!/bin/sh
# Plays Claude Code: keeps a session file, and remembers how many prompts it holds.
[ "$1" = --version ] && { echo "2.1.332 (Claude Code)"; exit 0; }
while [ $# -gt 0 ]; do
    case "$1" in
        --session-id) id=$2; shift ;;
        --resume) id=$2; resumed=1; shift ;;
    esac
    shift
done
IFS= read -r prompt
# What the agent does to the work tree.
case "$prompt" in "do: "*) eval "${prompt#do: }" ;; esac
folder=$(pwd -P | sed 's/[^A-Za-z0-9]/-/g')
file=${CLAUDE_CONFIG_DIR:-$HOME/.claude}/projects/$folder/$id.jsonl
if [ -n "$resumed" ] && [ ! -f "$file" ]; then
    echo "No conversation found with session ID: $id" >&2
    exit 1
fi
mkdir -p "${file%/*}"
[ -f "$file" ] && number=$(wc -l < "$file") || number=0
number=$((number / 2 + 1))
common="\"isSidechain\":false,\"timestamp\":\"2026-03-09T14:00:00.000Z\",\"cwd\":\"$(pwd -P)\",\"sessionId\":\"$id\",\"version\":\"2.1.332\",\"gitBranch\":\"main\""
text="prompt $number: $prompt"
message="{\"role\":\"assistant\",\"id\":\"msg_$number\",\"type\":\"message\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"$text\"}],\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}"
echo "{\"type\":\"user\",\"parentUuid\":null,\"uuid\":\"0000000$number-1111-4111-8111-000000000001\",$common,\"message\":{\"role\":\"user\",\"content\":\"$prompt\"}}" >> "$file"
echo "{\"type\":\"assistant\",\"parentUuid\":\"0000000$number-1111-4111-8111-000000000001\",\"uuid\":\"0000000$number-1111-4111-8111-000000000002\",$common,\"message\":$message}" >> "$file"
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$id\",\"model\":\"m\",\"tools\":[],\"cwd\":\"$(pwd -P)\"}"
echo "{\"type\":\"assistant\",\"message\":$message,\"parent_tool_use_id\":null,\"session_id\":\"$id\"}"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"$text\",\"session_id\":\"$id\",\"total_cost_usd\":0.001,\"usage\":{\"input_tokens\":10,\"output_tokens\":2}}"
