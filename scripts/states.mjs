// Writes the states that sessions are saved as now into the corpus: `npm run states`. What is there already stays as it is.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const dist = new URL('../packages/core/dist/layers/sessions/', import.meta.url);
const { sampleStates } = await import(new URL('sample-sessions.test-support.js', dist));
const { stateVersion } = await import(new URL('session-state.js', dist));
const folder = join(import.meta.dirname, `../packages/core/corpus/states/v${stateVersion}`);
mkdirSync(folder, { recursive: true });
for (const [name, make] of Object.entries(sampleStates)) {
  const file = join(folder, `${name}.json`);
  if (existsSync(file)) continue;
  writeFileSync(file, `${JSON.stringify(await make(), null, 2)}\n`);
  console.log(`wrote ${file}`);
}
