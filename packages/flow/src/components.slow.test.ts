import { describe, expect, it } from '@jest/globals';
import { interruptOn, MillraceError, only, type Reply, suspend, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { marbles, scriptedModel, text } from 'millrace/testing';
import fc from 'fast-check';
import {
  catchError,
  firstValueFrom,
  map,
  of,
  throwError,
  timer,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import { play } from './flow.test-support.js';
import { flowAgent, type FlowOptions } from './flow-agent.js';
import { FlowError } from './flow-error.js';
import { problemsIn } from './problems-in.js';
import type { HumanRequest } from './resources.js';

type Links = Readonly<Record<string, unknown>>;
const component = (
  component_name: string,
  params: object,
  ...upstream: readonly string[]
): object => ({
  component_name,
  params,
  ...(upstream.length > 0 && { upstream }),
});
const say = (content: string, ...upstream: readonly string[]): object =>
  component('message', { content }, ...upstream);
const code = (name: string, input: Links = {}, ...upstream: readonly string[]): object =>
  component('code', { function: name, input }, ...upstream);
const begin = (...downstream: readonly string[]): object => ({
  component_name: 'begin',
  downstream,
});
/** A flow whose begin leads to its first component. */
const flow = (components: Readonly<Record<string, object>>, variables: object = {}): object => ({
  version: 1,
  name: 'f',
  variables,
  components: { begin: begin(Object.keys(components)[0] ?? ''), ...components },
});
const answerOf = async (
  document: object,
  options: FlowOptions = {},
  input = 'q',
): Promise<string> => textOf(await flowAgent(document, options).call(input));
const until = (value: string, operator: string, operand?: string) => ({
  conditions: [{ value, operator, ...(operand !== undefined && { operand }) }],
});

/** Counts its calls. */
const counter = () => {
  let count = 0;
  return { next: () => (count += 1), count: () => count };
};

describe('loop', () => {
  const rounds = (params: object, inner: object = {}) =>
    flow({
      l: component('loop', {
        max_rounds: 5,
        ...params,
        components: {
          start: begin('n'),
          n: code('next', { last: '{{l@previous.n}}', at: '{{l@index}}' }),
          said: say('{{n@output}}', 'n'),
          ...inner,
        },
      }),
      say: say(
        '{{l@output}} {{l@done}} {{l@rounds.0.n}} {{l@rounds.1.n}} {{l@previous.n}} {{l@rounds.9.n}}',
        'l',
      ),
    });
  const next = { next: ({ last, at }: Links) => `${String(last)}${String(at)}` };

  it.each([
    [
      'its condition is true',
      { until: until('{{n@output}}', 'equals', '123') },
      '123 true 1 12 123 ',
    ],
    ['its rounds are used up', {}, '12345 false 1 12 12345 '],
    [
      'the first round',
      { max_rounds: 1, until: until('{{n@output}}', 'is empty') },
      '1 false 1  1 ',
    ],
    ['the index of the round is 2', { until: until('{{l@index}}', '≥', '2') }, '12 true 1 12 12 '],
  ])('G6: ends when %s, and each round has its outputs', async (_name, params, expected) => {
    expect(await answerOf(rounds(params), { code: next })).toBe(expected.trimEnd() + ' ');
  });

  it('G6: an error names the innermost component, and on_error of the loop handles it', async () => {
    const fails = { code: { next: () => throwError(() => new Error('No.')) } };
    const failure: unknown = await answerOf(rounds({}), fails).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(FlowError);
    expect(failure).toMatchObject({
      ...{ component: 'n', code: 'tool' },
      message: expect.stringMatching(
        /^In the component 'l': In the component 'n': .*No\./u,
      ) as unknown,
    });
    const handled = rounds({ on_error: { value: 'failed: {{l@error.code}}' } });
    expect(await answerOf(handled, fails)).toMatch(/^failed: tool/u);
  });

  it('G6: unsubscribing and an interrupt end the round that runs', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const slow = cold('---(a|)', { a: 'x' });
      const left = cold('---(a|)', { a: 'x' });
      const agent = (source: typeof slow) =>
        flowAgent(rounds({}), { code: { next: () => source } });
      const reason = map(({ reason }: Reply) => reason);
      expectObservable(agent(left).call$('q').pipe(reason), '-----!').toBe('------');
      expectSubscriptions(left.subscriptions).toBe(['^--!', '---^-!']);
      const stop$ = hot('----s');
      expectObservable(
        agent(slow)
          .call$('q', { use: [interruptOn(stop$)] })
          .pipe(reason),
      ).toBe('----(i|)', { i: 'interrupted' });
      expectSubscriptions(slow.subscriptions).toBe(['^--!', '---^!']);
    });
  });
});

describe('a document that grows without end', () => {
  const repeated = (inner: object, type = 'string', value: unknown = 'x') =>
    flow(
      {
        l: component('loop', { max_rounds: 100, components: { start: begin('x'), ...inner } }),
        say: say('end', 'l'),
      },
      { x: { type, default: value } },
    );
  const changes = (operator: string, value: string) => ({
    x: component('set', { assign: [{ variable: 'x', operator, value }] }),
    said: say('x', 'x'),
  });
  const each = (content: string) => ({
    x: component('iterate', {
      items: JSON.stringify(Array.from({ length: 100 }, String)),
      max_items: 100,
      components: { one: begin('big'), big: say(content) },
    }),
    said: say('x', 'x'),
  });

  it.each([
    ['a text that contains itself twice', repeated(changes('set', '{{var.x}}{{var.x}}'))],
    ['a list that is added to itself', repeated(changes('extend', '{{var.x}}'), 'array', [1])],
    ['a list that contains itself twice', repeated(changes('append', '{{var.x}}'), 'array', [[]])],
    ['rounds that contain all rounds', repeated({ x: say('{{l@rounds}}"') })],
    [
      'rounds of long texts',
      repeated({ x: say('{{var.x}}{{var.x}}{{var.x}}') }, 'string', 'x'.repeat(250_000)),
    ],
    [
      'items of long texts',
      repeated(each('{{var.x}}{{var.x}}{{var.x}}'), 'string', 'x'.repeat(250_000)),
    ],
  ])('G6: %s is an error, before the memory is full', async (_name, document) => {
    expect(problemsIn(document)).toEqual([]);
    await expect(answerOf(document)).rejects.toMatchObject({ code: 'tooLarge' });
  });

  it.each([
    [
      'a loop',
      component('loop', {
        max_rounds: 100,
        components: { b: begin('n'), n: code('work'), m: say('x', 'n') },
      }),
    ],
    [
      'an iteration',
      component('iterate', {
        items: JSON.stringify(Array.from({ length: 100 }, String)),
        max_items: 100,
        components: { b: begin('n'), n: code('work'), m: say('x', 'n') },
      }),
    ],
  ])('G6: %s that never waits does not block the process', (_name, repeating) => {
    const scheduler = new VirtualTimeScheduler();
    const busy = counter();
    const work = () => {
      busy.next();
      scheduler.frame += 10;
      return 'x';
    };
    const document = flow({ x: repeating, say: say('{{x@output}}', 'x') });
    const reasons: string[] = [];
    const options = { scheduler, use: [interruptOn(timer(15, scheduler))] };
    flowAgent(document, { code: { work } })
      .call$('q', options)
      .subscribe(({ reason }) => reasons.push(reason));
    scheduler.flush();
    expect(reasons).toEqual(['interrupted']);
    expect(busy.count()).toBeLessThan(5);
  });
});

describe('set', () => {
  const all = {
    text: { type: 'string', default: 'a' },
    count: { type: 'number' },
    list: { type: 'array', default: [1, 2] },
    flag: { type: 'boolean' },
    rec: { type: 'object', default: { a: 1 } },
  };
  const after = (assign: readonly object[], content: string) =>
    flow({ s: component('set', { assign }), say: say(content, 's') }, all);

  it.each([
    [[{ variable: 'text', value: '{{var.text}}{{sys.query}}' }], '{{var.text}}', 'aq'],
    [
      [
        { variable: 'count', operator: 'add', value: '2' },
        { variable: 'count', operator: 'multiply', value: 3 },
      ],
      '{{var.count}}',
      '6',
    ],
    [
      [
        { variable: 'count', operator: 'subtract', value: 1 },
        { variable: 'count', operator: 'divide', value: 2 },
      ],
      '{{var.count}}',
      '-0.5',
    ],
    [
      [{ variable: 'list', operator: 'append', value: '{{var.rec}}' }],
      '{{var.list}} {{var.list.2.a}}',
      '[1,2,{"a":1}] 1',
    ],
    [
      [{ variable: 'list', operator: 'extend', value: '{{var.list}}' }],
      '{{var.list}}',
      '[1,2,1,2]',
    ],
    [
      [
        { variable: 'list', operator: 'remove first' },
        { variable: 'list', operator: 'remove last' },
      ],
      '{{var.list}}',
      '[]',
    ],
    [
      [
        { variable: 'rec', operator: 'clear' },
        { variable: 'text', operator: 'clear' },
      ],
      '{{var.rec}}{{var.text}}',
      '{}',
    ],
    [
      [
        { variable: 'flag', value: 'true' },
        { variable: 'rec', value: '{"b": [2]}' },
      ],
      '{{var.flag}} {{var.rec.b.0}}',
      'true 2',
    ],
  ])('G6: %j makes %j %j', async (assign, content, expected) => {
    expect(await answerOf(after(assign, content))).toBe(expected);
  });

  it.each([
    [{ variable: 'count', value: '{{sys.query}}' }, "must be of the type 'number', not 'q'"],
    [{ variable: 'count', operator: 'divide', value: '{{var.count}}' }, 'cannot be divided by 0'],
    [
      { variable: 'list', operator: 'extend', value: '{{sys.query}}' },
      "must be of the type 'array'",
    ],
  ])('G6: refuses %j', async (assignment, expected) => {
    await expect(answerOf(after([assignment], ''))).rejects.toMatchObject({
      ...{ component: 's', code: 'invalidRequest' },
      message: expect.stringContaining(expected) as unknown,
    });
  });

  it('G6: of two parallel components, the later one in the graph counts, even if it is faster', async () => {
    const race = (slow: string) => ({
      version: 1,
      name: 'f',
      variables: { v: { type: 'string' } },
      components: {
        begin: begin('a', 'b'),
        a: code('wait', { ms: slow === 'a' ? 20 : 0 }),
        b: code('wait', { ms: slow === 'b' ? 20 : 0 }),
        setA: component('set', { assign: [{ variable: 'v', value: 'A' }] }, 'a'),
        setB: component('set', { assign: [{ variable: 'v', value: 'B' }] }, 'b'),
        say: say('{{var.v}}', 'setA', 'setB'),
      },
    });
    const wait = { wait: ({ ms }: Links) => timer(Number(ms)).pipe(map(() => 'x')) };
    expect(await answerOf(race('a'), { code: wait })).toBe('B');
    expect(await answerOf(race('b'), { code: wait })).toBe('B');
  });

  it('G6: a branch that is not taken keeps values; rounds of a loop pass them on, items do not', async () => {
    const set = (...upstream: readonly string[]) =>
      component('set', { assign: [{ variable: 'n', operator: 'add', value: 1 }] }, ...upstream);
    const inner = (start: string, id: string) => ({
      [start]: begin(`${id}s`),
      [`${id}s`]: set(),
      [`${id}m`]: say('{{var.n}}', `${id}s`),
    });
    const document = flow(
      {
        l: component('loop', { max_rounds: 3, components: inner('x', 'l') }),
        i: component('iterate', { items: '["a","b"]', components: inner('y', 'i') }, 'l'),
        w: component(
          'switch',
          { cases: [{ ...until('{{sys.query}}', 'equals', 'no'), to: ['s'] }], otherwise: ['say'] },
          'i',
        ),
        s: set(),
        say: {
          component_name: 'message',
          params: { content: '{{var.n}} {{i@output}}' },
          upstream: ['w', 's'],
        },
      },
      { n: { type: 'number' } },
    );
    expect(await answerOf(document)).toBe('3 ["4","4"]'.replace('["4","4"]', '4\n\n4'));
  });

  it('G6: variables and components are a state of the call', async () => {
    const agent = flowAgent(after([{ variable: 'count', operator: 'add', value: 1 }], 'x'));
    const states = await firstValueFrom(
      agent.stream$('q').pipe(
        only('stateChanged'),
        map(({ name, state, patches }) => ({ name, state, patches })),
        toArray(),
      ),
    );
    expect(
      states.map(({ patches }) => patches.map(({ path, value }) => [path.join('.'), value])),
    ).toEqual([
      [['components.begin', 'done']],
      [
        ['components.s', 'done'],
        ['variables.count', 1],
      ],
      [['components.say', 'done']],
    ]);
    expect(states.at(-1)).toMatchObject({
      name: 'flow',
      state: {
        components: { begin: 'done', s: 'done', say: 'done' },
        variables: { count: 1, text: 'a' },
      },
    });
  });
});

describe('human', () => {
  const asks = (params: object, content = '{{h@output}}') =>
    flow({
      h: component('human', { message: 'Send "{{sys.query}}"?', ...params }),
      say: say(content, 'h'),
    });
  const form = {
    fields: {
      ok: { type: 'boolean' },
      n: { type: 'number', label: 'How many' },
      kind: { type: 'choice', choices: ['Rye', 'Wheat'] },
      note: { type: 'text', required: false },
    },
  };

  it.each([
    ['any text', {}, ['Yes, do.'], '{{h@output}}', 'Yes, do.'],
    [
      'a choice, in any case',
      { choices: ['Yes', 'No'] },
      ['maybe', '', ' yes '],
      '{{h@output}}',
      'Yes',
    ],
    [
      'a form',
      form,
      [
        'no form',
        { ok: 'y' },
        { ok: 'y', n: '2', kind: 'oats' },
        { ok: 'y', n: '2', kind: 'rye', x: 1 },
        { ok: 'y', n: '2', kind: 'rye' },
      ],
      '{{h@output.ok}} {{h@output.n}} {{h@output.kind}}{{h@output.note}}',
      'true 2 Rye',
    ],
  ])(
    'G6: asks until the answer is valid: %s',
    async (_name, params, answers, content, expected) => {
      const asked: HumanRequest[] = [];
      const human = (request: HumanRequest) => {
        asked.push(request);
        return Promise.resolve(answers[asked.length - 1]);
      };
      expect(await answerOf(asks(params, content), { human })).toBe(expected);
      expect(asked).toHaveLength(answers.length);
      expect(asked[0]).toEqual({ component: 'h', message: 'Send "q"?', ...params });
      expect(asked.slice(1).every(({ problem = '' }) => problem !== '')).toBe(true);
    },
  );

  it('G6: an answer that stays invalid, and a person who does not answer, are errors', async () => {
    const options = { human: () => 'maybe' };
    await expect(answerOf(asks({ choices: ['Yes'] }), options)).rejects.toMatchObject({
      component: 'h',
    });
    marbles(({ expectObservable, expectSubscriptions, cold }) => {
      const never = cold<string>('-');
      const document = asks({ timeout_ms: 5, on_error: { value: 'nobody' } });
      const agent = flowAgent(document, { human: () => never });
      expectObservable(agent.call$('q').pipe(map(textOf))).toBe('-----(n|)', { n: 'nobody' });
      expectSubscriptions(never.subscriptions).toBe('^----!');
    });
  });

  it('T13, G6: without a program that asks, the call is suspended when the others are done', async () => {
    const document = {
      version: 1,
      name: 'f',
      components: {
        begin: begin('h', 'i', 'c'),
        h: component('human', { message: 'One?' }),
        i: component('iterate', {
          items: '["a"]',
          components: {
            x: begin('g'),
            g: component('human', { message: '{{i@item}}?' }),
            y: say('{{g@output}}', 'g'),
          },
        }),
        c: code('note'),
        say: say('{{h@output}}', 'h', 'c'),
      },
    };
    const { reply, events, log } = await play(
      flowAgent(document, { code: { note: () => 'noted' } }),
      'q',
    );
    expect(reply.reason).toBe('suspended');
    expect(
      reply.suspensions?.map(({ toolCall, request, from: by }) => [toolCall.id, request, by]),
    ).toEqual([
      ['h', { component: 'h', message: 'One?' }, 'program'],
      ['g-1', { component: 'g', message: 'a?' }, 'program'],
    ]);
    expect(log).toContain('c/postActing');
    const last = events.findLast(({ type }) => type === 'stateChanged');
    expect(last).toMatchObject({
      state: { components: { h: 'suspended', i: 'suspended', c: 'done', say: 'pending' } },
    });
  });

  it('T13: a tool of an agent in a loop suspends the flow, too', async () => {
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => suspend('later') });
    const document = flow({
      l: component('loop', {
        max_rounds: 3,
        components: {
          x: begin('t'),
          t: component('tool', { tool: 'wait' }),
          y: say('{{t@output}}', 't'),
        },
      }),
      say: say('{{l@output}}', 'l'),
    });
    const { reason, suspensions } = await flowAgent(document, { tools: [wait] }).call('q');
    expect([reason, suspensions?.length]).toEqual(['suspended', 1]);
  });
});

describe('errors', () => {
  const failing = (params: object, content: string) =>
    flow({
      c: component('code', { function: 'fail', ...params }),
      ok: say('fine {{c@error.code}}', 'c'),
      bad: component('message', { content }),
    });

  it('G6: on_error leads elsewhere, and its code and message for users can be said', async () => {
    const on_error = { value: 'none, {{c@error.code}}', to: ['bad'] };
    const document = failing({ on_error }, '{{c@output}}: {{c@error.code}}, {{c@error.message}}');
    const answered = await answerOf(document, {
      code: { fail: () => throwError(() => new Error('at 10.0.0.1')) },
    });
    expect(answered).toBe('none, tool: tool, Something went wrong.');
    expect(await answerOf(document, { code: { fail: () => 'x' } })).toBe('fine ');
  });

  it('G6: repeats runs with a growing delay, in one step with one key', () => {
    let used: readonly string[] = [];
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const keys: string[] = [];
      const broken = cold<string>('-#');
      const document = flow({
        c: component('code', { function: 'fail', retry: { times: 2, delay_ms: 3 } }),
        say: say('{{c@output}}', 'c'),
      });
      const fail = (_: unknown, { idempotencyKey }: { readonly idempotencyKey: string }) => {
        keys.push(idempotencyKey);
        return broken;
      };
      const agent = flowAgent(document, { code: { fail } });
      const failed$ = agent.call$('q').pipe(
        map(() => 'answered'),
        catchError((error: unknown) => of(error instanceof FlowError ? error.component : 'bug')),
      );
      expectObservable(failed$).toBe('------------(c|)');
      expectSubscriptions(broken.subscriptions).toBe(['^!', '----^!', '-----------^!']);
      used = keys;
    });
    expect(used).toHaveLength(3);
    expect(new Set(used).size).toBe(1);
  });

  it('G6: repeats the requests of a model, and the runs of a tool', async () => {
    const tries = counter();
    const flaky = tool({
      name: 'flaky',
      description: 'Fails first.',
      input: jsonSchema({ type: 'object' }),
      run: () => {
        if (tries.next() < 3) throw new Error('Not yet.');
        return `at ${tries.count()}`;
      },
    });
    const retry = { times: 2, delay_ms: 0 };
    const down = new MillraceError('server', 'down');
    const model = scriptedModel(
      throwError(() => down),
      [text('An answer.')],
    );
    const document = flow({
      t: component('tool', { tool: 'flaky', retry }),
      a: component('agent', { llm_id: 'm', retry }, 't'),
      say: say('{{t@output}}: {{a@output}}', 'a'),
    });
    expect(await answerOf(document, { tools: [flaky], models: { m: model } })).toBe(
      'at 3: An answer.',
    );
  });
});

describe('any document', () => {
  const ids = ['a', 'b', 'c', 'd'];
  const value = fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom('{{sys.query}}', 'x', '1', '{{var.n}}') },
    fc.constantFrom(
      '',
      '{{a@output}}',
      '{{b@error.code}}',
      '{{c@rounds.0.y}}',
      '{{',
      '{{secret.K}}',
    ),
  );
  const operator = fc.constantFrom('contains', 'equals', '>', 'starts with');
  const conditions = fc.array(fc.record({ value, operator, operand: value }), {
    minLength: 1,
    maxLength: 2,
  });
  const component_name = <Name extends string>(name: Name) => fc.constant(name);
  const loop = fc.record({
    max_rounds: fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    until: fc.record({ conditions }),
    components: fc.record({
      x: fc.constant({ component_name: 'begin', downstream: ['y'] }),
      y: fc.record({
        component_name: component_name('message'),
        params: fc.record({ content: value }),
      }),
    }),
  });
  const assignment = fc.record({
    variable: fc.constantFrom(...Array.from({ length: 9 }, () => 'n'), 'm'),
    value,
  });
  const part = fc.oneof(
    fc.record({ component_name: component_name('message'), params: fc.record({ content: value }) }),
    fc.record({
      component_name: component_name('code'),
      params: fc.record({
        function: fc.constantFrom('fails', 'works'),
        on_error: fc.record({ value }),
      }),
    }),
    fc.record({ component_name: component_name('loop'), params: loop }),
    fc.record({ component_name: component_name('human'), params: fc.record({ message: value }) }),
    fc.record({
      component_name: component_name('set'),
      params: fc.record({ assign: fc.tuple(assignment) }),
    }),
    fc.record({
      component_name: component_name('switch'),
      params: fc.record({
        cases: fc.tuple(fc.record({ conditions, to: fc.constant(['say']) })),
        otherwise: fc.constant(['say']),
      }),
    }),
  );
  /** A link to each later component, or not; sometimes also back, which is a cycle. */
  const links = fc.array(fc.boolean(), { minLength: 16, maxLength: 16 });
  const document = fc
    .tuple(fc.tuple(part, part, part, part), links, fc.integer({ min: 0, max: 9 }))
    .map(([parts, chosen, back]) => {
      const linked = parts.map((it, index) => {
        const later = ids.filter((_, at) => at > index && chosen[4 * index + at] === true);
        const downstream = [...later, 'say', ...(back === 0 && index === 3 ? ['a'] : [])];
        return [
          ids[index] ?? '',
          { ...it, ...(it.component_name !== 'switch' && { downstream }) },
        ] as const;
      });
      return {
        version: 1,
        name: 'f',
        variables: { n: { type: 'string' } },
        components: {
          begin: begin(...ids),
          ...Object.fromEntries(linked),
          say: say('{{var.n}}!'),
        },
      };
    });

  it('G6: has problems, or runs and ends', async () => {
    let ran = 0;
    await fc.assert(
      fc.asyncProperty(document, async (it) => {
        const fails = () => throwError(() => new Error('No.'));
        const resources = { code: { fails, works: () => 'w' }, human: () => 'yes' };
        if (problemsIn(it, resources).length > 0) {
          expect(() => flowAgent(it, resources)).toThrow('The flow cannot run');
          return;
        }
        ran += 1;
        const outcome = await flowAgent(it, resources)
          .call('q')
          .then(
            ({ reason }) => reason,
            (error: unknown) => (error instanceof MillraceError ? error.code : 'bug'),
          );
        expect(['answer', 'emptyAnswer', 'tool', 'invalidRequest']).toContain(outcome);
      }),
      { numRuns: 200 },
    );
    expect(ran).toBeGreaterThan(2);
  });
});
