// The same as millrace.mjs on deepagents 1.14.1. Copy it to a folder with `npm install deepagents`, and run it there.
import { createDeepAgent, FilesystemBackend } from 'deepagents';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { todoListMiddleware } from 'langchain';
import { z } from 'zod';
import console from 'node:console';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const edit = (old_string) => [
  'edit_file',
  { file_path: '/log.md', old_string, new_string: old_string.toUpperCase() },
];
const scripts = {
  Compare: [
    [['write_todos', { todos: [{ content: 'Research', status: 'in_progress' }] }]],
    [['write_file', { file_path: '/log.md', content: 'rye\nwheat' }]],
    ['one', 'two'].map((description) => [
      'task',
      { description, subagent_type: 'general-purpose' },
    ]),
    [['search', {}]],
    'Done.',
  ],
  one: [[edit('rye')], 'ok'],
  two: [[edit('wheat')], 'ok'],
};
class Scripted extends BaseChatModel {
  _llmType() {
    return 'scripted';
  }
  bindTools() {
    return this;
  }
  async _generate(messages) {
    const name = messages.find((it) => it.getType() === 'human').text;
    const turn = messages.filter((it) => it.getType() === 'ai').length;
    const answer = scripts[name][turn];
    const message =
      typeof answer === 'string'
        ? new AIMessage(answer)
        : new AIMessage({
            content: '',
            tool_calls: answer.map(([tool, args], i) => ({
              name: tool,
              args,
              id: `${name}${turn}${i}`,
              type: 'tool_call',
            })),
          });
    return { generations: [{ message, text: '' }] };
  }
}
const search = tool(() => 'x'.repeat(100_000), {
  name: 'search',
  description: 'Searches.',
  schema: z.object({}),
});
const rootDir = mkdtempSync(join(tmpdir(), 'deepagents-'));
const agent = createDeepAgent({
  model: new Scripted({}),
  tools: [search],
  middleware: [todoListMiddleware()],
  backend: new FilesystemBackend({ rootDir, virtualMode: true }),
});
const reply = await agent.invoke({ messages: [{ role: 'user', content: 'Compare' }] });
console.log(
  reply.messages.at(-1).text,
  readFileSync(rootDir + '/log.md', 'utf8').replace('\n', ' '),
);
