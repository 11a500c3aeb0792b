import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bufferCount,
  catchError,
  concat,
  concatMap,
  delay,
  endWith,
  filter,
  firstValueFrom,
  map,
  mergeMap,
  type MonoTypeOperatorFunction,
  of,
  pipe,
  scan,
  Subject,
  takeLast,
  takeWhile,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { createAgent } from '../agent.js';
import { type ContentChunk, stopMessage } from './chunk-transform.js';
import { on } from '../seams/interceptor.js';
import { transformChunks } from '../layers/interceptors/guard-output.js';
import { textOf } from '../values/message.js';
import type { ModelChunk } from './model.js';
import {
  finish,
  marbles,
  record,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from '../testing/index.js';
import { tool } from '../tools/tool.js';
import { sessions } from '../layers/sessions/index.js';

const shout: MonoTypeOperatorFunction<ContentChunk> = map((chunk) =>
  chunk.type === 'text' ? { ...chunk, text: chunk.text.toUpperCase() } : chunk,
);

const isClean = (chunk: ContentChunk): boolean =>
  chunk.type !== 'text' || !chunk.text.includes('!');

const joined = (chunks: readonly { readonly delta: string }[]): string =>
  chunks.map(({ delta }) => delta).join('');

describe('transformChunks', () => {
  it('H7: maps, and what is shown is what is stored', async () => {
    const model = scriptedModel([thinking('hm'), text('a'), text('b')]);
    const agent = createAgent({ model, use: [transformChunks(shout)] });
    const events = await record(agent.stream$('?'));
    const chunks = events.filter((event) => event.type === 'reasoningChunk');
    expect(chunks.map(({ kind, delta }) => [kind, delta])).toEqual([
      ['thinking', 'hm'],
      ['text', 'A'],
      ['text', 'B'],
    ]);
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toBe('AB');
  });

  it('H7: drops, merges and adds', async () => {
    const merged = pipe(
      filter((chunk: ContentChunk) => chunk.type === 'text'),
      bufferCount(2),
      map((pair): ContentChunk => ({ type: 'text', text: pair.map((it) => it.text).join('') })),
      mergeMap((chunk): ContentChunk[] => [chunk, { type: 'text', text: '.' }]),
    );
    const model = scriptedModel([thinking('hm'), text('a'), text('b'), text('c')]);
    const reply = await createAgent({ model, use: [transformChunks(merged)] }).call('?');
    expect(reply.content).toEqual([{ type: 'text', text: 'ab.c.' }]);
    expect(reply.finish).toBe('stop');
  });

  it('H7: an operator that completes stops the message, cancels the request immediately, and keeps the text', () => {
    marbles(({ model, expectObservable, expectSubscriptions, scheduler }) => {
      const slow = model('-a-b-c-(df|)', {
        a: text('Hi '),
        b: text('you'),
        c: text('!'),
        d: text('…'),
      });
      const agent = createAgent({ model: slow, use: [transformChunks(takeWhile(isClean))] });
      const reply$ = agent
        .call$('?', { scheduler })
        .pipe(map((reply) => [reply.reason, textOf(reply), reply.finish]));
      expectObservable(reply$).toBe('-----(r|)', { r: ['stopped', 'Hi you', 'stop'] });
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^----!');
    });
  });

  it('H7: a message is stopped once, even if its end makes the model emit more', async () => {
    const chunk$ = new Subject<ModelChunk>();
    let ends = 0;
    const agent = createAgent({
      model: { name: 'fed', stream$: () => chunk$ },
      use: [
        transformChunks(map((chunk) => (chunk.type === 'text' ? stopMessage() : chunk))),
        on(
          'postReasoning',
          tap(() => {
            ends += 1;
            chunk$.next({ type: 'text', text: 'more' });
          }),
        ),
      ],
    });
    const reply = firstValueFrom(agent.call$('?'));
    chunk$.next({ type: 'text', text: 'bad' });
    expect(await reply).toMatchObject({ reason: 'stopped' });
    expect(ends).toBe(1);
  });

  it('X2: tools of a message that was stopped are never run', async () => {
    const ran: unknown[] = [];
    const work = tool({ name: 'work', description: 'Works.', run: () => ran.push(1) });
    const model = scriptedModel([text('I work'), toolCall('work'), text('!')]);
    const session = sessions(
      createAgent({ model, tools: [work], use: [transformChunks(takeWhile(isClean))] }),
    ).open('s');
    const reply = await session.call('?');
    expect([reply.reason, textOf(reply), ran]).toEqual(['stopped', 'I work', []]);
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(({ content }) => content.map(({ type }) => type))).toEqual([
      ['text'],
      ['text'],
    ]);
  });

  it('H7: without any text, there is a word', async () => {
    const agent = createAgent({
      model: scriptedModel([text('!')]),
      use: [transformChunks(takeWhile(isClean))],
    });
    expect(textOf(await agent.call('?'))).toBe('Stopped.');
  });

  const retrying = transformChunks(
    map((chunk) => (isClean(chunk) ? chunk : stopMessage('No shouting.'))),
  );

  it('L7: a stop with feedback discards the message and asks again, in one more counted iteration', async () => {
    const model = scriptedModel([text('Hey'), text('!'), text('more')], [text('Hello.')]);
    const session = sessions(createAgent({ model, use: [retrying] })).open('s');
    const events = await record(session.stream$('?'));
    const last = events.at(-1);
    expect(last?.type === 'postCall' && [textOf(last.reply), last.iteration]).toEqual([
      'Hello.',
      2,
    ]);
    expect(events.map(({ type }) => type)).toContain('messageDiscarded');
    expect(model.requests[1]?.messages.map(textOf)).toEqual(['?', 'Hey', 'No shouting.']);
    await session.call('?').catch(() => undefined);
    expect(model.requests[2]?.messages.map(textOf)).toEqual(['?', 'Hello.', '?']);
  });

  it('L7: it does so no more than twice in a row, then the call errors, with the text so far apart', async () => {
    const model = scriptedModel(
      [text('1'), text('!')],
      [text('2'), text('!')],
      [text('3'), text('!')],
    );
    const failing = createAgent({ model, use: [retrying] }).call('?');
    await expect(failing).rejects.toMatchObject({ code: 'guardRejected', partial: '3' });
    model.verify();
  });

  it('L7: a good message between resets the count', async () => {
    const work = tool({ name: 'work', description: 'Works.', run: () => 'ok' });
    const bad = [text('!')];
    const model = scriptedModel(bad, bad, [toolCall('work')], bad, bad, [text('Done.')]);
    const reply = await createAgent({ model, tools: [work], use: [retrying] }).call('?');
    expect([textOf(reply), reply.iterations]).toEqual(['Done.', 6]);
  });

  it('I7: counts within maxIterations, and in the closing call there is no other try', async () => {
    const model = scriptedModel([text('!')], [text('Well'), text('!')]);
    const failing = createAgent({ model, use: [retrying] }).call('?', {
      limits: { maxIterations: 1 },
    });
    await expect(failing).rejects.toMatchObject({ code: 'guardRejected', partial: 'Well' });
  });

  it('H7: a closing answer that is stopped is the reply as far as it came', async () => {
    const model = scriptedModel([toolCall('none')], [text('So far'), text('!')]);
    const agent = createAgent({ model, use: [transformChunks(takeWhile(isClean))] });
    const reply = await agent.call('?', { limits: { maxIterations: 1 } });
    expect([reply.reason, textOf(reply)]).toEqual(['stopped', 'So far']);
  });

  it('H7: postReasoning has the last word on a stop', async () => {
    const goOn = on(
      'postReasoning',
      map(({ stop: _stop, ...event }) => event),
    );
    const agent = createAgent({
      model: scriptedModel([text('a'), text('!')]),
      use: [transformChunks(takeWhile(isClean)), goOn],
    });
    expect((await agent.call('?')).reason).toBe('answer');
  });

  it('H7: a slow operator holds the finish back until all has come through', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const slow = transformChunks(
        concatMap((chunk) => timer(3, scheduler).pipe(map(() => chunk))),
      );
      const agent = createAgent({
        model: model('ab(f|)', { a: text('a'), b: text('b') }),
        use: [slow],
      });
      const deltas$ = agent.stream$('?', { scheduler }).pipe(
        filter((event) => event.type === 'reasoningChunk' || event.type === 'postReasoning'),
        map((event) => (event.type === 'reasoningChunk' ? event.delta : textOf(event.message))),
      );
      expectObservable(deltas$).toBe('---a--(bc|)', { a: 'a', b: 'b', c: 'ab' });
    });
  });

  it('I4: a restart begins with the operator again, and drops what the old one holds', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const counting = transformChunks(
        pipe(
          scan((sum, chunk: ContentChunk) => sum + (chunk.type === 'text' ? chunk.text : ''), ''),
          map((sum): ContentChunk => ({ type: 'text', text: `${sum} ` })),
          delay(2, scheduler),
        ),
      );
      const broken = model('ar-b(f|)', {
        a: text('a'),
        r: { type: 'restart', why: 'broken' },
        b: text('b'),
      });
      const agent = createAgent({ model: broken, use: [counting] });
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('-----(r|)', {
        r: 'b ',
      });
    });
  });

  it.each([
    [
      'toArray',
      pipe(
        toArray<ContentChunk>(),
        mergeMap((chunks) => chunks),
      ),
    ],
    ['endWith', endWith<ContentChunk>({ type: 'text', text: '.' })],
    ['last', takeLast<ContentChunk>(1)],
  ])('I4: what %s would release at its end is void with its attempt', async (name, operator) => {
    const model = scriptedModel([text('broken'), { type: 'restart', why: 'broken' }, text('b')]);
    const agent = createAgent({ model, use: [transformChunks(operator)] });
    const events = await record(agent.stream$('?'));
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toBe(name === 'endWith' ? 'b.' : 'b');
    const ids = events.flatMap((it) => (it.type === 'reasoningChunk' ? [it.messageId] : []));
    expect(ids.filter((id) => !id.endsWith('#2'))).toHaveLength(name === 'endWith' ? 1 : 0);
  });

  it('H7: one that subscribes late has all that came before', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const late = transformChunks((chunk$) => timer(3, scheduler).pipe(mergeMap(() => chunk$)));
      const diagrams = ['a-b-c-(f|)', '(abcf|)'];
      const values = { a: text('a'), b: text('b'), c: text('c') };
      const agent = createAgent({ model: model(diagrams, values), use: [late] });
      const twice$ = concat(agent.call$('?', { scheduler }), agent.call$('?', { scheduler }));
      expectObservable(twice$.pipe(map(textOf))).toBe('------a--(b|)', { a: 'abc', b: 'abc' });
    });
  });

  it('H2: one that cannot be made is an error that names it, or is passed over', async () => {
    const broken = () => {
      throw new Error('Not today');
    };
    const agentOf = (failOpen: boolean) =>
      createAgent({
        model: scriptedModel([text('a')]),
        use: [transformChunks(broken, { name: 'moody', failOpen })],
      });
    await expect(agentOf(false).call('?')).rejects.toMatchObject({
      code: 'interceptor',
      message: expect.stringMatching(/moody failed: Not today\.$/),
    });
    expect(textOf(await agentOf(true).call('?'))).toBe('a');
  });

  it('H2: with failOpen all that it had not answered is passed on', async () => {
    const greedy = pipe(
      toArray<ContentChunk>(),
      mergeMap((): ContentChunk[] => {
        throw new Error('Full');
      }),
    );
    const agent = createAgent({
      model: scriptedModel([text('a'), text('b'), text('c')]),
      use: [transformChunks(greedy, { failOpen: true })],
    });
    expect(textOf(await agent.call('?'))).toBe('abc');
  });

  it('I4: arguments of a tool that were shown are void with the message that was stopped', async () => {
    const model = scriptedModel([toolCall('none'), text('!')], [text('Done.')]);
    const events = await record(createAgent({ model, use: [retrying] }).stream$('?'));
    expect(events.map(({ type }) => type)).toContain('messageDiscarded');
  });

  it('R4: counts pass by', async () => {
    const usage: ModelChunk = { type: 'usage', usage: { outputTokens: 7 } };
    const model = scriptedModel([usage, text('a'), finish(), usage]);
    const reply = await createAgent({ model, use: [transformChunks(filter(() => true))] }).call(
      '?',
    );
    expect(reply.usage.outputTokens).toBe(7);
  });

  it('L4: a pause in the message is no end of it', async () => {
    const model = scriptedModel([text('a'), finish('pause')], [text('b'), finish()]);
    const reply = await createAgent({ model, use: [transformChunks(shout)] }).call('?');
    expect([textOf(reply), reply.iterations]).toEqual(['AB', 1]);
  });

  it('X1: a stream that ends early is not taken for one that was stopped', async () => {
    const agent = createAgent({
      model: scriptedModel(of(text('a'))),
      use: [transformChunks(shout)],
    });
    await expect(agent.call('?')).rejects.toMatchObject({ code: 'invalidResponse', partial: 'A' });
  });

  it('H3: several go by priority, and the later one gets what the earlier ones made', async () => {
    const wrap = (left: string, priority: number) =>
      transformChunks(
        map((chunk) =>
          chunk.type === 'text' ? { ...chunk, text: `${left}${chunk.text}` } : chunk,
        ),
        { priority },
      );
    const agent = createAgent({
      model: scriptedModel([text('x')]),
      use: [wrap('a', 200), wrap('b', 1)],
    });
    expect(textOf(await agent.call('?'))).toBe('abx');
  });

  it('H3: what a later one holds is released when an earlier one stops', async () => {
    const holding = transformChunks(
      pipe(
        bufferCount(100),
        mergeMap((chunks) => chunks),
      ),
    );
    const model = scriptedModel([text('a'), text('b'), text('!')]);
    const agent = createAgent({ model, use: [transformChunks(takeWhile(isClean)), holding] });
    const reply = await agent.call('?');
    expect([reply.reason, textOf(reply)]).toEqual(['stopped', 'ab']);
  });

  const failing = tap<ContentChunk>((chunk) => {
    if (!isClean(chunk)) throw new Error('Too loud');
  });

  it('H2: an error fails the call, by the name of the interceptor', async () => {
    const agent = createAgent({
      model: scriptedModel([text('!')]),
      use: [transformChunks(failing, { name: 'hush' })],
    });
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'interceptor',
      message: expect.stringMatching(/hush.*Too loud/),
    });
  });

  it('H2: with failOpen it is passed over, and no chunk is lost', async () => {
    const agent = createAgent({
      model: scriptedModel([text('a'), text('!'), text('b')]),
      use: [transformChunks(failing, { failOpen: true })],
    });
    const events = await record(agent.stream$('?'));
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toBe('a!b');
    expect(events.filter(({ type }) => type === 'handlerError')).toMatchObject([
      { of: 'transformChunks', name: 'transformChunks() at position 1' },
    ]);
  });

  it('H2: what is no chunk is an error that names it', async () => {
    const spoil = transformChunks(
      map(() => ({ type: 'finish' }) as never),
      { name: 'spoiler' },
    );
    const failed = createAgent({ model: scriptedModel([text('a')]), use: [spoil] }).call('?');
    await expect(failed).rejects.toMatchObject({
      code: 'interceptor',
      message: expect.stringMatching(/spoiler/),
    });
  });

  it('I5: leaving the call leaves a slow operator and the model', () => {
    marbles(({ model, cold, expectObservable, expectSubscriptions, scheduler }) => {
      const source = model('a--------(f|)', { a: text('a') });
      const work = cold('--------x');
      const slow = transformChunks(concatMap((chunk) => work.pipe(map(() => chunk))));
      const agent = createAgent({ model: source, use: [slow] });
      expectObservable(
        agent.call$('?', { scheduler }).pipe(catchError(() => of('error'))),
        '^--!',
      ).toBe('----');
      expectSubscriptions(work.subscriptions).toBe('^--!');
      expectSubscriptions(source.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('I9: for any operator, the deltas of the surviving message are its text', async () => {
    const step = fc.constantFrom<MonoTypeOperatorFunction<ContentChunk>>(
      shout,
      filter(({ type }) => type === 'text'),
      takeWhile(isClean),
      pipe(
        bufferCount(3),
        mergeMap((chunks) => chunks),
      ),
      mergeMap((chunk) => [chunk, chunk]),
    );
    const chunk = fc.oneof(
      fc.string({ maxLength: 3 }).map(text),
      fc.constant(thinking('hm')),
      fc.constant<ModelChunk>({ type: 'usage', usage: { outputTokens: 1 } }),
      fc.constant<ModelChunk>({ type: 'restart', why: 'again' }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(chunk), fc.array(step, { maxLength: 3 }), async (chunks, steps) => {
        const agent = createAgent({
          model: scriptedModel([...chunks, text('end'), finish()]),
          use: steps.map((operator) => transformChunks(operator)),
        });
        const events = await record(agent.stream$('?'));
        const last = events.at(-1);
        if (last?.type !== 'postCall') throw new Error('no reply');
        const { id } = last.reply;
        const own = events.filter(
          (event) => event.type === 'reasoningChunk' && event.messageId === id,
        );
        const texts = own.flatMap((event) =>
          event.type === 'reasoningChunk' && event.kind === 'text' ? [event] : [],
        );
        expect(joined(texts)).toBe(
          last.reply.reason === 'stopped' && texts.length === 0 ? '' : textOf(last.reply),
        );
      }),
      { numRuns: 300 },
    );
  });
});
