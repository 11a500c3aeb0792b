// RAG over a folder of Markdown and a PDF. The index is in a database: after a restart, unchanged files are skipped.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAgent, textOf } from 'millrace';
import { citationsIn, retrieve } from 'millrace/retrieval';
import { scriptedModel, text } from 'millrace/testing';
import { documentsIn } from '@millrace/tools/documents';
import { documentIndex } from '@millrace/store/documents';
import { openSqlite } from '@millrace/store/sqlite';
import { lastValueFrom } from 'rxjs';

const folder = fileURLToPath(new URL('../handbook/', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'millrace-'));

for (const run of ['first', 'after a restart']) {
  const store = openSqlite(join(directory, 'index.db'));
  // Without an embedder: full text search. `embedder: offlineEmbedder()` adds search by meaning.
  const index = documentIndex(store, { name: 'handbook' });
  const progress = await lastValueFrom(index.add$(documentsIn(folder)));
  console.log(`${run}: ${progress.indexed} indexed, ${progress.unchanged} skipped`);

  // Stands for a language model: it cites the first passage that it is shown.
  const model = scriptedModel(() => [text('Lower both sluices, and leave [1].')]);
  const agent = createAgent({ model, use: [retrieve(index, { limit: 2 })] });
  const reply = await agent.call('What do I do in a storm?');
  const { cited } = citationsIn(textOf(reply), reply.sources ?? []);
  for (const { number, passage } of cited) {
    console.log(`[${number}] ${passage.source}: ${passage.text.replaceAll('\n', ' ')}`);
  }
  await lastValueFrom(store.close$(), { defaultValue: undefined });
}
rmSync(directory, { recursive: true });
