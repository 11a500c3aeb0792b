// Tools of MCP servers: connected once, for as long as there is a subscriber. A server that cannot be started costs its own tools only.
import { createRequire } from 'node:module';
import { createAgent, isEvent, requireApproval, textOf } from 'millrace';
import { scriptedModel, text as says, toolCall } from 'millrace/testing';
import { mcp } from '@millrace/mcp';

const { resolve } = createRequire(import.meta.url);
const program = resolve('@modelcontextprotocol/server-everything/dist/index.js');
const servers = mcp(
  {
    name: 'demo',
    stdio: { command: process.execPath, args: [program, 'stdio'] },
    include: ['echo', 'get-sum'],
    wrap: (tool, { name }) => requireApproval(tool, name !== 'echo'),
  },
  { name: 'absent', stdio: { command: 'no-such-program' } },
);
const connected = servers.servers$.subscribe();

const model = scriptedModel(
  [toolCall('demo_get-sum', { a: 2, b: 3 })],
  [toolCall('demo_echo', { message: 'Hello.' })],
  [says('It is 5.')],
);
const agent = createAgent({ model, use: [servers] });
for await (const event of agent.stream('What is 2 + 3?')) {
  if (isEvent(event, 'warning')) console.log('warning:', event.message);
  if (isEvent(event, 'postActing')) {
    console.log(event.toolCall.name, event.result.content);
  }
  if (isEvent(event, 'postCall')) console.log(textOf(event.reply));
}
connected.unsubscribe();
