// Writes what journals and stores in files record now into the corpus, as a form of its own, if it is not that of the newest form: `npm run journals`. What is there already stays as it is.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const packages = join(import.meta.dirname, '../packages');
const journals = join(packages, 'core/corpus/journals');
const { sampleJournals, sampleText } = await import(
  new URL('../packages/core/dist/journal/sample-journals.test-support.js', import.meta.url)
);
const forms = readdirSync(journals).flatMap((name) => /^f(\d+)$/.exec(name)?.[1] ?? []);
const newest = Math.max(...forms.map(Number));

const texts = [];
for (const [name, make] of Object.entries(sampleJournals)) {
  texts.push([`${name}.json`, sampleText(await make())]);
}
const isKnown = texts.every(([file, text]) => {
  const path = join(journals, `f${newest}`, file);
  return existsSync(path) && isDeepStrictEqual(JSON.parse(readFileSync(path)), JSON.parse(text));
});
if (isKnown) {
  console.log(`Calls are recorded as in f${newest}.`);
} else {
  const form = `f${newest + 1}`;
  mkdirSync(join(journals, form));
  for (const [file, text] of texts) writeFileSync(join(journals, form, file), text, { flag: 'wx' });
  writeFiles(join(packages, 'store/corpus/files', form));
  console.log(`Wrote ${form}. Say in the README of the corpus what is new in it.`);
}

function writeFiles(target) {
  const directory = mkdtempSync(join(tmpdir(), 'files-'));
  const sample = new URL(
    '../packages/store/dist/files/sample-files.test-support.js',
    import.meta.url,
  );
  const code = `await (await import(process.argv[1])).writeSampleFiles(process.argv[2])`;
  // It kills itself.
  spawnSync(process.execPath, ['--input-type=module', '-e', code, sample.href, directory]);
  const isKept = (path) => !/\.lock$|\.aside$/.test(path);
  cpSync(directory, target, { recursive: true, errorOnExist: true, force: false, filter: isKept });
  rmSync(directory, { recursive: true });
}
