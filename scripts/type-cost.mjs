import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { node } from './run.mjs';
import { setUp } from './set-up.mjs';
import { root } from './workspaces.mjs';

const help = `npm run type-cost

Compiles an application with 100 tools, and the same one with none, with TypeScript 6 and 7, and prints what their
types cost. It exits with 1 when the application does not compile.`;

const compilers = [
  { name: 'TypeScript 6', path: 'node_modules/typescript/bin/tsc' },
  { name: 'TypeScript 7', path: 'node_modules/typescript7/bin/tsc' },
];
const sizes = [0, 100];

const config = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2023'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    noEmit: true,
  },
  include: ['*.ts'],
};

// Half of the tools have a schema of zod's, half a JSON Schema as it is written.
const zodTool = (n) => `
export const tool${n} = tool({
  name: 'tool_${n}',
  description: 'Does the work of number ${n}.',
  input: z.object({
    city: z.string().min(1),
    unit${n}: z.enum(['celsius', 'fahrenheit']).default('celsius'),
    days: z.array(z.object({ date: z.string(), hour: z.number().int().optional() })),
  }),
  run: ({ city, unit${n}, days }) =>
    \`\${city.toUpperCase()}: \${days.length} in \${unit${n} satisfies 'celsius' | 'fahrenheit'}\`,
});`;

const jsonTool = (n) => `
export const tool${n} = tool({
  name: 'tool_${n}',
  description: 'Does the work of number ${n}.',
  input: jsonSchema({
    type: 'object',
    properties: {
      city: { type: 'string' },
      unit${n}: { type: 'string', enum: ['celsius', 'fahrenheit'] },
      days: {
        type: 'array',
        items: {
          type: 'object',
          properties: { date: { type: 'string' }, hour: { type: 'integer' } },
          required: ['date'],
          additionalProperties: false,
        },
      },
    },
    required: ['city', 'unit${n}', 'days'],
    additionalProperties: false,
  }),
  run: ({ city, unit${n}, days }) =>
    \`\${city.toUpperCase()}: \${days.length} in \${unit${n} satisfies 'celsius' | 'fahrenheit'}\`,
});`;

const toolsFileOf = (size) => {
  const tools = Array.from({ length: size }, (_, n) => (n % 2 === 0 ? zodTool : jsonTool)(n));
  return `import { tool } from 'millrace';\nimport { jsonSchema } from 'millrace/schema';\nimport { z } from 'zod';\n${tools.join('\n')}\n`;
};

const appOf = (size) => `
import { createAgent, on, only, output } from 'millrace';
import { scriptedModel } from 'millrace/testing';
import { filter, map, type Observable } from 'rxjs';
import { z } from 'zod';
${size === 0 ? '' : "import * as tools from './tools.js';"}

const agent = createAgent({
  model: scriptedModel(),
  tools: ${size === 0 ? '[]' : 'Object.values(tools)'},
  use: [
    output(z.object({ answer: z.string(), sources: z.array(z.string()) })),
    on('preActing', filter((event) => event.toolCall.name !== 'tool_1')),
  ],
});
export const deltas$: Observable<string> = agent
  .stream$('Go on.')
  .pipe(only('reasoningChunk'), map(({ delta }) => delta));
export const answer$: Observable<string | undefined> = agent
  .call$('Go on.')
  .pipe(map(({ output }) => output?.answer));
`;

/** Writes an application to a folder of its own, lets it be worked with there, and removes it. */
async function withApp(size, work) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-type-cost-'));
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    writeFileSync(join(folder, 'app.ts'), appOf(size));
    if (size > 0) writeFileSync(join(folder, 'tools.ts'), toolsFileOf(size));
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const figures = ['Types', 'Instantiations', 'Check time', 'Total time'];

const figureIn = (output, name) => output.match(new RegExp(`^${name}:\\s+([\\d.]+)`, 'm'))?.[1];

async function compile({ name, path }, size) {
  process.stderr.write(`${name}, ${size} tools …\n`);
  const { code, output } = await withApp(size, (folder) =>
    node([path, '-p', folder, '--extendedDiagnostics'], { quiet: true }),
  );
  if (code !== 0)
    throw new Error(`${name} does not compile the app with ${size} tools:\n${output}`);
  return [name, String(size), ...figures.map((figure) => figureIn(output, figure) ?? '?')];
}

function print(rows) {
  const all = [['compiler', 'tools', ...figures.map((figure) => figure.toLowerCase())], ...rows];
  const widths = all[0].map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const pad = (cell, column) =>
    column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]);
  console.log(all.map((row) => row.map(pad).join('  ')).join('\n'));
  console.log('\nTimes are in seconds.');
}

async function main() {
  await setUp();
  const rows = [];
  for (const compiler of compilers) {
    for (const size of sizes) rows.push(await compile(compiler, size));
  }
  print(rows);
}

const args = process.argv.slice(2);
if (args.length > 0) {
  console.log(help);
  process.exitCode = args.every((arg) => ['--help', '-h'].includes(arg)) ? 0 : 2;
} else {
  await main().catch(({ message }) => {
    console.error(message);
    process.exitCode = 1;
  });
}
