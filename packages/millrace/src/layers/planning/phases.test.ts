import { describe, expect, it } from '@jest/globals';
import { concat, delay, EMPTY, lastValueFrom, map, NEVER, of, throwError } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  interruptOn,
  MillraceError,
  on,
  output,
  textOf,
  tool,
} from '../../index.js';
import { acting, insertAfter, insertBefore, reasoning } from '../../phases/index.js';
import { marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { text as text$ } from '../../operators/event-operators.js';
import { analyseTask, reflect } from './index.js';
import { sessions } from '../sessions/index.js';
import { journal } from '../../journal/index.js';
import { jsonSchema } from '../../schema/index.js';
import { redact } from '../guards/index.js';

const spin = tool({ name: 'spin', description: 'Spins.', run: () => 'Spun.' });
const fails = tool({
  name: 'fails',
  description: 'Fails.',
  run: () => {
    throw new Error('No.');
  },
});

const thinking = [insertBefore(reasoning, analyseTask()), insertAfter(acting, reflect())];

describe('phases that think beside the loop', () => {
  it('G1, I8: are shown to the model, and stored nowhere', async () => {
    const memory = inProcessMemory();
    const model = scriptedModel(
      [text('Spin it.')],
      [toolCall('spin')],
      [text('It spins.')],
      [text('Done.')],
      [text('Again?')],
      [text('No.')],
    );
    const session = sessions(createAgent({ model, tools: [spin], use: thinking }), { memory }).open(
      's',
    );
    await session.call('Spin!', { callId: 'a' });
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map(textOf)).toEqual(['Spin!', '', '', 'Done.']);
    await session.call('And?', { callId: 'b' });
    expect(JSON.stringify(await lastValueFrom(memory('s').load$()))).not.toMatch(
      /Spin it|It spins|Again|\[Reflection\]/,
    );
    // Nor does the next call see what was thought in the last one.
    expect(JSON.stringify(model.requests[4]?.messages)).not.toContain('It spins.');
  });

  it('G1: are asked with the conversation as it is, and without tools', async () => {
    const model = scriptedModel([text('A')], [toolCall('spin')], [text('B')], [text('Done.')]);
    const agent = createAgent({
      model,
      tools: [spin],
      use: thinking,
      instructions: 'Be brief.',
    });
    await agent
      .call('Spin!', {
        use: [output(jsonSchema({ type: 'object', properties: {} }))],
        callId: 'c',
        request: { stopSequences: ['X'] },
        limits: { maxIterations: 2, onLimit: 'partial' },
      })
      .catch(() => undefined);
    const [analysed, reasoned, reflected] = model.requests;
    expect(analysed).toMatchObject({ system: 'Be brief.', toolChoice: 'none', maxTokens: 1_000 });
    expect(analysed).not.toHaveProperty('outputSchema');
    expect(analysed).not.toHaveProperty('stopSequences');
    expect(analysed?.tools).toEqual(reasoned?.tools);
    expect(reflected?.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'user', 'user'],
    ]);
  });

  it('L3, R4: are no iteration, and their cost is reported by phase', async () => {
    const spent = (n: number) =>
      ({ type: 'usage', usage: { inputTokens: n, outputTokens: 1 } }) as const;
    const model = scriptedModel(
      [text('A'), spent(1)],
      [toolCall('spin'), spent(10)],
      [text('B'), spent(100)],
      [text('Done.'), spent(1000)],
    );
    const reply = await createAgent({ model, tools: [spin], use: thinking }).call('?');
    expect(reply.iterations).toBe(2);
    expect(reply.usage.inputTokens).toBe(1111);
    expect(
      Object.entries(reply.usageByPhase).map(([name, { inputTokens }]) => [name, inputTokens]),
    ).toEqual([
      ['analyseTask', 1],
      ['reasoning', 1010],
      ['reflect', 100],
    ]);
  });

  it('G1: a failure is a warning, and the call continues', async () => {
    const model = scriptedModel(
      throwError(() => new MillraceError('server', 'Down.')),
      [toolCall('spin')],
      [text(' ')],
      [text('Done.')],
    );
    const events = await record(createAgent({ model, tools: [spin], use: thinking }).stream$('?'));
    expect(events.filter(({ type }) => type === 'warning')).toMatchObject([
      { message: expect.stringMatching(/'analyseTask' failed.*Down/) },
      { message: expect.stringMatching(/'reflect' failed.*returned nothing/) },
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
  });

  it('H2: a veto leaves one out, an error of an interceptor fails the call', async () => {
    const model = scriptedModel([toolCall('spin')], [text('B')], [text('Done.')]);
    const vetoing = on('prePlanning', () => EMPTY, { name: 'no' });
    const vetoed = createAgent({ model, tools: [spin], use: [vetoing, ...thinking] });
    const events = await record(vetoed.stream$('?'));
    expect(events.filter(({ type }) => type === 'vetoed')).toMatchObject([
      { of: 'prePlanning', name: 'no' },
      { of: 'prePlanning', name: 'no' },
    ]);
    expect(model.requests).toHaveLength(2);
    const failing = on(
      'postPlanning',
      map(() => {
        throw new Error('Bad.');
      }),
    );
    const failed = createAgent({ model: scriptedModel([text('A')]), use: [failing, ...thinking] });
    await expect(failed.call('?')).rejects.toMatchObject({ code: 'interceptor' });
  });

  it('H2, X10: interceptors shape what is asked and what is answered', async () => {
    const model = scriptedModel([text('The key is sk-12.')], [text('Done.')]);
    const agent = createAgent({
      model,
      use: [redact(/sk-\d+/), insertBefore(reasoning, analyseTask())],
    });
    const events = await record(agent.stream$('Use sk-34.'));
    expect(JSON.stringify([events.slice(1), model.requests])).not.toMatch(/sk-\d/);
  });

  it('S1: an interrupt cuts one, and the call ends with it', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const model = { name: 'm', stream$: () => NEVER };
      const agent = createAgent({ model, use: thinking });
      const reason$ = agent
        .call$('?', { scheduler, use: [interruptOn(cold('---x'))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('---(r|)', { r: 'interrupted' });
    });
  });

  it('I5: leaving the call leaves it', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const slow = model('-----(tf|)');
      expectObservable(
        createAgent({ model: slow, use: thinking }).call$('?', { scheduler }),
        '--!',
      ).toBe('');
      for (const log of slow.subscriptions) expectSubscriptions(log).toBe('^-!');
    });
  });

  it('L2: the answer is not mixed up with what was thought', async () => {
    const model = scriptedModel([text('A')], [toolCall('spin')], [text('B')], [text('Done.')]);
    const agent = createAgent({ model, tools: [spin], use: thinking });
    const said: string[] = [];
    await lastValueFrom(
      agent.stream$('?').pipe(
        text$(),
        map((it) => said.push(it)),
      ),
    );
    expect(said).toEqual(['Done.']);
    const again = scriptedModel([text('A')], [text('Done.')]);
    const events = await record(createAgent({ model: again, use: thinking }).stream$('?'));
    const chunks = events.filter(({ type }) => type === 'planningChunk');
    expect(chunks).toMatchObject([{ phase: 'analyseTask', delta: 'A', iteration: 0 }]);
  });

  it('G1: another model thinks, if it has one of its own', async () => {
    const wise = scriptedModel([text('Think.')]);
    const model = scriptedModel([text('Done.')]);
    const use = [insertBefore(reasoning, analyseTask({ model: wise, maxTokens: 9 }))];
    await createAgent({ model, use }).call('?');
    expect(wise.requests).toMatchObject([{ maxTokens: 9 }]);
    expect(JSON.stringify(model.requests)).toContain('Think.');
    expect(() => analyseTask({ prompt: 1 as never })).toThrow(/'prompt' must be/);
  });

  it('takes an option that is undefined for one that is not set', async () => {
    const asked = async (options: Parameters<typeof analyseTask>[0]) => {
      const model = scriptedModel([text('A')], [text('Done.')]);
      await createAgent({ model, use: [insertBefore(reasoning, analyseTask(options))] }).call('?');
      return model.requests.map(({ system, maxTokens }) => ({ system, maxTokens }));
    };
    const none = { prompt: undefined, maxTokens: undefined, name: undefined, model: undefined };
    expect(await asked(none)).toEqual(await asked({}));
  });

  it('R4, L3: what a request has cost that failed is charged all the same', async () => {
    const spent = { type: 'usage', usage: { inputTokens: 500 } } as const;
    const model = scriptedModel(
      concat(
        of(spent),
        throwError(() => new MillraceError('server', 'Down.')),
      ),
      [text('Done.')],
    );
    const reply = await createAgent({ model, use: thinking }).call('?');
    expect(reply.usageByPhase['analyseTask']?.inputTokens).toBe(500);
  });

  it('L7: a turn that only corrects the model is not reflected on', async () => {
    const model = scriptedModel(
      [text('A')],
      [toolCall('spin')],
      [text('B')],
      [text(' ')],
      [text('Done.')],
    );
    const events = await record(createAgent({ model, tools: [spin], use: thinking }).stream$('?'));
    expect(events.filter(({ type }) => type === 'prePlanning')).toHaveLength(2);
  });

  it('S6: two of one kind have names, places and notes of their own', async () => {
    const ids: string[] = [];
    const durable = journal((id, work) => (ids.push(id), work()));
    const model = scriptedModel([text('A')], [text('B')], [text('Done.')]);
    const use = [
      insertBefore(reasoning, analyseTask({ name: 'risks', prompt: 'Risks?' })),
      insertBefore(reasoning, analyseTask()),
    ];
    const reply = await createAgent({ model, use: [durable, ...use] }).call('?', { callId: 'c' });
    expect(ids.slice(2, 5)).toEqual(['c/0/risks', 'c/0/analyseTask', 'c/1']);
    expect(Object.keys(reply.usageByPhase)).toEqual(['risks', 'analyseTask', 'reasoning']);
    expect(textOf(model.requests[2]?.messages.at(-1) ?? { content: [] })).toBe(
      '[Task Analysis: risks]\nA\n\n[Task Analysis]\nB',
    );
  });

  it('S1: an interrupt while it thinks is no turn', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const agent = createAgent({ model: { name: 'm', stream$: () => NEVER }, use: thinking });
      const turns$ = agent
        .call$('?', { scheduler, use: [interruptOn(cold('-x'))] })
        .pipe(map(({ iterations }) => iterations));
      expectObservable(turns$).toBe('-(n|)', { n: 0 });
    });
  });

  it('R5: a model that takes no limit of length is asked without one, in silence', async () => {
    const model = {
      ...scriptedModel([text('A')], [text('Done.')]),
      unsupported: ['maxTokens'] as const,
    };
    const events = await record(createAgent({ model, use: thinking }).stream$('?'));
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
    expect(model.requests[0]).not.toHaveProperty('maxTokens');
    await expect(
      createAgent({
        model,
        use: [insertBefore(reasoning, analyseTask({ prompt: () => 1 as never }))],
      }).call('?'),
    ).rejects.toMatchObject({ message: expect.stringContaining('A prompt must be a string') });
  });
});

describe('reflect', () => {
  const turns = (...tools: readonly string[]) => tools.map((name) => [toolCall(name)]);
  const run = async (when: Parameters<typeof reflect>[0], ...tools: readonly string[]) => {
    const seen: number[] = [];
    let turn = 0;
    const model = {
      name: 'm',
      stream$: ({ messages }: { readonly messages: readonly unknown[] }) => {
        if (JSON.stringify(messages.at(-1)).includes('Look at the latest tool results')) {
          return of(text('Hm.'), { type: 'finish', finish: 'stop' } as const);
        }
        const [next] = turns(tools[turn] ?? '')[0] ?? [];
        turn += 1;
        return of(turn > tools.length || next === undefined ? text('Done.') : next, {
          type: 'finish',
          finish: 'stop',
        } as const);
      },
    };
    const use = [insertAfter(acting, reflect(when))];
    const events = await record(createAgent({ model, tools: [spin, fails], use }).stream$('?'));
    events.forEach((event) => event.type === 'postPlanning' && seen.push(event.iteration));
    return seen;
  };

  it('G1: after every turn with tools, on errors only, every n, or as a function says', async () => {
    const tools = ['spin', 'fails', 'spin', 'fails', 'spin'];
    expect(await run({}, ...tools)).toEqual([1, 2, 3, 4, 5]);
    expect(await run({ when: 'onError' }, ...tools)).toEqual([2, 4]);
    expect(await run({ when: 2 }, ...tools)).toEqual([2, 4]);
    expect(await run({ when: ({ iteration }) => iteration === 3 }, ...tools)).toEqual([3]);
    expect(await run({})).toEqual([]);
  });

  it('I18: waits on the scheduler of the call', () => {
    marbles(({ scheduler, expectObservable }) => {
      const answers = [toolCall('spin'), text('Hm.'), text('Done.')];
      const model = {
        name: 'm',
        stream$: () =>
          of(answers.shift() ?? text(''), { type: 'finish', finish: 'stop' } as const).pipe(
            delay(10, scheduler),
          ),
      };
      const agent = createAgent({ model, tools: [spin], use: [insertAfter(acting, reflect())] });
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('30ms (a|)', {
        a: 'Done.',
      });
    });
  });
});
