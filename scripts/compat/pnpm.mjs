import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { npm, run } from '../run.mjs';
import { readJson, root } from '../workspaces.mjs';

export const name = 'pnpm';
export const goal =
  'pnpm installs millrace and vendors in its strict layout, for a program and for a library';

const program = `
import { createAgent, textOf } from 'millrace';
import { demoModel } from '@millrace/demo-model';
import '@millrace/anthropic';
import '@millrace/openai';
import 'millrace/testing';
console.log(textOf(await createAgent({ model: demoModel() }).call('Hello')));
`;

/** A library exports what the functions of `millrace` return: its declarations must be able to name these types. */
const library = async () => {
  const entry = join(root, 'packages/millrace/dist/bundle/index.js');
  const names = Object.keys(await import(entry)).filter((it) => /^[a-z]/.test(it));
  const results = names.map(
    (it, index) =>
      `export const result${index} = main.${it}(...([] as unknown as Parameters<typeof main.${it}>));`,
  );
  const shown = `export const { call, call$, stream$ } = main.createAgent(null!);`;
  const chat = `export const chat = sessions(null!).open('a');`;
  const imports = `import * as main from 'millrace';\nimport { sessions } from 'millrace/sessions';`;
  return [imports, ...results, shown, chat].join('\n');
};

const compilation = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2022', 'dom', 'esnext.disposable'],
    module: 'nodenext',
    types: [],
    strict: true,
    declaration: true,
    outDir: 'out',
    skipLibCheck: true,
  },
  include: ['library.ts'],
};

export async function rows({ project, tarballs }) {
  const folder = join(dirname(project), 'pnpm');
  mkdirSync(folder);
  const overrides = Object.fromEntries([...tarballs].map(([name, path]) => [name, `file:${path}`]));
  const packages = [
    'millrace',
    ...['anthropic', 'demo-model', 'openai'].map((it) => `@millrace/${it}`),
  ];
  const { rxjs } = readJson(root, 'package.json').devDependencies;
  const manifest = {
    name: 'program',
    private: true,
    type: 'module',
    dependencies: { ...Object.fromEntries(packages.map((it) => [it, overrides[it]])), rxjs },
    pnpm: { overrides },
  };
  const files = {
    'package.json': JSON.stringify(manifest),
    'program.mjs': program,
    'library.ts': await library(),
    'tsconfig.json': JSON.stringify(compilation),
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  const inFolder = { quiet: true, cwd: folder };
  const install = ['exec', '--yes', '--', 'pnpm@9', 'install', '--ignore-scripts'];
  const installed = await npm(install, inFolder);
  if (installed.code !== 0) return [{ what: 'pnpm installs', problem: installed.output }];
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  return [
    rowOf('a program runs', await run(process.execPath, ['program.mjs'], inFolder)),
    namedIn(await run(process.execPath, [compiler, '-p', '.'], inFolder)),
  ];
}

/** Arguments that no value stands for are errors, too: only names matter here. */
const namedIn = ({ code, output }) => {
  const unnamed = output.split('\n').filter((line) => line.includes('cannot be named'));
  const isWrong = code !== 0 && (unnamed.length > 0 || !output.includes('error TS'));
  return rowOf('a library has declarations', {
    code: isWrong ? 1 : 0,
    output: unnamed.join('\n') || output,
  });
};

const rowOf = (what, { code, output }) => ({
  what,
  ...(code === 0 ? {} : { problem: output.slice(0, 12_000) }),
});
