// Builds the pages of packages with Vite, and embeds each in dist/page/assets.js of its package. Does nothing for those
// that are of the same sources.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { readJson, root } from '../workspaces.mjs';

/** The packages with a page. */
const pages = readdirSync(join(root, 'packages'))
  .map((name) => join(root, 'packages', name))
  .filter((folder) => existsSync(join(folder, 'src/page/index.html')));

/** What a page may take from the framework: plain data. It is bundled from its sources, which need no build before. */
const values = join(root, 'packages/millrace/src/values');

/** A hash of all that Vite reads, and of the versions of what it may bundle. */
function sources(folder) {
  const files = [join(folder, 'src/page'), values]
    .flatMap((of) => readdirSync(of, { recursive: true, withFileTypes: true }))
    .filter((file) => file.isFile() && !/\.test\.|\.test-support\./.test(file.name))
    .map((file) => join(file.parentPath, file.name))
    .sort();
  const read = [...files, import.meta.filename];
  const lock = join(root, 'package-lock.json');
  const versions = existsSync(lock) ? Object.entries(readJson(lock).packages) : [];
  return [
    ...read.flatMap((file) => [relative(root, file), readFileSync(file)]),
    ...versions.map(([path, { version }]) => `${path} ${version}`),
  ]
    .reduce((sum, part) => sum.update(part).update('\0'), createHash('sha256'))
    .digest('hex');
}

/** The document, and scripts for pages of other sites: those keep their names, which are those of their elements. */
const isEntry = (name) => /^(?:index\.html|millrace-[\w-]+\.ts)$/.test(name);

async function build(folder) {
  const vite = await import('vite');
  const page = join(folder, 'src/page');
  const entries = readdirSync(page).filter(isEntry);
  const { output: files } = await vite.build({
    root: page,
    base: './',
    configFile: false,
    logLevel: 'error',
    // Its default is the build for older browsers.
    resolve: {
      conditions: ['es2015', 'module', 'browser'],
      alias: { 'millrace/values': join(values, 'index.ts') },
    },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      write: false,
      target: ['chrome123', 'firefox120', 'safari17.5'],
      modulePreload: false,
      reportCompressedSize: false,
      assetsInlineLimit: 0,
      rolldownOptions: {
        input: entries.map((name) => join(page, name)),
        output: {
          entryFileNames: ({ name }) =>
            name.startsWith('millrace-') ? '[name].js' : 'page-[hash].js',
          chunkFileNames: 'page-[hash].js',
          assetFileNames: 'page-[hash][extname]',
        },
      },
    },
  });
  const contents = (file) => (file.type === 'chunk' ? file.code : file.source);
  const html = String(contents(files.find(({ fileName }) => fileName === 'index.html')));
  const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };
  const assets = files
    .filter(({ fileName }) => fileName !== 'index.html')
    .map((file) => ({
      name: file.fileName,
      type: types[file.fileName.split('.').at(-1)],
      gzip: gzipSync(contents(file), { level: 9 }).toString('base64'),
    }));
  const bundled = files.flatMap(({ moduleIds = [] }) => moduleIds);
  const module = `export const html = ${JSON.stringify(html)};\nexport const assets = ${JSON.stringify(assets, null, 1)};\n`;
  return { module, licenses: licensesOf(bundled) };
}

/** The licenses of the libraries in a page, which go with it. */
function licensesOf(modules) {
  const folders = modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = readJson(join(folder, 'package.json'));
    const file = readdirSync(folder).find((it) => /^licen[cs]e/i.test(it));
    const text = file === undefined ? '' : `\n\n${readFileSync(join(folder, file), 'utf8').trim()}`;
    return `${name} ${version}, ${license}${text}\n`;
  });
  return texts.join('\n--------\n\n');
}

for (const folder of pages) {
  const output = join(folder, 'dist/page');
  const stamp = join(output, 'sources.sha256');
  const now = sources(folder);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === now) continue;
  const { module, licenses } = await build(folder);
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, 'assets.js'), module);
  writeFileSync(join(output, 'licenses.txt'), licenses);
  writeFileSync(stamp, now);
}
