import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { endWith, lastValueFrom, map, mergeMap, take, toArray } from 'rxjs';
import { createAgent, tool } from '../index.js';
import { journalContract } from '../testing/journal-contract.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { attach$ } from './attach.js';
import { createCallStore } from './call-store.js';
import type { CallStoreDriver, StoredRecord } from './call-store-driver.js';
import { calls$ } from './call-summary.js';
import { inProcessCalls } from './in-process-calls.js';
import { journal } from './journal.js';
import { type RecordSeal, sealedRecords } from './sealed-records.js';

/** AES-256-GCM, bound to the call. */
const encrypted = (key: Buffer): RecordSeal => ({
  seal: (plain, callId) => {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(callId));
    const body = Buffer.concat([cipher.update(plain, 'utf16le'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64');
  },
  open: async (sealed, callId) => {
    const bytes = Buffer.from(sealed, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
      .setAAD(Buffer.from(callId))
      .setAuthTag(bytes.subarray(12, 28));
    const body = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]);
    return Promise.resolve(body.toString('utf16le'));
  },
});
const key = randomBytes(32);
const textsIn = (driver: CallStoreDriver, callId: string) =>
  lastValueFrom(
    driver.read$(callId).pipe(
      toArray(),
      map((batches) => batches.flat().map((it: StoredRecord) => it.text)),
    ),
  );

describe('a sealed store', () => {
  for (const { name, run } of journalContract(() => ({
    first: sealedRecords(inProcessCalls(), encrypted(key)),
  }))) {
    it(`S6: ${name}`, run);
  }

  const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'paid to account Heron' });
  const asked = async (driver: CallStoreDriver, seal: RecordSeal) => {
    const durable = journal(createCallStore(driver, { seal }));
    const model = scriptedModel([toolCall('pay')], [text('Paid from account Heron.')]);
    const agent = createAgent({ model, tools: [pay], use: [durable] });
    await agent.call('My account is Heron.', { callId: 'a' });
    return { durable, agent };
  };

  it('X10: shows nothing of a call to who reads the store, and all to its holder', async () => {
    const driver = inProcessCalls();
    const { durable, agent } = await asked(driver, encrypted(key));

    expect((await textsIn(driver, 'a')).join('')).not.toContain('Heron');
    const { store } = durable;
    await expect(durable.resume(agent, 'a')).resolves.toMatchObject({ reason: 'answer' });
    const events = await lastValueFrom(attach$(store, 'a').pipe(toArray()));
    expect(events.at(-1)).toMatchObject({ type: 'postCall' });
    expect(await lastValueFrom(calls$(store).pipe(toArray()))).toHaveLength(1);
  });

  const damage: readonly (readonly [string, (texts: readonly string[]) => readonly string[]])[] = [
    ['changed', ([first = '', ...rest]) => [first.replace(/.{9}"/u, 'AAAAAAAAA"'), ...rest]],
    ['in clear text', ([, ...rest]) => ['{"version":1}', ...rest]],
  ];
  it.each(damage)('S4: refuses a record that is %s', async (_, change) => {
    const driver = inProcessCalls();
    const { durable, agent } = await asked(driver, encrypted(key));
    const records = await lastValueFrom(driver.read$('a'));
    const texts = change(records.map((it) => it.text));
    await lastValueFrom(driver.remove$('a'));
    const changed = records.map(({ position: __, ...it }, at) => ({
      ...it,
      text: texts[at] ?? '',
    }));
    const appended$ = driver.claim$('a').pipe(
      mergeMap(({ append$ }) => append$(changed).pipe(endWith(0))),
      take(1),
    );
    await lastValueFrom(appended$);

    await expect(durable.resume(agent, 'a')).rejects.toMatchObject({
      code: 'invalidState',
      message: expect.stringContaining("'seal' that it was written with"),
    });
  });

  it('S4: refuses another key, and the records of another call', async () => {
    const driver = inProcessCalls();
    const { agent } = await asked(driver, encrypted(key));
    const other = journal(createCallStore(driver, { seal: encrypted(randomBytes(32)) }));
    await expect(other.resume(agent, 'a')).rejects.toMatchObject({ code: 'invalidState' });

    const moved: CallStoreDriver = { ...driver, read$: () => driver.read$('a') };
    const mixed = journal(createCallStore(moved, { seal: encrypted(key) }));
    await expect(mixed.resume(agent, 'b')).rejects.toMatchObject({ code: 'invalidState' });
  });
});
