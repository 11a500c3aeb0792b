import { describe, expect, it } from '@jest/globals';
import {
  EMPTY,
  firstValueFrom,
  map,
  mergeMap,
  NEVER,
  of,
  Subject,
  switchMap,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { interruptOn } from '../layers/interrupt-on.js';
import { createAgent } from '../agent.js';
import { prepare } from '../layers/interceptors/prepare.js';
import { textBlock, textOf } from '../values/message.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { tool } from '../tools/tool.js';
import { sessions } from '../layers/sessions/index.js';

const said = (content: string) => ({ role: 'user', content: [textBlock(content)] }) as const;

describe('prepare', () => {
  it('H6: edits the input, which the model and memory then have; preCall shows it as it came', async () => {
    const model = scriptedModel([text('Hi.')]);
    const polite = prepare(
      map((asked) => ({
        ...asked,
        input: [...asked.input.slice(0, 0), said('Please: '), ...asked.input],
      })),
    );
    const session = sessions(createAgent({ model, use: [polite] })).open('s');
    const events = await record(session.stream$('hello'));
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['Please: ', 'hello']);
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(textOf)).toEqual(['Please: ', 'hello', 'Hi.']);
    expect(events[0]?.type === 'preCall' && events[0].input.map(textOf)).toEqual(['hello']);
  });

  it('H6: edits the options: another model, other tools, other numbers', async () => {
    const small = scriptedModel();
    const large = scriptedModel([text('From the large one.')]);
    const extra = tool({ name: 'extra', description: 'More.', run: () => '' });
    const route = prepare(
      map((asked) => ({
        ...asked,
        options: { model: large, tools: [extra], request: { temperature: 0, maxTokens: 9 } },
      })),
    );
    const agent = createAgent({
      model: small,
      use: [route],
      request: { temperature: 1 },
    });
    expect(textOf(await agent.call('?'))).toBe('From the large one.');
    expect(large.requests[0]).toMatchObject({
      temperature: 0,
      maxTokens: 9,
      tools: [{ name: 'extra' }],
    });
  });

  it('H6: sees what the call says, and what is left out is not said', async () => {
    const model = scriptedModel([text('.')]);
    const seen: unknown[] = [];
    const look = prepare(
      map((asked) => {
        seen.push(asked.options.request, asked.call.metadata);
        const { request: { temperature: _, ...request } = {}, ...options } = asked.options;
        return { ...asked, options: { ...options, request } };
      }),
    );
    const agent = createAgent({ model, use: [look], request: { temperature: 1 } });
    await agent.call('?', { metadata: { userId: 'u' }, request: { maxTokens: 5 }, callId: 'c' });
    expect(seen).toEqual([{ temperature: 1, maxTokens: 5 }, { userId: 'u' }]);
    expect(model.requests[0]).toMatchObject({ maxTokens: 5 });
    expect(model.requests[0]).not.toHaveProperty('temperature');
  });

  it('H6: a veto ends the call as stopped, before anything is asked', async () => {
    const session = sessions(
      createAgent({ model: scriptedModel(), use: [prepare(() => EMPTY, { name: 'bouncer' })] }),
    ).open('s');
    const events = await record(session.stream$('?'));
    expect(events.map(({ type }) => type)).toEqual(['preCall', 'vetoed', 'postCall']);
    expect(events[1]).toMatchObject({ of: 'prepare', name: 'bouncer' });
    expect(events[2]).toMatchObject({ reply: { reason: 'stopped', iterations: 0 } });
  });

  it('H6: several go by priority; the call waits for a slow one', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const add = (word: string, priority: number) =>
        prepare(
          switchMap((asked) =>
            timer(2, scheduler).pipe(
              map(() => ({ ...asked, input: [...asked.input, said(word)] })),
            ),
          ),
          { priority },
        );
      const plain = model('(tf|)');
      const agent = createAgent({ model: plain, use: [add('b', 2), add('a', 1)] });
      const texts$ = agent
        .call$('?', { scheduler })
        .pipe(map(() => plain.requests[0]?.messages.map(textOf).join('')));
      expectObservable(texts$).toBe('----(r|)', { r: '?ab' });
    });
  });

  it.each([
    ['two values', mergeMap((asked: object) => of(asked, asked)), /more than one/],
    ['an error', () => throwError(() => new Error('No.')), /No\./],
    ['something else', map(() => 5), /something that is not/],
    ['no input', map((asked: object) => ({ ...asked, input: [] })), /empty/],
    ['an unknown option', map((asked: object) => ({ ...asked, options: { temp: 1 } })), /'temp'/],
    [
      'an option that is fixed',
      map((asked: object) => ({ ...asked, options: { scheduler: 1 } })),
      /'scheduler'/,
    ],
  ])('H2: %s is an error that names it', async (_, operator, why) => {
    const interceptors = [prepare(operator as never, { name: 'spoiler' })];
    const failed = createAgent({ model: scriptedModel(), use: interceptors }).call('?');
    await expect(failed).rejects.toMatchObject({
      code: 'interceptor',
      message: expect.stringMatching(why),
    });
    await expect(failed).rejects.toThrow(/spoiler/);
  });

  it('H2: with failOpen it is passed over', async () => {
    const broken = prepare(
      tap(() => {
        throw new Error('No.');
      }),
      { failOpen: true },
    );
    const agent = createAgent({ model: scriptedModel([text('Hi.')]), use: [broken] });
    const events = await record(agent.stream$('?'));
    expect(events[1]).toMatchObject({
      type: 'handlerError',
      of: 'prepare',
      name: 'prepare() at position 1',
    });
  });

  it('S1: an interrupt cuts one that waits', async () => {
    const agent = createAgent({ model: scriptedModel(), use: [prepare(() => NEVER)] });
    const reply = await agent.call('?', { use: [interruptOn(of('Enough.'))] });
    expect([reply.reason, textOf(reply)]).toEqual(['interrupted', 'Enough.']);
  });

  it.each(['vetoed', 'interrupted'] as const)(
    'H6: nothing is remembered of an input that was %s before all had seen it',
    async (how) => {
      const model = scriptedModel([text('Hi.')]);
      const refuse = prepare((asked$) => {
        return asked$.pipe(
          mergeMap((asked) =>
            textOf(asked.input[0] as never) === 'bad'
              ? how === 'vetoed'
                ? EMPTY
                : NEVER
              : of(asked),
          ),
        );
      });
      const session = sessions(createAgent({ model, use: [refuse] })).open('s');
      const running = session.call('bad');
      session.interrupt();
      expect((await running).reason).toBe(how === 'vetoed' ? 'stopped' : 'interrupted');
      await session.call('good');
      expect(model.requests[0]?.messages.map(textOf)).toEqual(['good']);
    },
  );

  it('S1: one that ends immediately has seen the input also of a call that is interrupted from the start', async () => {
    const clean = prepare(map((asked) => ({ ...asked, input: [said('clean')] })));
    const session = sessions(createAgent({ model: scriptedModel(), use: [clean] })).open('s');
    await session.call('dirty', { use: [interruptOn(of('Stop.'))] });
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(textOf)).toEqual(['clean', 'Stop.']);
  });

  const guarded = prepare(
    mergeMap((asked) => {
      const [first] = asked.input;
      if (first !== undefined && textOf(first) === 'bad') return EMPTY;
      return of({ ...asked, input: [...asked.input, said('(seen)')] });
    }),
  );

  it('S3: what is said to a running call goes through it too, and is remembered under ids of its own', async () => {
    const done$ = new Subject<string>();
    const work = tool({ name: 'work', description: 'Works.', run: () => done$ });
    const model = scriptedModel([toolCall('work')], [text('Done.')]);
    const session = sessions(createAgent({ model, tools: [work], use: [guarded] })).open('s');
    const running = record(session.stream$('hi'));
    const outcomes = [session.steer('one'), session.steer('bad'), session.steer('two')];
    done$.complete();
    const events = await running;
    expect(await Promise.all(outcomes)).toEqual([
      { status: 'delivered', iteration: 2 },
      { status: 'notDelivered', why: 'vetoed' },
      { status: 'delivered', iteration: 2 },
    ]);
    expect(events.filter(({ type }) => type === 'vetoed')).toHaveLength(1);
    const stored = await firstValueFrom(session.memory.load$());
    const users = stored.filter(({ role }) => role === 'user').map(textOf);
    expect(users).toEqual(['hi', '(seen)', 'one', '(seen)', 'two', '(seen)']);
    expect(model.requests[1]?.messages.filter(({ role }) => role === 'user').map(textOf)).toEqual(
      users,
    );
  });

  it('S3: a call that joins with what it would not have is guardRejected, and the running one continues', async () => {
    const done$ = new Subject<string>();
    const work = tool({ name: 'work', description: 'Works.', run: () => done$ });
    const model = scriptedModel([toolCall('work')], [text('Done.')]);
    const session = sessions(createAgent({ model, tools: [work], use: [guarded] })).open('s');
    const running = session.call('hi');
    const joined = session.call('bad', { onBusy: 'steer' });
    done$.complete();
    await expect(joined).rejects.toMatchObject({ code: 'guardRejected' });
    expect(textOf(await running)).toBe('Done.');
  });

  it('S1: an interrupt cuts it while it decides on what was said to a running call', async () => {
    const done$ = new Subject<string>();
    const work = tool({ name: 'work', description: 'Works.', run: () => done$ });
    const undecided = prepare(
      mergeMap((asked) => (textOf(asked.input[0] as never) === 'hi' ? of(asked) : NEVER)),
    );
    const model = scriptedModel([toolCall('work')]);
    const session = sessions(createAgent({ model, tools: [work], use: [undecided] })).open('s');
    const running = session.call('hi');
    const said = session.steer('and?');
    done$.complete();
    await Promise.resolve();
    expect(session.interrupt('Enough.')).toBe(true);
    expect(textOf(await running)).toBe('Enough.');
    expect(await said).toEqual({ status: 'notDelivered', why: 'ended' });
  });

  it('X19: what it gets is frozen', async () => {
    const push = prepare(
      tap(({ options }) => {
        (options.tools as unknown[]).push('more');
      }),
      { name: 'pusher' },
    );
    const failed = createAgent({ model: scriptedModel(), use: [push] }).call('?');
    await expect(failed).rejects.toThrow(/pusher/);
  });

  it('H2: two tools of one name, and a choice of none, are errors that name it', async () => {
    const extra = tool({ name: 'extra', description: 'More.', run: () => '' });
    const twice = { tools: [extra, extra] };
    const none = { toolChoice: { name: 'nobody' } };
    for (const more of [twice, none]) {
      const spoil = prepare(
        map((asked) => ({ ...asked, options: { ...asked.options, ...more } })),
        { name: 'spoiler' },
      );
      const failed = createAgent({ model: scriptedModel(), use: [spoil] }).call('?');
      await expect(failed).rejects.toMatchObject({
        code: 'interceptor',
        message: expect.stringMatching(/spoiler/),
      });
    }
  });
});
