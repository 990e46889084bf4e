// One call of Anthropic's TypeScript SDK on a home of Claude Code; prints its milliseconds, without the import.
//   node sdk.mjs MODULES list HOME | node sdk.mjs MODULES find HOME ID | node sdk.mjs MODULES tail HOME ID
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, what, home, id] = process.argv.slice(2);
process.env.CLAUDE_CONFIG_DIR = home;
const entry = path.join(modules, 'node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs');
const sdk = await import(pathToFileURL(entry).href);
const calls = {
  list: () => sdk.listSessions(),
  find: () => sdk.getSessionInfo(id),
  tail: () => sdk.getSessionMessages(id, { limit: 20 }),
};
const start = performance.now();
await calls[what]();
console.log(performance.now() - start);
