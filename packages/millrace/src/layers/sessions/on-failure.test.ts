import { describe, expect, it } from '@jest/globals';
import { catchError, lastValueFrom, NEVER, of, tap, throwError } from 'rxjs';
import {
  type AgentOptions,
  type CallOptions,
  createAgent,
  inProcessMemory,
  type Memory,
  type MemoryFactory,
  type Model,
  type ModelChunk,
  textOf,
  tool,
} from '../../index.js';
import { createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import { inputAndAnswer, wrapMemory } from '../../memories/index.js';
import { storeMemory, withoutPhase } from '../../phases/index.js';
import { maxInputLength } from '../guards/index.js';
import { unpaired } from '../../values/pairing.js';
import { marbles, scriptedModel, text, toolCall } from '../../testing/index.js';
import { sessions } from './index.js';
import type { SessionCallOptions } from './sessions.js';

const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' });
const hang = tool({ name: 'hang', description: 'Hangs.', run: () => NEVER });
const down = () => throwError(() => new Error('Down.'));
/** An agent that stores inputs and answers at the end of a call. */
const storingAnswers = (options: AgentOptions): AgentOptions => ({
  ...options,
  use: [
    maxInputLength({ characters: 32_000 }),
    wrapMemory('answers', inputAndAnswer),
    withoutPhase(storeMemory),
  ],
});
/** Answers with these chunks, then fails. */
const failing = (...scripts: readonly (readonly ModelChunk[])[]): Model => {
  const model = scriptedModel(...scripts.map((chunks) => [...chunks]));
  return {
    ...model,
    stream$: (...asked) =>
      model.requests.length < scripts.length ? model.stream$(...asked) : down(),
  };
};

const stored = async (memory: MemoryFactory) => {
  const messages = await lastValueFrom(memory('s').load$());
  expect(unpaired(messages)).toBeUndefined();
  return messages.map(({ role, content }) =>
    [
      role,
      ...content.flatMap((block) => (block.type === 'tool_result' ? [textOf(block)] : [])),
    ].join(' '),
  );
};

const fail = async (
  options: AgentOptions,
  call: CallOptions & SessionCallOptions = {},
  memory = inProcessMemory(),
) => {
  const session = sessions(createAgent(options), { memory }).open('s');
  await expect(session.call('Pay Ann.', call)).rejects.toThrow();
  return { memory, session };
};

describe('a session whose call fails', () => {
  it('S10: keeps what the user said, and the next call works', async () => {
    const { memory, session } = await fail({ model: failing() });
    expect(await stored(memory)).toEqual(['user']);
    const model = scriptedModel([text('Yes.')]);
    await session.call('Did you?', { model });
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['Pay Ann.', 'Did you?']);
    expect(await stored(memory)).toEqual(['user', 'user', 'assistant']);
  });

  it.each<[string, (options: AgentOptions) => AgentOptions]>([
    ['a plain agent', (options) => options],
    ['an agent that stores answers', storingAnswers],
  ])('S10: keeps the tool calls of %s, so that the next call knows of them', async (_, of) => {
    const options = of({ model: failing([toolCall('pay')]), tools: [pay] });
    const { memory, session } = await fail(options);
    expect(await stored(memory)).toEqual(['user', 'assistant', 'tool Paid.']);
    const model = scriptedModel([text('Yes.')], [text('Bye.')]);
    await session.call('Did you?', { model });
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('Paid.');
    await session.call('Thanks.', { model });
    expect(model.requests).toHaveLength(2);
  });

  it('S10, C5: keeps the tool calls that were done when time was up, and says what is not known', () => {
    marbles(({ scheduler, flush }) => {
      const memory = inProcessMemory();
      const model = scriptedModel([toolCall('pay'), toolCall('hang')]);
      const agent = createAgent({ model, tools: [pay, hang] });
      const call$ = sessions(agent, { memory })
        .open('s')
        .call$('Pay Ann.', {
          scheduler,
          limits: { timeouts: { callMs: 20 } },
        });
      let failed: unknown;
      call$.subscribe({ error: (error: unknown) => (failed = error) });
      flush();
      expect(failed).toMatchObject({ code: 'timeout' });
      let results: readonly string[] = [];
      memory('s')
        .load$()
        .subscribe((messages) => {
          expect(unpaired(messages)).toBeUndefined();
          results = messages.flatMap(({ role, content }) =>
            role === 'tool' ? content.map((it) => textOf(it)) : [],
          );
        });
      expect(results).toEqual(['Paid.', expect.stringContaining('may have run')]);
    });
  });

  it('S10: with discard, keeps nothing that was not stored before', async () => {
    const options = { model: failing([toolCall('pay')]), tools: [pay] };
    const { memory } = await fail(storingAnswers(options), { onFailure: 'discard' });
    expect(await stored(memory)).toEqual([]);
    const always = sessions(createAgent({ model: failing() }), { memory, onFailure: 'discard' });
    await expect(always.open('s').call('?')).rejects.toThrow();
    expect(await stored(memory)).toEqual([]);
  });

  it('S10, C1: keeps nothing that a guard of inputs has refused, nor of a call that is aborted', async () => {
    const { memory } = await fail(storingAnswers({ model: scriptedModel() }), { callId: 'c' });
    expect(await stored(memory)).toEqual(['user']);
    const long = sessions(createAgent(storingAnswers({ model: scriptedModel() })), { memory }).open(
      's',
    );
    await expect(long.call('x'.repeat(40_000))).rejects.toMatchObject({ code: 'guardRejected' });
    const aborted = AbortSignal.abort();
    await expect(long.call('?', { signal: aborted })).rejects.toMatchObject({ code: 'aborted' });
    expect(await stored(memory)).toEqual(['user']);
  });

  it('S10: reports what it stores before the error, and a memory that fails does not hide the error', async () => {
    const session = sessions(createAgent({ model: failing() })).open('s');
    const types: string[] = [];
    await lastValueFrom(
      session.stream$('?').pipe(
        tap(({ type }) => types.push(type)),
        catchError(() => of(undefined)),
      ),
    );
    expect(types.slice(-2)).toEqual(['messagesAppended', 'error']);
    const full: Memory = {
      load$: () => of([]),
      append$: () => throwError(() => new Error('Full.')),
    };
    const agent = createAgent({ model: failing() });
    const call = sessions(agent, { memory: () => full })
      .open('s')
      .call('?');
    await expect(call).rejects.toThrow('Down.');
  });

  it('S6, S10: a journaled call that is resumed stores each message once', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const options = { tools: [pay], use: [durable] };
    const memory = inProcessMemory();
    const model = failing([toolCall('pay')]);
    await fail({ ...options, model }, { callId: 'c' }, memory);
    expect(await stored(memory)).toEqual(['user', 'assistant', 'tool Paid.']);
    const again = createAgent({ ...options, model: scriptedModel([text('Done.')]) });
    const resumed = sessions(again, { memory }).open('s');
    expect(textOf(await durable.resume(resumed, 'c'))).toBe('Done.');
    expect(await stored(memory)).toEqual(['user', 'assistant', 'tool Paid.', 'assistant']);
  });
});
