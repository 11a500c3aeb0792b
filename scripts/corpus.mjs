// Writes the corpus: a small sample of everything that is stored, in the format of today. The tests load it, and compare it
// with what is stored now. Run it after `npm run build`, and look at what changed. The corpus of format 1 is never written: of calls
// and states, the corpus has those samples only whose form is another one than there.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

const packages = join(import.meta.dirname, '../packages');
const built = (path) => new URL(`../packages/${path}.test-support.js`, import.meta.url);
const { sampleJournals, sampleText } = await import(built('millrace/dist/journal/sample-journals'));
const { sampleStates } = await import(built('millrace/dist/layers/sessions/sample-sessions'));
const { formOfFiles, writeSampleFiles } = await import(built('store/dist/files/sample-files'));

await writeSamples('journals', sampleJournals, sampleText);
await writeSamples('states', sampleStates, (it) => `${JSON.stringify(it, null, 2)}\n`);
await writeFiles(join(packages, 'store/corpus/files'));

async function writeSamples(kind, samples, textOf) {
  const corpus = join(packages, 'millrace/corpus');
  rmSync(join(corpus, kind), { recursive: true, force: true });
  for (const [name, make] of Object.entries(samples)) {
    const sample = await make();
    if (isDeepStrictEqual(sample, sampleIn(join(corpus, 'format-1', kind, `${name}.json`))))
      continue;
    mkdirSync(join(corpus, kind), { recursive: true });
    writeFileSync(join(corpus, kind, `${name}.json`), textOf(sample));
  }
}

/** The sample in a file, if that exists. */
function sampleIn(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
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
