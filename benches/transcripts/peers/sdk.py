"""One call of Anthropic's Python SDK on a home of Claude Code; prints its milliseconds, without the import.

sdk.py list HOME | sdk.py find HOME ID | sdk.py tail HOME ID
"""

import os
import sys
import time

what, home, *ids = sys.argv[1:]
os.environ["CLAUDE_CONFIG_DIR"] = home

import claude_agent_sdk as sdk  # noqa: E402  (it reads the environment)

calls = {
    "list": lambda: sdk.list_sessions(),
    "find": lambda: sdk.get_session_info(ids[0]),
    "tail": lambda: sdk.get_session_messages(ids[0], limit=20),
}
start = time.perf_counter()
calls[what]()
print((time.perf_counter() - start) * 1000)
