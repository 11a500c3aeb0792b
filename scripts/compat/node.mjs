import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { node } from '../run.mjs';
import { readJson, root } from '../workspaces.mjs';

export const name = 'node';
export const goal =
  'Node 20, 22, 24 and 26 import every entry, and run an agent with a tool and a stored session';

/** The optional peer that an entry imports at once: others are loaded when they are used. */
export const dependencies = {
  ws: readJson(root, 'packages/server/package.json').peerDependencies.ws,
};

const majors = [20, 22, 24, 26];

/** An agent with a tool of each kind of schema, in a session that a second process continues. */
const program = `
import { deepStrictEqual } from 'node:assert/strict';
import { openFiles } from '@millrace/store';
import { createAgent, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { lastValueFrom } from 'rxjs';
import { z } from 'zod';

const [directory, visit] = process.argv.slice(2);
const run = ({ city }) => \`Snow in \${city}.\`;
const about = { description: 'Returns the weather of a city.', run };
const tools = [
  tool({ ...about, name: 'with_zod', input: z.object({ city: z.string() }) }),
  tool({ ...about, name: 'with_json', input: jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }) }),
];
const calls = tools.map(({ name }, index) => toolCall(name, { city: 'Oslo' }, \`\${visit}-\${index}\`));
const asked = [];
const model = scriptedModel(calls, ({ messages }) => {
  asked.push(...messages.filter(({ role }) => role === 'user').map(textOf));
  return [text('It snows.')];
});
const store = openFiles(directory);
const session = sessions(createAgent({ model, tools }), { memory: store.memory }).open('ada');
const reply = await session.call(\`Question \${visit}\`);
deepStrictEqual(
  reply.toolCalls.map(({ isError, output }) => [isError, output]),
  tools.map(() => [false, 'Snow in Oslo.']),
);
await lastValueFrom(store.close$(), { defaultValue: undefined });
console.log(JSON.stringify([textOf(reply), asked]));
`;

const expected = (visit) =>
  JSON.stringify([
    'It snows.',
    Array.from({ length: visit }, (_, index) => `Question ${index + 1}`),
  ]);

export async function rows({ project, entries, write, run }) {
  write('program.mjs', program);
  write('entries.mjs', entries.map((entry) => `await import('${entry}');`).join('\n'));
  const results = [];
  for (const major of majors) {
    const found = await executable(major);
    const label = `Node ${found.version ?? major}`;
    const checks = {
      [`imports ${entries.length} entries`]: () => imported(run, found.path),
      'runs an agent and its session': () => ran(run, project, found.path, []),
      'runs them without code generation': () => ran(run, project, found.path, [noCode]),
      'runs the command': () => answered(run, found.path),
    };
    for (const [what, check] of Object.entries(checks)) {
      const row = { what: `${label} ${what}` };
      if (found.path === undefined) results.push({ ...row, skipped: found.why });
      else results.push({ ...row, problem: await check() });
    }
  }
  return results;
}

const noCode = '--disallow-code-generation-from-strings';

async function imported(run, path) {
  const { code, output } = await run(path, ['entries.mjs']);
  return code === 0 ? undefined : output;
}

async function answered(run, path) {
  const bin = 'node_modules/@millrace/cli/dist/bundle/bin.js';
  const { code, output } = await run(path, [bin, '--no-store', '--quiet', 'What is 6 * 7?']);
  return code === 0 && output.includes('42') ? undefined : `exit code ${code}:\n${output}`;
}

/** Runs the program twice, as two processes with one store. */
async function ran(run, project, path, flags) {
  const directory = join(project, `kept-${Math.random().toString(36).slice(2)}`);
  for (const visit of [1, 2]) {
    const { code, output } = await run(path, [...flags, 'program.mjs', directory, String(visit)]);
    if (code !== 0 || output.trim() !== expected(visit)) return `exit code ${code}:\n${output}`;
  }
  return undefined;
}

/** This Node, or the one that \`npm run bench:peers\` installs. */
export async function executable(major) {
  const { version, execPath } = process;
  if (version.startsWith(`v${major}.`)) return { version: version.slice(1), path: execPath };
  const folder = join(root, 'bench/peers', `node-${major}`);
  if (!existsSync(folder)) return { why: `run this with Node ${major}` };
  const { code, output } = await node(['scripts/bench-peers.mjs', `node-${major}`], {
    quiet: true,
  });
  const path = join(folder, 'node_modules/.bin/node');
  return code === 0 && existsSync(path) ? { path } : { why: `not installed: ${output.trim()}` };
}
