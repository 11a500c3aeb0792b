import { describe, expect, it } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { lastValueFrom } from 'rxjs';
import { addTools, approval, type AgentEvent, type Reply, textOf, toolResults } from '../index.js';
import {
  inProcessSessions,
  keepSessions,
  type SessionState,
  sessions,
} from '../layers/sessions/index.js';
import {
  attach$,
  type CallStoreDriver,
  calls$,
  createCallStore,
  fork$,
  inProcessCalls,
  prune$,
  replay$,
  steps$,
} from './index.js';
import {
  type SampleJournal,
  sampleJournals,
  sampleProcess,
  type SampleWorld,
  typed,
} from './sample-journals.test-support.js';
import { all, write } from './stored-calls.test-support.js';

const corpus = join(import.meta.dirname, '../../corpus');

const namesIn = (folder: string): readonly string[] =>
  existsSync(join(corpus, folder))
    ? readdirSync(join(corpus, folder)).map((file) => `${folder}/${basename(file, '.json')}`)
    : [];

/** The samples of format 1, which never change, and those whose form is another one today. */
const paths = [...namesIn('journals'), ...namesIn('format-1/journals')];

/** A sample by its path, or by its name in the form of today. */
const read = (name: string): SampleJournal => {
  const path = paths.find((it) => it === name || basename(it) === name) ?? name;
  return JSON.parse(readFileSync(join(corpus, `${path}.json`), 'utf8')) as SampleJournal;
};

const names = [...new Set(paths.map((path) => basename(path)))].sort();

const driverOf = async ({ calls }: Pick<SampleJournal, 'calls'>): Promise<CallStoreDriver> => {
  const driver = inProcessCalls(() => 0);
  for (const [callId, records] of Object.entries(calls)) {
    const written = records.map(({ value, ...record }) => ({
      ...record,
      text: JSON.stringify(value),
    }));
    await write(driver, callId, written);
  }
  return driver;
};

const storeOf = async (name: string) => createCallStore(await driverOf(read(name)));

type Process = ReturnType<typeof sampleProcess>;

interface Outcome {
  /** Default: the agent resumes the call `c`. */
  readonly resume?: (process: Process, state: unknown) => Promise<Reply | undefined>;
  readonly reply: Partial<Record<'reason' | 'output', unknown>> & { readonly text: unknown };
  readonly world?: Pick<SampleWorld, 'onUncertain'>;
  /** What is done, by what was done before: a key is the same again. */
  readonly again?: readonly string[];
  readonly asked?: readonly string[];
  readonly requests?: number;
}

const bySession: Outcome['resume'] = ({ agent, durable }) =>
  durable.resume(sessions(agent).open('s'), 'c');

const byStore: Outcome['resume'] = async ({ agent, durable }, state) => {
  const store = inProcessSessions();
  await lastValueFrom(store.save$('s', state as SessionState, undefined));
  const session = await keepSessions(agent, store, { journal: durable }).open('s');
  const reply = await session.resume();
  const { messages, lastCall } = await session.saveState();
  expect(lastCall).toMatchObject({ callId: 'b', hasEnded: true });
  expect(messages.map(({ id }) => id)).toEqual([
    'a/input/0',
    'a/1',
    'b/input/0',
    'b/1',
    'b/1/results',
    'b/2',
  ]);
  expect((await session.call('And now?', { callId: 'd' })).reason).toBe('answer');
  return reply;
};

const rerun = { onUncertain: 'rerun' } as const;

const outcomes: Readonly<Record<string, Outcome>> = {
  finished: {
    reply: {
      text: /^Of finished: pay ann; look bob; A cat\.; .*to: must be string.*; No tool is named 'fly'.*$/s,
      reason: 'answer',
    },
  },
  'cut-in-a-tool': {
    reply: {
      text: /^Of cut-in-a-tool: pay ann; .*unknown.*; look cat; pay dan\.$/s,
      reason: 'answer',
    },
    again: ['look cat'],
    requests: 1,
  },
  'cut-in-an-answer': { reply: { text: 'Of cut-in-an-answer: pay ann.' }, requests: 1 },
  interrupted: { resume: bySession, reply: { text: 'Never mind.', reason: 'interrupted' } },
  failed: { reply: { text: 'Of failed: pay ann.' }, requests: 1 },
  'below-another': {
    reply: { text: 'Of below-another: pay ann; Of help: look eve; pay fay.; pay cat.' },
  },
  'cut-below': {
    world: rerun,
    reply: { text: 'Of cut-below: pay ann; Of help: look eve; pay fay..' },
    again: ['pay fay'],
    requests: 2,
  },
  approved: {
    world: rerun,
    resume: ({ agent, approver, durable }) =>
      durable.resume(agent, 'c', { use: [approval(approver)] }),
    reply: { text: /^Of approved: pay ann; refund bob; .*Not Eve.*$/s },
    again: ['refund bob'],
    requests: 1,
  },
  'waiting-for-approval': {
    reply: { text: 'Of waiting-for-approval: refund ann; pay bob.' },
    again: ['refund ann'],
    asked: ['ann'],
    requests: 1,
  },
  suspended: { resume: bySession, reply: { text: '', reason: 'suspended' } },
  steered: {
    world: rerun,
    resume: bySession,
    reply: { text: 'Of steered, And the weather?: pay ann; pay bob.' },
    again: ['pay bob'],
    requests: 1,
  },
  kept: {
    world: rerun,
    resume: byStore,
    reply: { text: 'Of A letter., kept: pay ann; pay bob.' },
    again: ['pay bob'],
    requests: 2,
  },
  'kept-long': {
    world: rerun,
    resume: byStore,
    reply: { text: 'Of A long letter. A lon, kept: pay ann; pay bob.' },
    again: ['pay bob'],
    requests: 2,
  },
  options: {
    world: rerun,
    reply: { text: 'Of I am Ann., options: pay ann.' },
    again: ['pay ann'],
    requests: 1,
  },
  typed: {
    world: rerun,
    resume: ({ agent, durable }) => durable.resume(agent, 'c', { use: [typed] }),
    reply: { text: '{"n":3}', output: { n: 3 } },
    again: ['pay ann'],
    requests: 1,
  },
  added: {
    world: rerun,
    resume: ({ added, agent, durable }) =>
      durable.resume(agent, 'c', { use: [addTools(...added)] }),
    reply: { text: 'Of added: pay ann.' },
    again: ['pay ann'],
    requests: 1,
  },
  informed: {
    world: rerun,
    resume: ({ informed, durable }) => durable.resume(informed, 'c'),
    reply: { text: /^Of .*, informed, .*: pay ann; pay bob\.$/s },
    again: ['pay bob'],
    // Of the second turn alone, and what is remembered of the call.
    asked: ['aside', 'record'],
    requests: 1,
  },
};

const seenIn = (events: readonly AgentEvent[]): readonly string[] =>
  events.map(({ seq, type }) => `${seq} ${type}`);

describe('the recorded calls', () => {
  it.each(Object.entries(sampleJournals))(
    'S4: have what is recorded now: %s',
    async (name, make) => {
      expect(await make()).toEqual(read(name));
    },
  );

  it('S6: have no other samples, and an outcome for each', () => {
    expect(names).toEqual(Object.keys(sampleJournals).sort());
    expect(Object.keys(outcomes).sort()).toEqual(names);
  });

  it.each(paths)('S6, S13: %s is resumed, and nothing is lost or done twice', async (path) => {
    const { effects, state, ...sample } = read(path);
    const name = basename(path);
    const { world, reply, resume, again = [], asked = [], requests = 0 } = outcomes[name] ?? {};
    const process = sampleProcess({
      ...world,
      question: name === 'kept-long' ? 'kept' : name,
      driver: await driverOf(sample),
    });
    const resumed =
      resume === undefined
        ? await process.durable.resume(process.agent, 'c')
        : await resume(process, state);
    if (resumed === undefined) throw new Error('It was not resumed.');
    const { text, ...rest } = reply ?? { text: undefined };
    expect(resumed).toMatchObject(rest);
    expect(textOf(resumed)).toEqual(text instanceof RegExp ? expect.stringMatching(text) : text);
    const keysBefore = effects.filter((effect) => again.some((it) => effect.startsWith(it)));
    const isNew = name === 'waiting-for-approval';
    if (isNew) expect(process.effects).toEqual([expect.stringContaining('refund ann c/u1')]);
    else expect(process.effects).toEqual(keysBefore);
    expect(process.asked).toEqual(asked);
    expect(process.requests).toHaveLength(requests);
  });

  it.each(paths)('S7, S13: %s is played back as it was seen', async (name) => {
    const store = await storeOf(name);
    for (const [callId, events] of Object.entries(read(name).seen)) {
      expect(seenIn(await all(replay$(store, callId)))).toEqual(events);
    }
  });

  it.each(['cut-in-a-tool', 'cut-in-an-answer', 'cut-below'])(
    'S7: who follows %s sees all that was there, and then all that comes, once',
    async (name) => {
      const { seen, ...sample } = read(name);
      const process = sampleProcess({ ...rerun, question: name, driver: await driverOf(sample) });
      const following = all(attach$(process.store, 'c'));
      await process.durable.resume(process.agent, 'c');
      const events = await following;
      expect(seenIn(events).slice(0, seen['c']?.length)).toEqual(seen['c']);
      expect(events.at(-1)?.type).toBe('postCall');
      const numbers = events.map(({ seq }) => seq);
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
      const { length = 0 } = seen['c'] ?? [];
      const later = await all(attach$(process.store, 'c', { afterSeq: length }));
      expect(later).toEqual(events.slice(length));
    },
  );

  it.each(['finished', 'below-another'])(
    'S7: %s is forked at each of its steps, to the same reply',
    async (name) => {
      const sample = read(name);
      const steps = await all(steps$(await storeOf(name), 'c'));
      const points = steps.map(({ id }) => id).filter((id) => /^(?:open|\d[\d/]*)$/.test(id));
      expect(points.length).toBeGreaterThan(4);
      for (const at of points) {
        const process = sampleProcess({ question: name, driver: await driverOf(sample) });
        await lastValueFrom(fork$(process.store, 'c', { at, callId: 'g' }));
        const [reply, before] = [
          await process.durable.resume(process.agent, 'g'),
          await process.durable.resume(process.agent, 'c'),
        ];
        expect([at, textOf(reply)]).toEqual([at, textOf(before)]);
      }
    },
  );

  it('S7: a fork that was made then is resumed', async () => {
    const sample = read('below-another');
    const process = sampleProcess({ question: 'below-another', driver: await driverOf(sample) });
    const reply = await process.durable.resume(process.agent, 'f');
    expect(textOf(reply)).toBe('Of below-another: pay ann; Of help: look eve; pay fay.; pay cat.');
    expect(process.effects).toEqual([expect.stringContaining('pay cat f/u3')]);
  });

  it.each(['finished', 'below-another'])(
    'S6: %s is resumed from each of its records',
    async (name) => {
      const { calls, effects } = read(name);
      const { c: records = [] } = calls;
      for (const [index, { kind }] of records.entries()) {
        if (kind === 'event') continue;
        const driver = await driverOf({ calls: { c: records.slice(0, index + 1) } });
        const process = sampleProcess({ ...rerun, question: name, driver });
        const reply = await process.durable.resume(process.agent, 'c');
        expect(textOf(reply)).toEqual(
          expect.stringMatching(new RegExp(outcomes[name]?.reply.text as string)),
        );
        const results = records
          .slice(0, index + 1)
          .flatMap(
            ({ value }) =>
              JSON.stringify(value).match(/(?<="executed":true.*"toolCallId":")\w+/g) ?? [],
          );
        const left = effects.filter((it) => !results.some((id) => it.includes(`/${id}`)));
        expect([index, process.effects.map(withoutSeed)]).toEqual([index, left.map(withoutSeed)]);
      }
    },
  );

  it.each([
    ['suspended', toolResults({ u1: 'by Ann' }), 'Of suspended: by Ann; pay ann.'],
    [
      'interrupted',
      'And now?',
      /^Of interrupted, And now\?: pay ann; Interrupted before it finished/,
    ],
  ])('S4: the session of %s continues', async (name, input, text) => {
    const { state, ...sample } = read(name);
    const process = sampleProcess({ question: name, driver: await driverOf(sample) });
    const session = sessions(process.agent).open('s');
    await session.loadState(state);
    const reply = await session.call(input, { callId: 'd' });
    expect(textOf(reply)).toEqual(expect.stringMatching(text));
    expect(process.effects).toEqual([]);
  });

  it('S6: what a call was asked with is asked again', async () => {
    const driver = await driverOf(read('options'));
    const process = sampleProcess({ ...rerun, question: 'options', driver });
    await process.durable.resume(process.agent, 'c');
    expect(process.requests[0]).toMatchObject({ temperature: 0.3, maxTokens: 500 });
  });

  it('S6: what a call was prepared with is asked again', async () => {
    const driver = await driverOf(read('informed'));
    const process = sampleProcess({ ...rerun, question: 'informed', driver });
    await process.durable.resume(process.informed, 'c');
    expect(process.requests[0]).toMatchObject({ temperature: 0.2, tools: [{ name: 'pay' }] });
  });

  it.each([
    ['approved', /use: \[approval\(…\)\]/],
    ['typed', /use: \[output\(…\)\]/],
    ['added', /'use'/],
  ])('S6: %s is not resumed without what JSON could not hold', async (name, why) => {
    const driver = await driverOf(read(name));
    const { agent, durable } = sampleProcess({ question: name, driver });
    await expect(durable.resume(agent, 'c')).rejects.toMatchObject({
      code: 'invalidResume',
      message: expect.stringMatching(why),
    });
  });

  it.each(paths)('S7, S13: %s is pruned, and nothing is left of it', async (name) => {
    const driver = await driverOf(read(name));
    const status = ['ended', 'failed', 'suspended', 'unfinished'] as const;
    await all(prune$(createCallStore(driver), { olderThanMs: 0, status }));
    expect(await all(driver.list$())).toEqual([[]]);
  });
});

const withoutSeed = (effect: string): string => effect.replace(/\/0[0-9a-f]{15}$/, '');

/** A sample in which one thing is written as no release writes it. */
const isRefused = async (
  name: string,
  step: string,
  change: (text: string) => string,
  why = /is damaged/,
) => {
  const { calls } = read(name);
  const { c = [] } = calls;
  const steps = c.filter(
    ({ kind, name: it }) => kind === 'step' && (it !== 'c/reply' || it === step),
  );
  const changed = steps.map((record) => {
    const value: unknown = JSON.parse(change(JSON.stringify(record.value)));
    return record.name === step ? { ...record, value } : record;
  });
  expect(changed).not.toEqual(steps);
  const driver = await driverOf({ calls: { c: changed } });
  const process = sampleProcess({ ...rerun, question: name, driver });
  const resumed = process.durable.resume(process.agent, 'c', {});
  await expect(resumed).rejects.toMatchObject({
    code: 'invalidState',
    message: expect.stringMatching(why),
  });
  expect([process.requests.length, process.effects]).toEqual([0, []]);
};

describe('a call of another form', () => {
  const swap = (from: string, to: string) => (text: string) => text.replaceAll(from, to);
  it.each([
    ['a block of its input', 'c/call', swap('"type":"text"', '"type":"prose"')],
    ['a tool use', 'c/1', swap('"tool_call"', '"tool_request"')],
    ['a block of an answer', 'c/1', swap('"type":"thinking"', '"type":"musing"')],
    ['a block of a result', 'c/1/0', swap('"type":"text"', '"type":"prose"')],
    ['the name of a tool use', 'c/1/0/intent', swap('"toolCall"', '"toolRequest"')],
    ['the use of a result', 'c/1/0', swap('"toolCallId"', '"toolRequestId"')],
    ['the end of an answer', 'c/2', swap('"answered"', '"done"')],
    ['a reason', 'c/reply', swap('"reason":"answer"', '"reason":1')],
  ])('S6: is refused, and nothing of it is done: %s', (_what, step, change) =>
    isRefused('finished', step, change),
  );

  it('S6: is refused where its history has a block that is not known', () =>
    isRefused('options', 'c/open', swap('"type":"text"', '"type":"prose"')));

  it.each([0, 2, '1', null])(
    'S4, S7: is refused by its version, everywhere: %j',
    async (version) => {
      const found = Number.isInteger(version)
        ? `format version ${version}`
        : 'an invalid format version';
      const why = `The call 'c' has ${found}, but this release of Millrace reads only format version 1.`;
      const change = swap('"version":1', `"version":${JSON.stringify(version)}`);
      await isRefused('finished', 'c/call', change, new RegExp(why));
      const { calls } = read('finished');
      const { c = [] } = JSON.parse(change(JSON.stringify(calls))) as typeof calls;
      const store = createCallStore(await driverOf({ calls: { c } }));
      const refusal = { code: 'invalidState', message: expect.stringContaining(why) };
      const reading = [replay$, attach$, steps$].map((read$) => read$(store, 'c'));
      for (const read$ of [...reading, fork$(store, 'c', { at: '1' })]) {
        await expect(all<unknown>(read$)).rejects.toMatchObject(refusal);
      }
      expect(await all(calls$(store))).toMatchObject([
        { status: 'unreadable', why: expect.stringContaining(why) },
      ]);
    },
  );
});
