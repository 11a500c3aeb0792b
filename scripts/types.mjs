// TypeScript 7 compiles the packages. This reads their declarations, and the examples, as a program in TypeScript 6 would.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
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
    declarationMap: false,
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

// Features add to the types of the main entry, so it is compiled without them, too.
const alone = compile([join(root, 'scripts/types/core-alone.mts')]);
const all = compile([...workspaces(root).flatMap(entriesOf), ...examples]);
const problems = [...alone.problems, ...all.problems];
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
