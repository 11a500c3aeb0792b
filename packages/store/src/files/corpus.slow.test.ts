import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createAgent, textOf, tool } from 'millrace';
import { attach$, calls$, journal, prune$, replay$ } from 'millrace/journal';
import { keepSessions, sessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { openFiles } from './open-files.js';
import { formOfFiles, writeSampleFiles } from './sample-files.test-support.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

const corpus = join(import.meta.dirname, '../../corpus');

it('S4: what is stored now has the format of the corpus', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'corpus-'));
  await writeSampleFiles(directory);
  expect(formOfFiles(directory)).toEqual(formOfFiles(join(corpus, 'files')));
  await rm(directory, { recursive: true });
});

// Those of today, and those of format 1, which never change.
describe.each(['files', 'format-1/files'])('the stored %s', (stored) => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'corpus-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  /** A process that uses them. */
  const opened = async (...answers: readonly ScriptedAnswer[]) => {
    await cp(join(corpus, stored), directory, { recursive: true });
    const store = openFiles(directory);
    const model = scriptedModel(...answers);
    const paid: string[] = [];
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      run: (_, { idempotencyKey }) => (paid.push(idempotencyKey), 'Paid.'),
    });
    const durable = journal(store.calls, { onUncertain: 'rerun' });
    const agent = createAgent({ name: 'sample', model, tools: [pay], use: [durable] });
    return { agent, durable, model, paid, store };
  };

  it('G2, S13: have the conversation that continues', async () => {
    const { agent, model, store } = await opened([text('Still here.')]);
    const session = sessions(agent, { memory: store.memory }).open('chat');
    expect((await session.call('Are you there?')).reason).toBe('answer');
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['Hi.', 'Hello.', 'Are you there?']);
    await lastValueFrom(store.close$(), { defaultValue: undefined });
  });

  it('S3, S6, S13: have the state of a session, and the call that it lacks', async () => {
    const { agent, durable, model, paid, store } = await opened([text('Paid it.')], [text('Bye.')]);
    const kept = await keepSessions(agent, store.sessions, { journal: durable }).open('kept/ü');
    const reply = await kept.resume();
    expect(reply && textOf(reply)).toBe('Paid it.');
    expect(paid).toEqual([expect.stringMatching(/^c\/1\/u1/)]);
    expect(model.requests).toHaveLength(1);
    await kept.call('Bye.');
    const { messages, lastCall } = await kept.saveState();
    expect(messages.map(textOf)).toEqual([
      'Hi.',
      'Hello again.',
      'Pay.',
      '',
      '',
      'Paid it.',
      'Bye.',
      'Bye.',
    ]);
    expect(lastCall).toMatchObject({ hasEnded: true });
    await lastValueFrom(store.close$(), { defaultValue: undefined });
  });

  it('S7, S13: have calls that are listed, played back, followed and pruned', async () => {
    const { store } = await opened();
    const all = await lastValueFrom(calls$(store.calls).pipe(toArray()));
    expect(all.map(({ callId, status }) => `${callId} ${status}`).sort()).toEqual([
      'a ended',
      'b ended',
      'c/1 unfinished',
    ]);
    const replayed = await lastValueFrom(replay$(store.calls, 'c/1').pipe(toArray()));
    const types = ['preCall', 'preReasoning', 'reasoningChunk', 'postReasoning', 'preActing'];
    expect(replayed.map(({ type }) => type)).toEqual(types);
    const followed = await lastValueFrom(
      attach$(store.calls, 'a', { afterSeq: 1 }).pipe(toArray()),
    );
    expect(followed.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
    const session = await lastValueFrom(
      store.calls.driver.list$({ sessionId: 'kept/ü' }).pipe(toArray()),
    );
    expect(session.flat().map(({ callId }) => callId)).toEqual(['c/1', 'b']);
    const status = ['ended', 'unfinished'] as const;
    await lastValueFrom(prune$(store.calls, { olderThanMs: 0, status }).pipe(toArray()));
    const left = await readdir(join(directory, 'calls'));
    expect(left.filter((name) => !name.startsWith('.'))).toEqual([]);
    await lastValueFrom(store.close$(), { defaultValue: undefined });
  });
});
