import { join } from 'node:path';
import { readJson, root } from '../workspaces.mjs';

export const name = 'types';
export const goal =
  'TypeScript 5.6, 6 and 7 check a program, with the module resolutions nodenext and bundler';

const { devDependencies } = readJson(root, 'package.json');

/** The oldest version of TypeScript that is supported, and the types of Node. */
export const dependencies = {
  'typescript-oldest': 'npm:typescript@~5.6.3',
  '@types/node': devDependencies['@types/node'],
};

const compilers = {
  5.6: ({ project }) => join(project, 'node_modules/typescript-oldest/bin/tsc'),
  [devDependencies.typescript]: () => join(root, 'node_modules/typescript/bin/tsc'),
  [devDependencies.typescript7.replace('npm:typescript@', '')]: () =>
    join(root, 'node_modules/typescript7/bin/tsc'),
};

const resolutions = {
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
};

const program = `
import { openFiles } from '@millrace/store';
import { createAgent, tool, type Agent, type Reply } from 'millrace';
import { sessions } from 'millrace/sessions';
import { openai } from '@millrace/openai';
import { scriptedModel } from 'millrace/testing';
import type { Observable } from 'rxjs';
import { z } from 'zod';

const weather = tool({
  name: 'weather',
  description: 'Returns the weather of a city.',
  input: z.object({ city: z.string(), days: z.number().optional() }),
  run: ({ city, days = 1 }) => city.toUpperCase() + days.toFixed(),
});
tool({
  name: 'wrong',
  description: 'Takes a number for a string.',
  input: z.object({ city: z.string() }),
  // @ts-expect-error -- the type of the input comes from the schema
  run: ({ city }: { city: number }) => city,
});
export const agent: Agent = createAgent({ model: openai('gpt-5-mini', { apiKey: 'sk-test' }), tools: [weather] });
export const reply$: Observable<Reply> = agent.call$('Hello');
const store = openFiles('kept');
export const session = sessions(agent, { memory: store.memory }).open('ada');
export const model = scriptedModel([]);
// @ts-expect-error -- a model is required
createAgent({ tools: [weather] });
`;

export async function rows(context) {
  const { entries, write, run } = context;
  write('types/program.ts', program);
  const imports = entries.map((entry, index) => `import * as entry${index} from '${entry}';`);
  const used = entries.map((_, index) => `entry${index}`).join(', ');
  write('types/entries.ts', `${imports.join('\n')}\nexport const entries = [${used}];\n`);
  const results = [];
  for (const [version, compilerIn] of Object.entries(compilers)) {
    for (const [resolution, options] of Object.entries(resolutions)) {
      const file = `types/tsconfig.${resolution}.json`;
      write(
        file,
        JSON.stringify({ compilerOptions: { ...common, ...options }, include: ['*.ts'] }),
      );
      const { code, output } = await run(process.execPath, [compilerIn(context), '-p', file]);
      const what = `TypeScript ${version} with ${resolution}`;
      results.push({ what, ...(code === 0 ? {} : { problem: output.slice(0, 4_000) }) });
    }
  }
  return results;
}

const common = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  // The declarations of other packages are not checked, as in most programs.
  skipLibCheck: true,
};
