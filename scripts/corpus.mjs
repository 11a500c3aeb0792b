// Writes the corpus: a small sample of everything that is stored, in the format of today. The tests load it, and compare it
// with what is stored now. Run it after `npm run build`, and look at what changed. The corpus of format 1 is never written.
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const packages = join(import.meta.dirname, '../packages');
const built = (path) => new URL(`../packages/${path}.test-support.js`, import.meta.url);
const { sampleJournals, sampleText } = await import(built('millrace/dist/journal/sample-journals'));
const { sampleStates } = await import(built('millrace/dist/layers/sessions/sample-sessions'));
const { formOfFiles, writeSampleFiles } = await import(built('store/dist/files/sample-files'));

await writeSamples('millrace/corpus/journals', sampleJournals, sampleText);
await writeSamples(
  'millrace/corpus/states',
  sampleStates,
  (it) => `${JSON.stringify(it, null, 2)}\n`,
);
await writeFiles(join(packages, 'store/corpus/files'));

async function writeSamples(folder, samples, textOf) {
  const target = join(packages, folder);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const [name, make] of Object.entries(samples)) {
    writeFileSync(join(target, `${name}.json`), textOf(await make()));
  }
}

/** Ids and times differ each time, so the files are only replaced if their form has changed. */
async function writeFiles(target) {
  const directory = mkdtempSync(join(tmpdir(), 'files-'));
  await writeSampleFiles(directory);
  if (!isDeepStrictEqual(formOfFiles(directory), formOfFiles(target))) {
    rmSync(target, { recursive: true, force: true });
    cpSync(directory, target, { recursive: true });
  }
  rmSync(directory, { recursive: true });
}
