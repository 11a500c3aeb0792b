// TypeScript 7 compiles the packages. This reads their declarations, and the examples, as a program in TypeScript 6 would.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { readJson, root, workspaces } from './workspaces.mjs';

const entriesOf = (path) =>
  Object.values(readJson(root, path, 'package.json').exports ?? {})
    .map(({ types }) => types)
    .filter((types) => types !== undefined)
    .map((types) => join(root, path, types));

const examples = readdirSync(join(root, 'examples'))
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => join(root, 'examples', name));

const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
/** The files of a program and its dependencies in this repository, and what is wrong with them. */
const compile = (entries) => {
  const program = ts.createProgram(entries, {
    ...options,
    types: ['node'],
    noEmit: true,
    composite: false,
    skipLibCheck: false,
  });
  const files = program
    .getSourceFiles()
    .filter(({ fileName }) => !fileName.includes('/node_modules/'));
  const problems = [
    ...program.getGlobalDiagnostics(),
    ...files.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]),
  ];
  return { files, problems };
};

/** What is wrong with the declarations of a program that exports what each function of core returns: it must be able to name their types. */
async function emitted() {
  const { exports } = readJson(root, 'packages/millrace/package.json');
  const entries = Object.keys(exports).filter((entry) => exports[entry].types !== undefined);
  const lines = [];
  for (const [index, entry] of entries.entries()) {
    const specifier = `millrace${entry.slice(1)}`;
    lines.push(`import * as entry${index} from '${specifier}';`);
    const module = await import(
      pathToFileURL(join(root, 'packages/millrace', exports[entry].default))
    );
    for (const name of Object.keys(module).filter((it) => typeof module[it] === 'function')) {
      const called = `entry${index}.${name}`;
      const args = `...([] as unknown as Parameters<typeof ${called}>)`;
      const isClass = /^[A-Z]/.test(name);
      if (!isClass) lines.push(`export const result${lines.length} = ${called}(${args});`);
    }
  }
  lines.push(`export const { call, call$, stream, stream$ } = entry0.createAgent(null!);`);
  const file = join(root, 'temp/types/results.mts');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, lines.join('\n'));
  const program = ts.createProgram([file], {
    ...options,
    declaration: true,
    composite: false,
    types: ['node'],
  });
  return program.getDeclarationDiagnostics(program.getSourceFile(file));
}

// Features add to the types of the main entry, so it is compiled without them, too.
const alone = compile([join(root, 'scripts/types/core-alone.mts')]);
const all = compile([...workspaces(root).flatMap(entriesOf), ...examples]);
const named = await emitted();
const problems = [...alone.problems, ...all.problems, ...named];
if (problems.length > 0) {
  const host = {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => root,
    getNewLine: () => '\n',
  };
  console.error(ts.formatDiagnostics(problems, host));
  process.exitCode = 1;
}
console.log(`${all.files.length} files, ${problems.length} problems`);
