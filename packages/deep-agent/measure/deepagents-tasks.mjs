// The tasks of scripted-server.mjs on deepagents 1.14.1. Copy both to a folder with `npm install deepagents @langchain/openai`, and run it there.
import { createDeepAgent } from 'deepagents';
import { ChatOpenAI } from '@langchain/openai';
import { todoListMiddleware, tool } from 'langchain';
import { z } from 'zod';
import { found, measure, scriptedServer, tasks } from './scripted-server.mjs';

const calls = {
  plan: ([steps]) => [
    'write_todos',
    { todos: steps.map((content) => ({ content, status: 'pending' })) },
  ],
  write: ([path, content]) => ['write_file', { file_path: `/${path}`, content }],
  edit: ([path, old_string, new_string]) => [
    'edit_file',
    { file_path: `/${path}`, old_string, new_string },
  ],
  read: ([path]) => ['read_file', { file_path: `/${path}` }],
  task: ([subagent_type, description]) => ['task', { subagent_type, description }],
  search: ([input]) => ['search', input],
};
const server = await scriptedServer(([name, ...input]) => calls[name](input));
const model = new ChatOpenAI({
  ...{ model: 'm', apiKey: 'key', useResponsesApi: false },
  configuration: { baseURL: server.baseURL },
});
const search = tool(found, {
  name: 'search',
  description: 'Searches the web.',
  schema: z.object({ query: z.string() }),
});
const agentsOf = (agents) =>
  Object.entries(agents).map(([name, description]) => ({
    ...{ name, description, tools: [search], systemPrompt: description },
  }));
const middleware = () => [todoListMiddleware()];

for (const [name, { question, instructions, agents }] of Object.entries(tasks)) {
  await measure(name, server, async () => {
    const specialist = () =>
      createDeepAgent({
        ...{ model, tools: [search], middleware: middleware() },
        subagents: agentsOf({ checker: 'Checks claims.' }),
      });
    const subagents =
      name === 'research'
        ? agentsOf(agents)
        : [{ name: 'specialist', description: agents.specialist, runnable: specialist() }];
    const agent = createDeepAgent({
      ...{ model, tools: [search], systemPrompt: instructions, subagents },
      middleware: middleware(),
    });
    const reply = await agent.invoke(
      { messages: [{ role: 'user', content: question }] },
      { recursionLimit: 1_000 },
    );
    const files = Object.entries(reply.files ?? {});
    return {
      text: reply.messages.at(-1).text,
      files: files.map(([path, { content }]) => [path, [content].flat().join('\n').length]),
    };
  });
}
server.close();
