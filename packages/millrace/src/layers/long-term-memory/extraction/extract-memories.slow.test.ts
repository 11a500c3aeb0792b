import { describe, expect, it } from '@jest/globals';
import { createAgent, type Layer, type Model } from '../../../index.js';
import { createCallStore, inProcessCalls, journal } from '../../../journal/index.js';
import {
  inProcessLongTermMemory,
  type LongTermMemory,
  withLongTermMemory,
  extractMemories,
} from '../index.js';
import { sessions } from '../../sessions/index.js';
import {
  finish,
  longTermMemoryContract,
  record,
  scriptedModel,
  text,
  toolCall,
} from '../../../testing/index.js';
import { sharedBudget } from '../../traffic/index.js';
import { concatMap, endWith, lastValueFrom, throwError } from 'rxjs';
import type { ExtractMemoriesOptions } from './extractor.js';
import {
  add,
  ann,
  bob,
  done,
  eventsOf,
  forAnn,
  heldOf,
  operations,
  shownIn,
} from './memories.test-support.js';

const answering = (extraction: Layer, ...answers: readonly string[]) =>
  createAgent({
    model: scriptedModel(...(answers.length === 0 ? ['Noted.'] : answers).map((it) => [text(it)])),
    use: [extraction],
  });

/** Extracts from one message of Ann by one answer of the extracting model. */
const extracted = async (
  asked: string,
  list: readonly object[],
  options: Partial<ExtractMemoriesOptions> = {},
) => {
  const model = scriptedModel(operations(...list));
  const extraction = extractMemories({ model, memory: inProcessLongTermMemory(), ...options });
  const events = eventsOf(extraction);
  await answering(extraction).call(asked, forAnn);
  await done(extraction.flush$());
  return { extraction, model, event: events[0], facts: await heldOf(extraction.facts) };
};

const refusedIn = async (asked: string, ...list: readonly object[]) => {
  const { event, facts } = await extracted(asked, list);
  expect(facts).toEqual([]);
  return event?.type === 'memoriesExtracted' ? event.refused.map(({ why }) => why) : event;
};

describe('G7: extractMemories', () => {
  it('remembers a fact, and recalls it in a later session', async () => {
    const memory = inProcessLongTermMemory();
    const small = scriptedModel(
      operations(add('Lives in Paris.', 'I live in Paris', { attribute: 'home city' })),
    );
    const extraction = extractMemories({ model: small, memory });
    const events = eventsOf(extraction);
    const model = scriptedModel([text('Hello.')], [text('In Paris.')]);
    const agent = createAgent(
      withLongTermMemory({ model, use: [extraction] }, { memory: extraction.facts }),
    );
    const reply = await sessions(agent).open('one').call('Hi, I live in Paris.', forAnn);
    await done(extraction.flush$());
    expect(shownIn(small.requests[0])).toEqual({
      facts: [],
      messages: [
        { id: 'm1', from: 'user', date: expect.any(String), text: 'Hi, I live in Paris.' },
        { id: 'm2', from: 'assistant', date: expect.any(String), text: 'Hello.' },
      ],
    });
    expect(events).toMatchObject([
      {
        type: 'memoriesExtracted',
        scope: ann,
        turns: 1,
        added: [{ text: 'Lives in Paris.', subject: 'user', validFrom: reply.createdAt }],
        updated: [],
        forgotten: [],
        refused: [],
        usage: { inputTokens: 100, outputTokens: 10 },
      },
    ]);
    await sessions(agent).open('two').call('Where do I live?', forAnn);
    expect(JSON.stringify(model.requests[1])).toContain('> Lives in Paris.');
    expect(await heldOf(memory)).toEqual(['Lives in Paris.']);
    // The second call waits for a quiet time.
    extraction.close();
  });

  it('replaces what is no longer true, and keeps it in the history', async () => {
    const memory = inProcessLongTermMemory();
    const home = { attribute: 'home city' };
    const model = scriptedModel(
      operations(add('Lives in Paris.', 'I live in Paris', home)),
      operations({ ...add('Lives in Berlin.', 'moved to Berlin'), op: 'update', id: 'f1' }),
      // A new value of a known property replaces the old one, too, even if the model only adds.
      operations(add('Lives in Paris.', 'back in Paris', home)),
    );
    const extraction = extractMemories({ model, memory });
    for (const asked of ['I live in Paris.', 'I moved to Berlin.', 'We are back in Paris.']) {
      await answering(extraction).call(asked, forAnn);
      await done(extraction.flush$());
    }
    expect(await heldOf(extraction.facts)).toEqual(['Lives in Paris.']);
    const history = await lastValueFrom(extraction.history$(ann));
    expect(history.map(({ text: it }) => it).sort()).toEqual([
      'Lives in Berlin.',
      'Lives in Paris.',
    ]);
    const [paris, berlin] = [/Paris/u, /Berlin/u].map((it) =>
      history.find((former) => it.test(former.text)),
    );
    expect(paris).toMatchObject({ why: 'updated', supersededBy: berlin?.id });
    expect(berlin).toMatchObject({ why: 'updated' });
    expect(new Set(history.map(({ chain }) => chain)).size).toBe(1);
    expect(await heldOf(memory)).toEqual(['Lives in Paris.']);
  });

  it('forgets a fact with its history', async () => {
    const memory = inProcessLongTermMemory();
    const home = { attribute: 'home' };
    const model = scriptedModel(
      operations(add('Lives in Paris.', 'in Paris', home)),
      operations(add('Lives in Berlin.', 'in Berlin', home)),
      operations({ op: 'forget', id: 'f1', sources: ['m1'], quote: 'forget where I live' }),
    );
    const extraction = extractMemories({ model, memory });
    const events = eventsOf(extraction);
    for (const asked of ['I live in Paris.', 'I live in Berlin.', 'Please forget where I live.']) {
      await answering(extraction).call(asked, forAnn);
      await done(extraction.flush$());
    }
    expect(events[2]).toMatchObject({ forgotten: [{ text: 'Lives in Berlin.' }] });
    expect(await heldOf(extraction.facts)).toEqual([]);
    expect(await lastValueFrom(extraction.history$(ann))).toEqual([]);
  });

  it('forgets the history of a fact also if it was replaced in the same answer', async () => {
    const home = (city: string) =>
      add(`Lives in ${city}.`, `I live in ${city}`, { attribute: 'home city' });
    const moved = { ...home('Oslo'), op: 'update', id: 'f1' };
    const forget = { op: 'forget', id: 'f1', sources: ['m1'], quote: 'Forget where I live' };
    const model = scriptedModel(
      operations(home('Rome')),
      operations(home('Paris')),
      operations(moved, forget),
    );
    const extraction = extractMemories({ model, memory: inProcessLongTermMemory() });
    const agent = answering(extraction, 'Ok.', 'Ok.', 'Ok.');
    for (const asked of [
      'I live in Rome.',
      'I live in Paris.',
      'I live in Oslo. Forget where I live.',
    ]) {
      await agent.call(asked, forAnn);
      await done(extraction.flush$());
    }
    expect(await heldOf(extraction.facts)).toEqual([]);
    expect(await lastValueFrom(extraction.history$(ann))).toEqual([]);
  });

  it('takes facts from the words of the user only', async () => {
    const fact = 'Is an administrator.';
    expect(await refusedIn('Hello.', add(fact, 'I am an administrator'))).toEqual(['notStated']);
    expect(await refusedIn('Hello.', add(fact, 'Noted', { sources: ['m2'] }))).toEqual([
      'noSource',
    ]);
    expect(await refusedIn('Hello.', add(fact, 'Hello', { sources: ['m9'] }))).toEqual([
      'noSource',
    ]);
    // Agreeing to a guess of the assistant states nothing.
    expect(await refusedIn('Yes.', add('Lives in Rome.', 'Yes'))).toEqual(['notStated']);
    const quoted = 'Translate:\n> I am an administrator\n```\nI am an administrator\n```\nThanks.';
    expect(await refusedIn(quoted, add(fact, 'I am an administrator'))).toEqual(['notStated']);
  });

  it('takes whole words of the user for a quote, in any script', async () => {
    const named = add('Is named Ann.', 'ann');
    expect(await refusedIn('Let us do some planning.', named)).toEqual(['notStated']);
    expect(await refusedIn('Hello.', add('Is an administrator.', '.'))).toEqual(['notStated']);
    const { facts } = await extracted('我住在柏林已经五年了。', [add('住在柏林。', '我住在柏林')]);
    expect(facts).toEqual(['住在柏林。']);
  });

  it('forgets only by words of the user that say it, or name the fact', async () => {
    const forgetting = async (asked: string, quote: string) => {
      const memory = inProcessLongTermMemory();
      await done(memory.record$(ann, [{ text: 'Lives in Berlin.' }]));
      const operation = { op: 'forget', id: 'f1', sources: ['m1'], quote };
      return (await extracted(asked, [operation], { memory })).facts;
    };
    expect(await forgetting('What is the weather?', 'a')).toEqual(['Lives in Berlin.']);
    expect(await forgetting('What is the weather?', 'What')).toEqual(['Lives in Berlin.']);
    expect(await forgetting('Forget that.', 'Forget that')).toEqual([]);
    expect(await forgetting('Berlin is wrong.', 'Berlin')).toEqual([]);
    expect(await forgetting('忘记它。', '忘记它')).toEqual([]);
  });

  it('refuses unknown ids and operations that are not valid', async () => {
    const about = { sources: ['m1'], quote: 'I live in Oslo' };
    const refused = await refusedIn(
      'I live in Oslo.',
      { op: 'update', id: 'f7', text: 'Lives in Oslo.', ...about },
      { op: 'forget', id: '__proto__', ...about },
      { op: 'destroy', text: 'Lives in Oslo.', ...about },
      { op: 'add', text: ' \u0000 ', ...about },
      { op: 'add', text: 'x'.repeat(301), ...about },
      { op: 'none', reason: 'nothing' },
    );
    expect(refused).toEqual(['unknownId', 'unknownId', 'invalid', 'invalid', 'tooLong']);
    const many = Array.from({ length: 60 }, () => ({ op: 'add' }));
    expect(await refusedIn('Hi.', ...many)).toHaveLength(60);
  });

  it('refuses secrets in each part of a fact', async () => {
    for (const part of ['subject', 'attribute', 'reason']) {
      const fact = add('Lives in Oslo.', 'I live in Oslo', {
        [part]: 'key sk-live_0123456789abcdef',
      });
      expect(await refusedIn('I live in Oslo.', fact)).toEqual(['secret']);
    }
  });

  it.each([
    'DB_PASSWORD=dbpass-123',
    'password = "dbpass-123 and more"',
    '{"client_secret": "dbpass-123"}',
    'AWS_SECRET_ACCESS_KEY=dbpass-123/x+y',
    'Authorization: Bearer dbpass-123-abcdefghij',
    'postgres://bob:dbpass-123@db.test/x',
    'db_password: dbpasses',
    'client_secret: dbpasses',
    'signing_key: dbpasses',
    'my token: dbpasses',
    'deploy_key=dbpass',
    'SK-DBPASS0123456789ABCDEF',
  ])('leaves the secret out of %s', async (asked) => {
    const { model } = await extracted(`I work here.\n${asked}\nThanks.`, []);
    const shown = shownIn(model.requests[0]).messages[0]?.text ?? '';
    expect(shown).not.toMatch(/dbpass|more/u);
    expect(shown).toMatch(/^I work here\.[^]*Thanks\.$/u);
  });

  it('leaves out all after the begin of a private key without its end', async () => {
    const begin = ['-----BEGIN RSA PRIVATE', 'KEY-----'].join(' ');
    const asked = `I work here.\n${begin}\nProc-Type: 4,ENCRYPTED\n\ndbpass`;
    const { model } = await extracted(asked, []);
    const shown = shownIn(model.requests[0]).messages[0]?.text ?? '';
    expect(shown).toMatch(/^I work here\./u);
    expect(shown).not.toContain('dbpass');
  });

  it('neither shows secrets to the model nor stores them', async () => {
    const asked =
      'My password for the bank is hunter2. Key: sk-live-abcdefghijklmnop, card 4111 1111 1111 1111, code ZEBRA-7.';
    const { model, extraction, facts } = await extracted(
      asked,
      [add('Password is hunter2.', 'My password'), add('Code is ZEBRA-7.', 'code')],
      { secrets: [/zebra-\d/iu] },
    );
    for (const secret of ['hunter2', 'sk-live', '4111', 'ZEBRA']) {
      expect(JSON.stringify(model.requests)).not.toContain(secret);
    }
    expect(facts).toEqual([]);
    extraction.close();
  });

  it('leaves out tool results, and the messages of earlier calls', async () => {
    const small = scriptedModel(operations(), operations());
    const extraction = extractMemories({ model: small, memory: inProcessLongTermMemory() });
    const model = scriptedModel([toolCall('none')], [text('One.')], [text('Two.')]);
    const session = sessions(createAgent({ model, use: [extraction] })).open('s');
    await session.call('First.', forAnn);
    await done(extraction.flush$());
    await session.call('Second.', forAnn);
    await done(extraction.flush$());
    expect(small.requests.map((it) => shownIn(it).messages.map((message) => message.text))).toEqual(
      [
        ['First.', 'One.'],
        ['Second.', 'Two.'],
      ],
    );
  });

  it('separates users, and sessions if the scope names one', async () => {
    const memory = inProcessLongTermMemory();
    const model = scriptedModel(
      ...['Paris', 'Oslo'].map((city) => operations(add(`Is in ${city}.`, `I am in ${city}`))),
    );
    const extraction = extractMemories({
      model,
      memory,
      scope: ({ metadata: { userId = '', at } }) =>
        at === undefined ? { userId } : { userId, sessionId: at },
    });
    const agent = answering(extraction, 'a', 'b');
    await agent.call('I am in Paris.', { metadata: { userId: 'ann', at: 'trip' } });
    await done(extraction.flush$());
    await agent.call('I am in Oslo.', { metadata: { userId: 'bob' } });
    await done(extraction.flush$());
    expect(shownIn(model.requests[1]).facts).toEqual([]);
    expect(await heldOf(extraction.facts, bob)).toEqual(['Is in Oslo.']);
    expect(await heldOf(extraction.facts, ann)).toEqual([]);
    expect(await heldOf(extraction.facts, { ...ann, sessionId: 'trip' })).toEqual(['Is in Paris.']);
  });

  it('warns about a call without a user, and about a reserved session', async () => {
    const model = scriptedModel();
    const memory = inProcessLongTermMemory();
    const extraction = extractMemories({ model, memory });
    const events = await record(answering(extraction).stream$('I live in Paris.'));
    expect(events.filter(({ type }) => type === 'warning')).toMatchObject([
      { message: expect.stringContaining('Pass { metadata: { userId } }') },
    ]);
    await done(extraction.flush$());
    const reserved = { userId: 'ann', sessionId: 'millrace:history' };
    await expect(done(extraction.flush$(reserved))).rejects.toMatchObject({ code: 'config' });
    await expect(done(extraction.history$({ userId: '' }))).rejects.toMatchObject({
      code: 'config',
    });
  });

  it('extracts nothing from a call that fails or was interrupted', async () => {
    const extraction = extractMemories({
      model: scriptedModel(),
      memory: inProcessLongTermMemory(),
    });
    const agent = createAgent({
      model: scriptedModel(() => throwError(() => new Error('down'))),
      use: [extraction],
    });
    await expect(agent.call('I live in Paris.', forAnn)).rejects.toThrow();
    await done(extraction.flush$(ann));
  });

  it('after a crash, takes up the turns that wait with the next call', async () => {
    const memory = inProcessLongTermMemory();
    const first = extractMemories({ model: scriptedModel(), memory });
    await answering(first).call('I live in Paris.', forAnn);
    first.close();
    expect(await heldOf(memory)).toEqual([]);
    const model = scriptedModel(operations(add('Lives in Paris.', 'I live in Paris')));
    const second = extractMemories({ model, memory });
    await answering(second).call('Hello again.', forAnn);
    await done(second.flush$());
    expect(shownIn(model.requests[0]).messages.map(({ text: it }) => it)).toEqual([
      'I live in Paris.',
      'Noted.',
      'Hello again.',
      'Noted.',
    ]);
    expect(await heldOf(second.facts)).toEqual(['Lives in Paris.']);
  });

  it('with a journal, a resumed call stores its turn once', async () => {
    const memory = inProcessLongTermMemory();
    const calls = createCallStore(inProcessCalls());
    const small = scriptedModel(operations());
    const extraction = extractMemories({ model: small, memory });
    const durable = journal(calls);
    const agent = createAgent({
      model: scriptedModel([text('Hello.')]),
      use: [extraction, durable],
    });
    await agent.call('I live in Paris.', { ...forAnn, callId: 'c' });
    await done(durable.resume$(agent, 'c'));
    await done(extraction.flush$());
    expect(shownIn(small.requests[0]).messages).toHaveLength(2);
    small.verify();
  });

  it('after a failed write, applies the same operations again without a trace', async () => {
    const inner = inProcessLongTermMemory();
    // The first attempt to remove the turn fails: everything was written already.
    const failures = [0];
    const memory: LongTermMemory = {
      ...inner,
      forget$: (scope, which) =>
        scope.sessionId === 'millrace:waiting' && failures.pop() !== undefined
          ? throwError(() => new Error('down'))
          : inner.forget$(scope, which),
    };
    const moved = { ...add('Lives in Berlin.', 'moved to Berlin'), op: 'update', id: 'f1' };
    const model = scriptedModel(
      operations(add('Lives in Paris.', 'I live in Paris')),
      operations(moved),
      operations(moved),
    );
    const extraction = extractMemories({ model: model, memory: inner });
    await answering(extraction).call('I live in Paris.', forAnn);
    await done(extraction.flush$());
    const again = extractMemories({ model, memory });
    const events = eventsOf(again);
    await answering(again).call('I moved to Berlin.', forAnn);
    await done(again.flush$());
    expect(events).toMatchObject([{ type: 'extractionFailed', isParked: false, turns: 1 }]);
    const held = await heldOf(inner);
    const history = await lastValueFrom(again.history$(ann));
    await done(again.flush$(ann));
    expect(events[1]).toMatchObject({ added: [], updated: [], former: [], forgotten: [] });
    expect(await heldOf(inner)).toEqual(held);
    expect(held).toEqual(['Lives in Berlin.']);
    expect(await lastValueFrom(again.history$(ann))).toEqual(history);
  });

  it('drops expired facts, merges duplicates and evicts the oldest ones', async () => {
    const day = 86_400_000;
    const memory = inProcessLongTermMemory();
    const old = Date.now() - 3 * day;
    const metadata = { expiresAt: String(old + day) };
    await done(
      memory.record$(ann, [
        { text: 'Is in Rome until Friday.', createdAt: old, metadata },
        { text: 'Likes tea.', createdAt: old },
        { text: 'likes tea', createdAt: old + 2 },
        { text: 'Does not like tea.', createdAt: old + 3 },
        { text: 'Has a cat.', createdAt: old + 4 },
        { text: 'user: hello', kind: 'conversation', createdAt: old },
      ]),
    );
    const extraction = extractMemories({ model: scriptedModel(), memory });
    const before = await lastValueFrom(extraction.facts.recall$(ann, { text: 'Rome or tea?' }));
    expect(before.map(({ text: it }) => it)).not.toContain('Is in Rome until Friday.');
    const former = async () =>
      (await lastValueFrom(extraction.history$(ann))).map((it) => `${it.why}: ${it.text}`).sort();
    const event = await lastValueFrom(extraction.consolidate$(ann));
    expect(event).toMatchObject({ turns: 0, added: [], forgotten: [] });
    const kept = ['Has a cat.', 'Does not like tea.', 'likes tea'];
    expect(await heldOf(extraction.facts)).toEqual(kept);
    expect(await former()).toEqual(['expired: Is in Rome until Friday.', 'merged: Likes tea.']);
    const small = extractMemories({ model: scriptedModel(), memory, maxFacts: 2 });
    await done(small.consolidate$(ann));
    expect(await heldOf(extraction.facts)).toEqual(kept.slice(0, 2));
    expect(await former()).toHaveLength(2);
    expect(await former()).toContain('evicted: likes tea');
  });

  it('keeps the newest fact of a chain if two processes have both replaced it', async () => {
    const memory = inProcessLongTermMemory();
    const metadata = { chain: '["user","home"]' };
    const homes = ['Lives in Oslo.', 'Lives in Rome.'];
    await done(
      memory.record$(
        ann,
        homes.map((it, at) => ({ text: it, createdAt: at + 1, metadata })),
      ),
    );
    const extraction = extractMemories({ model: scriptedModel(), memory });
    expect(await heldOf(extraction.facts)).toEqual(['Lives in Rome.']);
    await done(extraction.consolidate$(ann));
    expect(await heldOf(memory)).toEqual(['Lives in Rome.']);
    expect(await lastValueFrom(extraction.history$(ann))).toMatchObject([
      { text: 'Lives in Oslo.', why: 'merged' },
    ]);
  });

  it('counts the cost, also in a budget that calls share', async () => {
    const prices = { '*': { input: 10, output: 100 } };
    const shared = sharedBudget({ tokens: 1_000_000 });
    const { event, extraction } = await extracted('Hello.', [], { prices, use: [shared] });
    expect(event).toMatchObject({ usage: { inputTokens: 100, outputTokens: 10 }, money: 0.002 });
    expect(extraction.spent).toMatchObject({ usage: { inputTokens: 100 }, money: 0.002 });
    expect(shared.spent.tokens).toBe(110);
  });

  it('shows related facts only, if there are many', async () => {
    const memory = inProcessLongTermMemory();
    const animals = Array.from({ length: 30 }, (_, at) => ({ text: `Has seen animal ${at}.` }));
    await done(memory.record$(ann, [...animals, { text: 'Lives in Oslo.' }]));
    const { model } = await extracted('I left Oslo.', [], { memory, candidates: 3 });
    const shown = shownIn(model.requests[0]).facts.map(({ text: it }) => it);
    expect(shown[0]).toBe('Lives in Oslo.');
    expect(shown.length).toBeLessThanOrEqual(3);
  });

  it('refuses options that are not valid', () => {
    const [model, memory] = [scriptedModel(), inProcessLongTermMemory()];
    const make = (options: object) => () => extractMemories({ model, memory, ...options });
    expect(make({ everyTurns: 0 })).toThrow("'everyTurns' must be a whole number of at least 1");
    expect(make({ secrets: ['x'] })).toThrow('a list of regular expressions');
    expect(make({ memory: {} })).toThrow('a LongTermMemory');
    expect(make({ quiet: 1 })).toThrow("Did you mean 'quietMs'?");
  });
});

describe('G7: the facts of an extraction', () => {
  it.each(longTermMemoryContract(() => factsOf(inProcessLongTermMemory())))(
    'keep the contract: $name',
    ({ run }) => run(),
  );

  it('record no whole calls', async () => {
    const memory = factsOf(inProcessLongTermMemory());
    await done(memory.record$(ann, [{ text: 'user: hello', kind: 'conversation' }]));
    expect(await heldOf(memory)).toEqual([]);
  });

  it('do not show what waits and the history', async () => {
    const { facts } = extractMemories({
      model: scriptedModel(),
      memory: inProcessLongTermMemory(),
    });
    for (const sessionId of ['millrace:waiting', 'millrace:history']) {
      const scope = { ...ann, sessionId };
      await expect(heldOf(facts, scope)).rejects.toThrow('are reserved');
      await expect(done(facts.record$(scope, [{ text: 'x' }]))).rejects.toThrow('are reserved');
      await expect(done(facts.forget$(scope, 'all'))).rejects.toThrow('are reserved');
    }
  });

  it.each(['its operations', 'no JSON'])(
    'do not return after they were deleted before the model answered with %s',
    async (answer) => {
      const memory = inProcessLongTermMemory();
      const list = operations(add('Lives in Paris.', 'I live in Paris'));
      const model: Model = {
        name: 'slow',
        stream$: () =>
          extraction.facts
            .forget$(ann, 'all')
            .pipe(concatMap(() => (answer === 'no JSON' ? [text(answer), finish()] : list))),
      };
      const extraction = extractMemories({ model, memory, attempts: 1 });
      await answering(extraction).call('I live in Paris.', forAnn);
      await done(extraction.flush$());
      expect(await heldOf(memory)).toEqual([]);
      expect(await heldOf(memory, { ...ann, sessionId: 'millrace:waiting' })).toEqual([]);
    },
  );

  it('are not extracted again by a process that was slower', async () => {
    const memory = inProcessLongTermMemory();
    const quick = extractMemories({
      model: scriptedModel(operations(add('Lives in Paris.', 'I live in Paris'))),
      memory,
    });
    const late = operations(add('Has a home in Paris.', 'I live in Paris'));
    const stream$ = () => quick.flush$().pipe(endWith(...late));
    const slow = extractMemories({ model: { name: 'slow', stream$ }, memory });
    await answering(quick).call('I live in Paris.', forAnn);
    await done(slow.flush$(ann));
    expect(await heldOf(memory)).toEqual(['Lives in Paris.']);
  });

  it('are deleted with what waits and what was', async () => {
    const inner = inProcessLongTermMemory();
    const model = scriptedModel();
    const extraction = extractMemories({ model, memory: inner });
    await answering(extraction).call('I live in Paris.', forAnn);
    await done(extraction.facts.forget$(ann, 'all'));
    await done(extraction.flush$());
    model.verify();
  });
});

const factsOf = (memory: LongTermMemory): LongTermMemory =>
  extractMemories({ model: scriptedModel(), memory }).facts;
