import { describe, expect, it } from '@jest/globals';
import {
  EMPTY,
  from,
  lastValueFrom,
  map,
  type Observable,
  of,
  switchMap,
  throwError,
  toArray,
} from 'rxjs';
import { z } from 'zod';
import {
  createAgent,
  history,
  type Input,
  isMillraceError,
  type Model,
  on,
  output,
  outputOf,
  textOf,
  tool,
  toolRuns,
} from '../index.js';
import { finish, record, marbles, scriptedModel, text, toolCall } from '../testing/index.js';

const all = <T>(value$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(value$.pipe(toArray()));

const broken: Model = { name: 'broken', stream$: () => throwError(() => new Error('no')) };

describe('a message of a caller', () => {
  const asked = async (input: Input) => {
    const model = scriptedModel([text('Hello.')]);
    await createAgent({ model }).call(input);
    return model.requests[0]?.messages.map(({ role, content }) => [role, content]);
  };
  const hi = [{ type: 'text', text: 'hi' }];

  it('L9: may have a string for its content, alone, in a list and in a history', async () => {
    expect(await asked({ role: 'user', content: 'hi' })).toEqual([['user', hi]]);
    expect(
      await asked([
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'hi' },
        'and now?',
      ]),
    ).toEqual([
      ['user', hi],
      ['assistant', hi],
      ['user', [{ type: 'text', text: 'and now?' }]],
    ]);
    const model = scriptedModel([text('Hello.')]);
    const earlier = history([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'hi' },
    ]);
    await createAgent({ model }).call('now', { use: [earlier] });
    expect(model.requests[0]?.messages.map(({ content }) => content).slice(0, 2)).toEqual([hi, hi]);
  });

  it('L9: may not be an empty string', async () => {
    await expect(asked({ role: 'user', content: '' })).rejects.toMatchObject({
      code: 'invalidRequest',
    });
  });
});

describe('a reply', () => {
  it('L4: has the text of the answer, also after an interceptor changed it', async () => {
    const agent = createAgent({ model: scriptedModel([text('a'), text('b')], [text('c')]) });
    expect((await agent.call('?')).text).toBe('ab');
    const edited = agent.with(
      on(
        'postCall',
        map((event) => ({
          ...event,
          reply: { ...event.reply, content: [{ type: 'text', text: 'other' }] },
        })),
      ),
    );
    const events = await record(edited.stream$('?'));
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { text: 'other' } });
  });

  it('R3: gives its output, or the reason why there is not one', async () => {
    const place = z.object({ city: z.string() });
    const agent = (answer: string) =>
      createAgent({ model: scriptedModel([text(answer)]), use: [output(place)] });
    expect(outputOf(await agent('{"city":"Oslo"}').call('?')).city).toBe('Oslo');
    const plain = await createAgent({ model: scriptedModel([text('Oslo.')]) }).call('?');
    expect(() => outputOf(plain)).toThrow(
      'The call has no output: its agent has no output(schema). Its text is: "Oslo."',
    );
    const stopping = on(
      'postReasoning',
      map((event) => ({ ...event, stop: true })),
    );
    const stopped = await agent('{"city":"Oslo"}').with(stopping).call('?');
    expect(() => outputOf(stopped)).toThrow("The call has no output: it ended with 'stopped'.");
  });
});

describe('toolRuns', () => {
  it('of one tool are its calls only', async () => {
    const named = (name: string) => tool({ name, description: name, run: () => name });
    const [a, b] = [named('a'), named('b')];
    const model = scriptedModel([toolCall('a'), toolCall('b'), toolCall('a')], [text('done')]);
    const runs$ = createAgent({ model, tools: [a, b] }).stream$('?');
    const outputs = await all(runs$.pipe(toolRuns({ of: a })));
    expect(outputs.map((run) => run.output)).toEqual(['a', 'a']);
  });
});

describe('asOperator', () => {
  const upper = (model: Model) => createAgent({ model });

  it('G5: a failed call ends the stream, unless onError replaces its reply', async () => {
    const flaky: Model = {
      name: 'flaky',
      stream$: (request, context) =>
        // Not its ids, which are random.
        request.messages.some((message) => textOf(message).includes('bad'))
          ? broken.stream$(request, context)
          : of(text('ok'), finish()),
    };
    const asked$ = from(['one', 'bad', 'two']);
    const failed$ = asked$.pipe(upper(flaky).asOperator());
    await expect(all(failed$)).rejects.toMatchObject({
      name: 'MillraceError',
      message: expect.stringContaining('no'),
    });
    const replaced$ = asked$.pipe(
      upper(flaky).asOperator({
        onError: (error, input) => of(`${String(input)}: ${isMillraceError(error)}`),
      }),
      map((it) => (typeof it === 'string' ? it : it.text)),
    );
    expect(await all(replaced$)).toEqual(['ok', 'bad: true', 'ok']);
    const skipped$ = asked$.pipe(
      upper(flaky).asOperator({ onError: () => EMPTY }),
      map((reply) => reply.text),
    );
    expect(await all(skipped$)).toEqual(['ok', 'ok']);
  });

  it('G5: the replacement is unsubscribed with the call, and may itself fail', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions, scheduler }) => {
      const instead$ = cold<string>('---x|');
      const question$ = hot('a-b--------|');
      const replies$ = question$.pipe(
        upper(broken).asOperator({
          scheduler,
          flatten: (project) => switchMap(project),
          onError: (_, input): Observable<string> =>
            input === 'a' ? instead$ : throwError(() => new Error('again')),
        }),
      );
      expectObservable(replies$.pipe(map(String))).toBe('--#', {}, new Error('again'));
      expectSubscriptions(instead$.subscriptions).toBe('^-!');
    });
  });

  it('is refused with a flattening operator in place of its options', () => {
    // @ts-expect-error it takes { flatten: switchMap }
    expect(() => upper(broken).asOperator(switchMap)).toThrow(
      'asOperator() takes an object of options: ',
    );
  });

  it('is refused with an option that is no function', () => {
    // @ts-expect-error it is not a function
    expect(() => upper(broken).asOperator({ onError: 'skip' })).toThrow(
      "asOperator(): 'onError' must be a function",
    );
  });
});

describe('an unknown option', () => {
  const model = scriptedModel();
  const create = (options: object) => () =>
    createAgent({ model, ...options } as Parameters<typeof createAgent>[0]);

  it.each([
    [{ system: 'Be brief.' }, "Did you mean 'instructions'?"],
    [{ Instructions: 'Be brief.' }, "Did you mean 'instructions'?"],
    [{ middleware: [] }, "Did you mean 'use'?"],
    [{ instrucion: 'Be brief.' }, "Did you mean 'instructions'?"],
    [{ limits: { maxIteration: 3 } }, "Did you mean 'maxIterations'?"],
    [{ maxSteps: 3 }, 'Write limits: { maxIterations: … }.'],
    [{ temperature: 1 }, 'Write request: { temperature: … }.'],
    [{ constructor: 1 }, "createAgent() has no option 'constructor'. Its options are:"],
    [{ colour: 1 }, "createAgent() has no option 'colour'. Its options are:"],
  ])('%j is refused, with the one that is meant', (options, hint) => {
    expect(create(options)).toThrow(hint);
  });

  it.each([
    [{ parameters: z.object({}) }, "Did you mean 'input'?"],
    [{ execute: () => 1 }, "Did you mean 'run'?"],
  ])('of a tool is refused, with the one that is meant', (options, hint) => {
    const definition = { name: 'a', description: 'A.', run: () => 1, ...options };
    expect(() => tool(definition as Parameters<typeof tool>[0])).toThrow(hint);
  });
});
