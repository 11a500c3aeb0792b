// The tasks of scripted-server.mjs by a deep agent: `node packages/deep-agent/measure/millrace-tasks.mjs`.
import { tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { deepAgent, filesInMemory } from '@millrace/deep-agent';
import { openai } from '@millrace/openai';
import { firstValueFrom } from 'rxjs';
import { found, measure, scriptedServer, tasks } from './scripted-server.mjs';

const calls = {
  plan: ([steps]) => ['create_plan', { goal: 'Mills.', steps }],
  write: ([path, content]) => ['write_file', { path, content }],
  edit: ([path, oldText, newText]) => ['edit_file', { path, oldText, newText }],
  read: ([path]) => ['read_file', { path }],
  task: ([agent, task]) => ['task', { agent, task }],
  search: ([input]) => ['search', input],
};
const server = await scriptedServer(([name, ...input]) => calls[name](input));
const model = openai('m', { apiKey: 'key', baseURL: server.baseURL });
const search = tool({
  name: 'search',
  description: 'Searches the web.',
  input: jsonSchema({
    type: 'object',
    properties: { query: { type: 'string' } },
    required: ['query'],
  }),
  run: found,
});
const { research, hierarchy } = tasks;
const agentsOf = ({ agents }) =>
  Object.entries(agents).map(([name, description]) => ({ name, description, tools: [search] }));

for (const [name, { question, instructions, agents }] of Object.entries({ research, hierarchy })) {
  await measure(name, server, async () => {
    const files = filesInMemory();
    const specialist = () =>
      deepAgent({
        ...{ name: 'specialist', model, files, tools: [search] },
        agents: [{ name: 'checker', description: 'Checks claims.', tools: [search] }],
      });
    const made =
      name === 'research'
        ? agentsOf({ agents })
        : [{ name: 'specialist', description: agents.specialist, agent: specialist() }];
    const agent = deepAgent({ model, files, instructions, tools: [search], agents: made });
    const { text } = await agent.call(question);
    const paths = await firstValueFrom(files.list$());
    const texts = await Promise.all(paths.map((path) => firstValueFrom(files.read$(path))));
    return { text, files: paths.map((path, index) => [path, texts[index].length]) };
  });
}
server.close();
