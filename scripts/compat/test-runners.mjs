import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { npm } from '../run.mjs';
import { readJson, root } from '../workspaces.mjs';

export const name = 'test-runners';
export const goal =
  'Jest and Vitest run the recipe of the docs and the matchers of evals, with the TypeScript of today';

const agent = `import { createAgent, type Model } from 'millrace';
export const agentOf = (model: Model) => createAgent({ model });
`;

const test = (runner) => `import { it } from '${runner}';
import { marbles } from 'millrace/testing';
import { map } from 'rxjs';
import { agentOf } from './agent.js';

it('replies in virtual time', () => {
  marbles(({ model, expectObservable, scheduler }) => {
    const reply$ = agentOf(model('--t--t--(f|)')).call$('Hi!', { scheduler });
    expectObservable(reply$.pipe(map(({ text }) => text))).toBe('--------(r|)', { r: 'tt' });
  });
});
`;

const evalTest = (runner, merge) => `import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '${runner}';
import { createAgent, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { lastValueFrom } from 'rxjs';
import { calledTools, evaluate, summary } from '@millrace/evals';
import { type EvalMatchers, evalMatchers } from '@millrace/evals/matchers';

expect.extend(evalMatchers);
${merge}

const clock = tool({ name: 'clock', description: 'Time.', run: () => '12:00' });
const agentOf = () =>
  createAgent({ model: scriptedModel([toolCall('clock')], [text('Noon.')]), tools: [clock] });
const messageOf = (check: () => void): string => {
  try {
    check();
  } catch (error) {
    return String(error);
  }
  throw new Error('It passed.');
};

it('has the matchers of evals', async () => {
  const reply = await agentOf().call('What time is it?');
  expect(reply).toCallTools(['clock']);
  expect(reply).not.toCallTools([]);
  expect(messageOf(() => expect(reply).toCallTools(['watch']))).toContain('called clock');
  const evaluated = (name: string) =>
    lastValueFrom(
      evaluate(agentOf(), [{ id: 'noon', input: '?' }], { tools: calledTools([name]) }).pipe(summary()),
    );
  const [good, bad] = [await evaluated('clock'), await evaluated('watch')];
  expect(good).toReach({ scores: { tools: 1 }, passRate: 1 });
  const file = join(mkdtempSync(join(tmpdir(), 'millrace-compat-')), 'noon.json');
  process.env['CI'] = '';
  expect(good).toMatchBaseline(file);
  process.env['CI'] = 'true';
  expect(good).toMatchBaseline(file);
  expect(messageOf(() => expect(bad).toMatchBaseline(file))).toContain('tools 1.00 → 0.00');
});
`;

const { devDependencies } = readJson(root, 'package.json');
/** The types of the matchers, as the README merges them: for Jest, and for Vitest. */
const merges = [
  ...readFileSync(join(root, 'packages/evals/README.md'), 'utf8').matchAll(
    /`(declare module '(?:expect|vitest)' [^`]*)`/g,
  ),
].map(([, code]) => code);

const runners = {
  Vitest: {
    script: 'vitest run',
    module: 'vitest',
    merge: merges[1],
    install: { vitest: '*', typescript: '*' },
  },
  Jest: {
    script: 'NODE_OPTIONS=--experimental-vm-modules jest',
    module: '@jest/globals',
    merge: merges[0],
    install: Object.fromEntries(
      ['@jest/globals', 'jest', 'ts-jest', 'typescript'].map((it) => [it, devDependencies[it]]),
    ),
  },
};

const tsconfig = JSON.stringify({
  compilerOptions: {
    ...{ module: 'nodenext', target: 'es2022', strict: true, noEmit: true },
    ...{ types: ['node'], skipLibCheck: true },
  },
  include: ['src'],
});

/** The files that the recipe names in the first line of a block. */
const recipe = () => {
  const page = readFileSync(join(root, 'docs/recipes.md'), 'utf8');
  const blocks = page.matchAll(/```js(?:on)?\n\/\/ (\S+\.js(?:on)?)\n([^]*?)```/g);
  return Object.fromEntries([...blocks].map(([, file, text]) => [file, text]));
};

export async function rows({ project, tarballs }) {
  const results = [];
  for (const [what, { script, module, merge, install }] of Object.entries(runners)) {
    const folder = join(dirname(project), what);
    const manifest = {
      private: true,
      type: 'module',
      scripts: { test: script, types: 'tsc -p tsconfig.types.json' },
      dependencies: {
        millrace: `file:${tarballs.get('millrace')}`,
        '@millrace/evals': `file:${tarballs.get('@millrace/evals')}`,
        '@types/node': devDependencies['@types/node'],
        rxjs: devDependencies.rxjs,
        ...install,
      },
    };
    const files = {
      'package.json': JSON.stringify(manifest),
      'src/agent.ts': agent,
      'src/agent.test.ts': test(module),
      'src/evals.test.ts': evalTest(module, merge),
      'tsconfig.types.json': tsconfig,
      ...(what === 'Jest' && recipe()),
    };
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(folder, file, '..'), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    results.push({ what: `${what} runs a test`, ...(await problemIn(folder)) });
  }
  return results;
}

const problemIn = async (folder) => {
  const inFolder = { quiet: true, cwd: folder };
  const flags = ['--no-audit', '--no-fund', '--loglevel=error'];
  for (const command of [['install', ...flags], ['test'], ['run', 'types']]) {
    const { code, output } = await npm(command, inFolder);
    if (code !== 0 || /\bWARN\b/.test(output)) return { problem: output.slice(0, 4_000) };
  }
  return {};
};
