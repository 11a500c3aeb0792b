import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { npm } from '../run.mjs';
import { readJson, root } from '../workspaces.mjs';

export const name = 'test-runners';
export const goal = 'Jest and Vitest run the recipe of the docs, with the TypeScript of today';

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

const { devDependencies } = readJson(root, 'package.json');
const runners = {
  Vitest: { script: 'vitest run', module: 'vitest', install: { vitest: '*', typescript: '*' } },
  Jest: {
    script: 'NODE_OPTIONS=--experimental-vm-modules jest',
    module: '@jest/globals',
    install: Object.fromEntries(
      ['@jest/globals', 'jest', 'ts-jest', 'typescript'].map((it) => [it, devDependencies[it]]),
    ),
  },
};

/** The files that the recipe names in the first line of a block. */
const recipe = () => {
  const page = readFileSync(join(root, 'docs/recipes.md'), 'utf8');
  const blocks = page.matchAll(/```js(?:on)?\n\/\/ (\S+\.js(?:on)?)\n([^]*?)```/g);
  return Object.fromEntries([...blocks].map(([, file, text]) => [file, text]));
};

export async function rows({ project, tarballs }) {
  const results = [];
  for (const [what, { script, module, install }] of Object.entries(runners)) {
    const folder = join(dirname(project), what);
    const manifest = {
      private: true,
      type: 'module',
      scripts: { test: script },
      dependencies: {
        millrace: `file:${tarballs.get('millrace')}`,
        rxjs: devDependencies.rxjs,
        ...install,
      },
    };
    const files = {
      'package.json': JSON.stringify(manifest),
      'src/agent.ts': agent,
      'src/agent.test.ts': test(module),
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
  for (const command of [['install', ...flags], ['test']]) {
    const { code, output } = await npm(command, inFolder);
    if (code !== 0 || /\bWARN\b/.test(output)) return { problem: output.slice(0, 4_000) };
  }
  return {};
};
