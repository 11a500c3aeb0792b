import { readFile, rm } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

/** What processes run, as one file: it starts in a third of the time that its many modules take. */
export interface Program {
  readonly path: string;
  remove(): Promise<void>;
}

/** Writes that file, of one below `dist`. It needs this package to be built. */
export const bundleLife = async (entry = 'life/process.js'): Promise<Program> => {
  const dist = new URL('../../dist/', import.meta.url);
  // Beside the others: what is not in it is found from there.
  const path = fileURLToPath(new URL(`life-${process.pid}-${Date.now()}.mjs`, dist));
  await build({
    entryPoints: [fileURLToPath(new URL(entry, dist))],
    outfile: path,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
    plugins: [inPlace],
    // DBOS asks for some packages only if it is configured to log elsewhere.
    external: ['@electric-sql/*', 'pg-native', '@opentelemetry/*', 'winston', 'winston-transport'],
    // What is written for CommonJS asks for modules of Node while it runs.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
  return { path, remove: () => rm(path, { force: true }) };
};

/** Modules of the store find the program of their thread beside them. */
const inPlace: Plugin = {
  name: 'in place',
  setup: (building) => {
    building.onLoad(
      { filter: /packages[\\/]store[\\/]dist[\\/]bundle[\\/].*\.js$/ },
      async ({ path }) => ({
        contents: (await readFile(path, 'utf8')).replaceAll(
          'import.meta.url',
          JSON.stringify(pathToFileURL(path).href),
        ),
      }),
    );
  },
};
