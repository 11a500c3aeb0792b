// Builds the page with Vite, and embeds it in dist/page/assets.js. Does nothing if that is of the same sources.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const folder = import.meta.dirname;
const page = join(folder, 'src/page');
const output = join(folder, 'dist/page');
const stamp = join(output, 'sources.sha256');

/** A hash of all that Vite reads, and of the versions of what it bundles. */
function sources() {
  const files = readdirSync(page).filter((name) => !/\.test\.|\.test-support\./.test(name));
  const read = [...files.map((name) => join(page, name)), import.meta.filename];
  const lock = join(folder, '../../package-lock.json');
  const versions = existsSync(lock) ? Object.entries(JSON.parse(readFileSync(lock)).packages) : [];
  const bundled = /^node_modules\/(?:vite|preact|rxjs)$/;
  return [
    ...read.flatMap((file) => [file.slice(folder.length), readFileSync(file)]),
    ...versions.filter(([path]) => bundled.test(path)).map(([, { version }]) => version),
  ]
    .reduce((sum, part) => sum.update(part).update('\0'), createHash('sha256'))
    .digest('hex');
}

async function build() {
  const vite = await import('vite');
  const { output: files } = await vite.build({
    root: page,
    base: './',
    configFile: false,
    logLevel: 'error',
    // Its default is the build for older browsers.
    resolve: { conditions: ['es2015', 'module', 'browser'] },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      write: false,
      target: ['chrome123', 'firefox120', 'safari17.5'],
      modulePreload: false,
      reportCompressedSize: false,
      assetsInlineLimit: 0,
      rolldownOptions: {
        output: { entryFileNames: 'page-[hash].js', assetFileNames: 'page-[hash][extname]' },
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
  return `export const html = ${JSON.stringify(html)};\nexport const assets = ${JSON.stringify(assets, null, 1)};\n`;
}

const now = sources();
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== now) {
  const module = await build();
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, 'assets.js'), module);
  writeFileSync(stamp, now);
}
