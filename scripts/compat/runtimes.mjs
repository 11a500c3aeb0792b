import { startEndpoint } from '../platforms/endpoint.mjs';
import { runtime } from '../platforms/runtimes.mjs';

export const name = 'runtimes';
export const goal =
  'Bun and Deno run an agent with a tool, serve it, and keep its session in files';

/** Asks a model over HTTP, twice in a session that is kept in files, and serves the agent to a client. */
const program = `
import { createAgent, text, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { openai } from '@millrace/openai';
import { serve } from '@millrace/server/node';
import { openFiles } from '@millrace/store';
import { firstValueFrom, lastValueFrom, Subject } from 'rxjs';

const [url, directory] = process.argv.slice(2);
const weather = tool({
  name: 'weather',
  description: 'Returns the weather of a city.',
  input: jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
  run: ({ city }) => \`snow in \${city}\`,
});
const model = openai('gpt', { baseURL: url + '/v1' });
const agent = createAgent({ model, tools: [weather] });
const store = openFiles(directory);
const session = sessions(agent, { memory: store.memory }).open('ada');
const answers = [];
for (const question of ['How is the weather?', 'And now?']) {
  answers.push(textOf(await session.call(question)));
}
await lastValueFrom(store.close$(), { defaultValue: undefined });
const served$ = new Subject();
const served = firstValueFrom(served$);
const server = serve(agent, { port: 0, signals: [] }).subscribe(served$);
const messages = [{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'How is the weather?' }] }];
const response = await fetch(new URL('/api/chat', (await served).url), {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ id: 'chat', messages }),
});
answers.push(String((await response.text()).includes('snow in Oslo')));
server.unsubscribe();
await firstValueFrom(createAgent({ model }).stream$('Please wait').pipe(text()));
answers.push(await (await fetch(url)).text());
console.log(JSON.stringify(answers));
process.exit();
`;

const said = 'The tool says: snow in Oslo';
const expected = JSON.stringify([said, said, 'true', 'left']);

const runtimes = {
  bun: ['run'],
  deno: ['run', '--allow-all', '--node-modules-dir=manual', '--no-lock'],
};

export async function rows(context) {
  context.write('runtimes.mjs', program);
  const results = [];
  for (const [name, args] of Object.entries(runtimes)) {
    const { label, path, why } = await runtime(name);
    const what = `${label} runs an agent, a session and a server`;
    if (path === undefined) results.push({ what, skipped: why });
    else results.push({ what, problem: await ran(context, name, path, args) });
  }
  return results;
}

async function ran({ run }, name, path, args) {
  const endpoint = await startEndpoint();
  try {
    const { code, output } = await run(path, [
      ...[...args, 'runtimes.mjs'],
      ...[endpoint.url, `kept-${name}-${process.pid}`],
    ]);
    return code === 0 && output.trim() === expected ? undefined : `exit code ${code}:\n${output}`;
  } finally {
    endpoint.close();
  }
}
