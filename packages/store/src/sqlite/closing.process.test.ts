import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, jest } from '@jest/globals';
import { startProcess } from '../writing-process.test-support.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(120_000);

// The lease of a call is released when the call has ended, which may be while the store closes. Nothing else keeps the process.
const script = `
  import { join } from 'node:path';
  import { createAgent } from 'millrace';
  import { journal } from 'millrace/journal';
  import { scriptedModel, text } from 'millrace/testing';
  import { openSqlite } from '@millrace/store/sqlite';
  import { lastValueFrom } from 'rxjs';
  const [directory, when] = process.argv.slice(1);
  for (let round = 0; round < 25; round += 1) {
    const store = openSqlite(join(directory, round + '.db'));
    const close = () => lastValueFrom(store.close$(), { defaultValue: undefined });
    const agent = createAgent({ model: scriptedModel([text('Noted.')]), use: [journal(store.calls)] });
    if (when === 'after') await agent.call('?').then(close);
    else await new Promise((resolve, reject) => {
      agent.call$('?').subscribe({ error: reject, [when]: () => close().then(resolve, reject) });
    });
  }
  console.log('over');
`;

it.each(['next', 'complete', 'after'])(
  'S6: a store keeps the process until its thread has ended if it is closed on the end of a call (%s)',
  async (when) => {
    const root = await mkdtemp(join(tmpdir(), 'sqlite-closing-'));
    try {
      const { child, ended } = startProcess(script, [root, when]);
      const [[code], lines] = await Promise.all([once(child, 'exit'), ended]);
      // 13: the process waits for something, and nothing is left that could settle it.
      expect([code, ...lines]).toEqual([0, 'over']);
    } finally {
      await rm(root, { recursive: true });
    }
  },
);
