import { beforeAll, describe, expect, it } from '@jest/globals';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { basename, join } from 'node:path';
import { type Printed, runAlone, runModules } from './run-modules.test-support.js';

const root = join(import.meta.dirname, '..');
const work = join(import.meta.dirname, 'temp');

interface Block {
  readonly where: string;
  readonly file: string;
  readonly code: string;
  /** False for a `ts no-run` block, which is only compiled: it needs a key, a port or a peer. */
  readonly runs: boolean;
  /** The `text` block right after it: what it prints. */
  readonly prints?: string;
}

const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
  ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`),
].filter((page) => page.endsWith('.md') && existsSync(join(root, page)));

const sources = readdirSync(join(root, 'packages'), { recursive: true, encoding: 'utf8' })
  .map((path) => `packages/${path.replaceAll('\\', '/')}`)
  .filter((path) => /^packages\/[\w-]+\/src\/.*(?<!\.test|\.test-[\w-]+)\.ts$/.test(path));

/** A page, or a source file with the text of its doc comments at the start of each line. */
const read = (page: string): string => {
  const source = readFileSync(join(root, page), 'utf8');
  return page.endsWith('.md') ? source : source.replaceAll(/^ *\* ?/gm, '');
};

const blocksOf = (page: string): readonly Block[] => {
  const source = read(page);
  const found = source.matchAll(/^```ts( no-run)?\n(.*?)^```(?:\n\n```text\n(.*?)^```)?/gms);
  return [...found].map(({ index, 1: noRun, 2: code = '', 3: prints }, nth) => ({
    where: `${page}:${source.slice(0, index).split('\n').length}`,
    file: join(work, `${page.replaceAll(/\W/g, '-')}-${nth}.ts`),
    // Each block is a module of its own, whatever it declares.
    code: `${code}\nexport {};\n`,
    runs: noRun === undefined,
    ...(prints !== undefined && { prints }),
  }));
};

const blocks = [
  ...pages.flatMap(blocksOf),
  // Examples of doc comments are parts of programs, unless they import what they use.
  ...sources.flatMap(blocksOf).filter(({ code }) => code.startsWith('import ')),
];
const programs = blocks.filter(({ runs }) => runs);

/** As a reader would compile them: strict, against what the packages publish. */
const compile = (): readonly string[] => {
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  for (const { file, code } of blocks) writeFileSync(file, code);
  const project = join(work, 'tsconfig.json');
  writeFileSync(
    project,
    JSON.stringify({ compilerOptions, files: blocks.map(({ file }) => file) }),
  );
  const compiler = join(root, 'node_modules/typescript7/bin/tsc');
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [compiler, '--project', project, '--pretty', 'false'],
    { cwd: work, encoding: 'utf8' },
  );
  const problems = [...stdout.matchAll(/^(\S+\.ts)\((\d+),\d+\): (.*)$/gm)];
  if (status !== 0 && problems.length === 0) return [stdout + stderr];
  return problems.flatMap(([, name = '', line = '', message = '']) => {
    const block = blocks.find(({ file }) => basename(file) === basename(name));
    if (block?.runs === false && isOpenName(message)) return [];
    return [`${block?.where ?? name}+${line}: ${message}`];
  });
};

/** A `no-run` block may be a part of a program: names that it does not declare are of any type. */
const isOpenName = (message: string): boolean => /^error TS(?:2304|18004):/.test(message);

const compilerOptions = {
  target: 'ES2022',
  lib: ['es2023'],
  module: 'NodeNext',
  strict: true,
  skipLibCheck: true,
  types: ['node'],
};

const programOf = ({ file }: Block): string => file.replace(/ts$/, 'js');

describe('every code block of the documentation', () => {
  let problems: readonly string[];
  let printedBy: (file: string) => Printed | undefined;
  beforeAll(async () => {
    problems = compile();
    printedBy = await runModules(programs.map(programOf));
  }, 240_000);

  it.each(['Interceptor', 'Layer', 'Model', 'Phase', 'Step'])(
    'has a whole program for the type %s, in its doc comment',
    (name) => {
      const end = new RegExp(`^ \\*/\nexport (?:interface|type) ${name}\\b`, 'm');
      const [source = ''] = sources
        .map((path) => readFileSync(join(root, path), 'utf8'))
        .filter((it) => end.test(it));
      const comment = source.slice(0, source.search(end)).split('/**\n').at(-1);
      expect(comment).toContain('```ts\n * import ');
    },
  );

  it('compiles', () => {
    expect(blocks.length).toBeGreaterThan(8);
    expect(problems).toEqual([]);
  });

  it.each(programs)('runs: $where', (block) => {
    expect(printedBy(programOf(block))).toMatchObject({ stderr: '' });
  });

  it.each(programs.filter(({ prints }) => prints !== undefined))(
    'prints the text below it: $where',
    (block) => {
      const stdout = printedBy(programOf(block))?.stdout ?? '';
      expect(stdout.replaceAll(/ +$/gm, '')).toBe(block.prints); // Prettier trims the page
    },
  );

  it.each(programs.slice(0, 3))(
    'runs in a process of its own: $where',
    async (block) => {
      expect(await runAlone(programOf(block))).toMatchObject({ stderr: '' });
    },
    120_000,
  );
});
