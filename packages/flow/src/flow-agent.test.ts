import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  approval,
  createAgent,
  interruptOn,
  type MillraceError,
  requireApproval,
  suspend,
  text as texts,
  textOf,
  tool,
  toolOutput,
} from 'millrace';
import {
  finish,
  marbles,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from 'millrace/testing';
import { catchError, concat, delay, map, NEVER, of, take, tap, throwError } from 'rxjs';
import { play } from './flow.test-support.js';
import { flowAgent } from './flow-agent.js';
import { journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';

type Links = Readonly<Record<string, unknown>>;
const component = (component_name: string, params: object, links: Links = {}): object => ({
  component_name,
  params,
  ...links,
});
const say = (content: string, links?: Links): object => component('message', { content }, links);
const ask = (params: object = {}, links?: Links): object =>
  component('agent', { llm_id: 'm', ...params }, links);
/** A flow whose begin leads to all that nothing else leads to. */
const flow = (components: Readonly<Record<string, object>>, begin: readonly string[]): object => ({
  version: 1,
  name: 'f',
  components: { begin: component('begin', {}, { downstream: begin }), ...components },
});
const m = (...answers: readonly ScriptedAnswer[]) => ({ m: scriptedModel(...answers) });
const only = (id: string) => ({ upstream: [id] });

describe('flowAgent', () => {
  it.each([
    ['a canvas', (canvas: object) => canvas],
    ['a template', (canvas: object) => ({ id: 1, title: 'x', dsl: canvas })],
  ])('G6: names what converts %s of RAGFlow', (_, wrapped) => {
    const canvas = {
      components: { begin: { obj: { component_name: 'Begin', params: {} }, downstream: [] } },
      path: [],
    };
    expect(() => flowAgent(wrapped(canvas))).toThrow(/fromRagflow of '@millrace\/flow\/ragflow'/);
    expect(() => flowAgent({ version: 1, name: 'f', components: {} })).not.toThrow(/fromRagflow/);
  });

  it('G6: throws one config error that names all problems', () => {
    const document = flow({ a: ask({ llm_id: 'n' }), say: say('{{b@output}}', only('a')) }, ['a']);
    expect(() => flowAgent(document, { models: m() })).toThrow(
      'The flow cannot run, it has 2 problems:\n' +
        "- components.say.params.content: names 'b@output', but there is no component 'b'. The components before it are: a, begin.\n" +
        "- components.a.params.llm_id: names 'n', which is not one of the models of this program. The models are: m.",
    );
    expect(() => flowAgent({}, { model: 5 } as never)).toThrow("has no option 'model'");
    expect(() => flowAgent({}, { tools: {} } as never)).toThrow("'tools' must be a list of tools");
    expect(() => flowAgent({}, { concurrency: 0 })).toThrow("'concurrency' must be");
  });

  it('G6: says what its messages say, in the order of the graph', async () => {
    const document = flow(
      {
        last: say('3', { upstream: ['slow', 'first'] }),
        slow: ask({ prompts: [{ role: 'user', content: 'Think of 2.' }] }),
        first: say('1: {{sys.query}}'),
        second: say('{{slow@output}}', { upstream: ['slow'] }),
      },
      ['slow', 'first'],
    );
    const { reply, streamed } = await play(flowAgent(document, { models: m([text('2')]) }), 'Hi');
    expect(textOf(reply)).toBe('1: Hi\n\n3\n\n2');
    expect(streamed).toBe('');
    expect(reply).toMatchObject({ reason: 'answer', name: 'f' });
  });

  it('G6: hands what it was asked to an agent without prompts, pictures and all', async () => {
    const models = m([text('A mill.')]);
    const image = { type: 'image', source: { kind: 'url', url: 'https://x.test/a.png' } } as const;
    const agent = flowAgent(flow({ a: ask(), say: say('{{a@output}}', only('a')) }, ['a']), {
      models,
    });
    await play(agent, [{ type: 'text', text: 'What is it?' }, image]);
    expect(models.m.requests[0]?.messages).toMatchObject([
      { role: 'user', content: [{ text: 'What is it?' }, image] },
    ]);
  });

  it('G6: gives an agent its tools, rounds, temperature and form', async () => {
    const models = m([toolCall('clock')], [text('{"hour": 12}')]);
    const clock = tool({ name: 'clock', description: 'Tells.', run: () => '12' });
    const bell = tool({ name: 'bell', description: 'Rings.', run: () => '' });
    const output = {
      type: 'object',
      properties: { hour: { type: 'integer' } },
      required: ['hour'],
    };
    const document = flow(
      {
        a: ask({
          ...{ sys_prompt: 'You are {{sys.metadata.who}}.', tools: ['clock'], mcp: ['tower'] },
          ...{ output, max_rounds: 3, temperature: 0.5, max_tokens: 100 },
        }),
        say: say('{{a@output}}', only('a')),
      },
      ['a'],
    );
    const agent = flowAgent(document, { models, tools: [clock], mcp: { tower: [bell] } });
    const { reply } = await play(agent, 'When?', { metadata: { who: 'a clock' } });
    expect(models.m.requests[0]).toMatchObject({
      ...{ system: 'You are a clock.', temperature: 0.5, maxTokens: 100 },
      outputSchema: output,
      tools: [{ name: 'clock' }, { name: 'bell' }],
    });
    expect(reply.output).toEqual({ hour: 12 });
  });

  it('G6: an agent that does not answer in its form is an error of its component', async () => {
    const output = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const wrong = [text('none')];
    const document = flow({ a: ask({ output }), say: say('{{a@output.n}}', only('a')) }, ['a']);
    const agent = flowAgent(document, { models: m(wrong, wrong, wrong) });
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'invalidResponse',
      message: expect.stringMatching(/^In the component 'a': /u) as unknown,
    });
  });

  it('G6, I9: streams as its own what it can be sure to say, and only that', async () => {
    const either = component('switch', {
      cases: [
        {
          conditions: [{ value: '{{sys.query}}', operator: 'contains', operand: 'ONE' }],
          to: ['a'],
        },
      ],
      otherwise: ['b'],
    });
    const answers = [[text('An '), text('answer.')]];
    const streamedOf = async (components: Readonly<Record<string, object>>, begin: string[]) => {
      const agent = flowAgent(flow(components, begin), { models: m(...answers, ...answers) });
      const { streamed, reply } = await play(agent, 'one');
      return [streamed, textOf(reply)];
    };
    const [a, b] = [say('{{a@output}}', only('a')), say('{{b@output}}', only('b'))];
    const answer = 'An answer.';
    expect(await streamedOf({ a: ask(), x: a }, ['a'])).toEqual([answer, answer]);
    expect(await streamedOf({ s: either, a: ask(), b: ask(), x: a, y: b }, ['s'])).toEqual([
      ...[answer, answer],
    ]);
    expect(await streamedOf({ s: either, a: ask(), b: say('B'), x: a }, ['s'])).toEqual([
      ...[answer, answer],
    ]);
    // Something else is said, too; it may be said otherwise; it is not said as it is.
    expect((await streamedOf({ a: ask(), x: a, y: say('More') }, ['a', 'y']))[0]).toBe('');
    expect((await streamedOf({ a: ask({ on_error: { value: '' } }), x: a }, ['a']))[0]).toBe('');
    expect((await streamedOf({ a: ask(), x: say('{{a@output}}!', only('a')) }, ['a']))[0]).toBe('');
    const after = {
      a: ask(),
      c: component(
        'switch',
        { cases: [{ conditions: [{ value: '', operator: 'is empty' }], to: ['x'] }] },
        only('a'),
      ),
      x: say('{{a@output}}'),
    };
    expect(await streamedOf(after, ['a'])).toEqual(['', answer]);
  });

  it('G6: no answer is an error which says what to do', async () => {
    const either = component('switch', {
      cases: [{ conditions: [{ value: '{{sys.query}}', operator: 'is empty' }], to: ['say'] }],
    });
    const agent = flowAgent(flow({ either, say: say('Hello.') }, ['either']));
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'emptyAnswer',
      message: expect.stringContaining("The flow 'f' has no answer") as unknown,
    });
  });

  it.each([
    ['contains', 'A Mill', 'mill', true],
    ['not contains', 'A Mill', 'mill', false],
    ['equals', ' Mill ', 'mILL', true],
    ['not equals', 'mill', 'mills', true],
    ['starts with', 'Windmill', 'wind', true],
    ['ends with', 'Windmill', 'wind', false],
    ['is empty', '  ', undefined, true],
    ['is not empty', '0', undefined, true],
    ['>', '10', '9', true],
    ['>', '10', '10', false],
    ['≥', '1e1', '10.0', true],
    ['>=', '-1', '.5', false],
    ['<', '-10', '9', true],
    ['≤', '9', '9', true],
    ['<=', '9.5', '9', false],
    ['<', 'ten', '9', false],
    ['>', 'ten', '9', false],
    ['>', '0x10', '9', false],
    ['≥', '', '0', false],
  ])('G6: %s, of %j and %j, is %j', async (operator, value, operand, expected) => {
    const conditions = [
      { value: '{{sys.metadata.v}}', operator, ...(operand !== undefined && { operand }) },
    ];
    const s = component('switch', { cases: [{ conditions, to: ['yes'] }], otherwise: ['no'] });
    const agent = flowAgent(flow({ s, yes: say('yes'), no: say('no') }, ['s']));
    const reply = await agent.call('?', { metadata: { v: value } });
    expect(textOf(reply)).toBe(expected ? 'yes' : 'no');
  });

  it('G6: the first case that holds is taken, all its ways at the same time; with or, one condition is enough', async () => {
    const when = (operand: string) => ({ value: '{{sys.query}}', operator: 'contains', operand });
    const s = component('switch', {
      cases: [
        { conditions: [when('a'), when('b')], to: ['both', 'more'] },
        { conditions: [when('a'), when('b')], logic: 'or', to: ['one'] },
      ],
    });
    const parts = {
      s,
      both: say('both'),
      more: say('more'),
      one: say('one'),
      end: say('end', { upstream: ['both', 'one'] }),
    };
    const agent = flowAgent(flow(parts, ['s']));
    expect(textOf(await agent.call('ab'))).toBe('both\n\nmore\n\nend');
    expect(textOf(await agent.call('b'))).toBe('one\n\nend');
  });

  it('G6, X20: calls functions that the program has given, by what they are called there', async () => {
    const seen: unknown[] = [];
    const document = flow(
      {
        up: component('code', { function: 'upper', input: { text: '{{sys.query}}' } }),
        list: component(
          'code',
          { function: 'list', input: { of: ['{{up@output}}', 1] } },
          only('up'),
        ),
        later: component(
          'code',
          { function: 'later', input: { list: '{{list@output}}', first: '{{list@output.0}}' } },
          only('list'),
        ),
        say: say('{{later@output}} {{list@output.1}} {{list@output}} {{none@output}}', {
          upstream: ['later', 'none'],
        }),
        none: component('code', { function: 'none' }),
      },
      ['up', 'none'],
    );
    const agent = flowAgent(document, {
      code: {
        upper: ({ text: given }) => String(given).toUpperCase(),
        list: ({ of: items }) => items,
        later: (input, { callId }) => {
          seen.push(input, callId);
          return Promise.resolve('later');
        },
        none: () =>
          concat(
            NEVER.pipe(take(0)),
            of(() => 'a function'),
          ),
      },
    });
    const { reply, log } = await play(agent, '{{sys.query}}');
    expect(textOf(reply)).toBe('later 1 ["{{SYS.QUERY}}",1] ');
    expect(seen[0]).toEqual({ list: ['{{SYS.QUERY}}', 1], first: '{{SYS.QUERY}}' });
    expect(seen[1]).toMatch(/\/step\/later$/u);
    expect(log).toContain('up/postActing');
    expect(() =>
      flowAgent(
        flow({ c: component('code', { function: 'eval' }), say: say('x', only('c')) }, ['c']),
      ),
    ).toThrow("names 'eval', which is not one of the functions of this program");
  });

  it('G6: what a function throws is an error of its component, in its own words', async () => {
    const document = flow({ c: component('code', { function: 'c' }), say: say('x', only('c')) }, [
      'c',
    ]);
    const fails = flowAgent(document, {
      code: { c: () => throwError(() => new Error('no luck')) },
    });
    await expect(fails.call('?')).rejects.toMatchObject({
      code: 'tool',
      message: "In the component 'c': Failed: no luck",
    });
  });

  it('G6, X13: a tool gets what its schema takes, and nothing else', async () => {
    const seen: unknown[] = [];
    const add = tool({
      name: 'add',
      description: 'Adds.',
      input: jsonSchema({
        type: 'object',
        properties: {
          a: { type: 'integer' },
          b: { type: 'object', properties: { c: { type: 'integer' } } },
        },
        required: ['a'],
      }),
      run: (input) => {
        seen.push(input);
        return { sum: [input.a, input.b?.c] };
      },
    });
    const document = (input: object) =>
      flow(
        { t: component('tool', { tool: 'add', input }), say: say('{{t@output.sum.1}}', only('t')) },
        ['t'],
      );
    const agent = flowAgent(document({ a: 1, b: { c: 2, d: '{{sys.query}}' } }), { tools: [add] });
    expect(textOf(await agent.call('?'))).toBe('2');
    expect(seen).toEqual([{ a: 1, b: { c: 2 } }]);
    await expect(
      flowAgent(document({ a: '{{sys.query}}' }), { tools: [add] }).call('1'),
    ).rejects.toMatchObject({
      code: 'tool',
      message:
        'In the component \'t\': The arguments for add are invalid:\n- a: must be integer (received "1")',
    });
    expect(() => flowAgent(document({ c: 1 }), { tools: [add] })).toThrow(
      /input\.c: is not a parameter of 'add'.*\n.*input\.a: is missing: 'add' needs it/u,
    );
  });

  it('G6: the reply and the events have fixed messages, and the tools that ran', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'yes' });
    const document = flow(
      { t: component('tool', { tool: 'look' }), say: say('Hi: {{t@output}}', only('t')) },
      ['t'],
    );
    const { streamed, reply, events, log } = await play(
      flowAgent(document, { tools: [look] }),
      'Hi',
    );
    expect(streamed).toBe('');
    expect(textOf(reply)).toBe('Hi: yes');
    expect(reply.toolCalls).toMatchObject([{ agent: 't', name: 'look', output: 'yes' }]);
    expect(events.map(({ type }) => type)).toContain('postReasoning');
    expect(log).toContain('t/postActing');
  });

  it('G6: a tool is approved as ever, and one that suspends the call suspends the flow', async () => {
    const pay = requireApproval(
      tool({
        name: 'pay',
        description: 'Pays.',
        input: jsonSchema({ type: 'object', properties: { n: { type: 'number' } } }),
        run: () => 'paid',
      }),
      ({ input }) => input['n'] !== 2,
    );
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => suspend('Wait.') });
    const document = (params: object) =>
      flow({ t: component('tool', params), say: say('{{t@output}}', only('t')) }, ['t']);
    const call = (params: object, options = {}) =>
      flowAgent(document(params), { tools: [pay, wait] }).call('?', options);
    expect(textOf(await call({ tool: 'pay', input: { n: 1 } }))).toBe('paid');
    await expect(call({ tool: 'pay', input: { n: 2 } })).rejects.toThrow(
      'this call to pay was not approved',
    );
    await expect(
      call({ tool: 'pay' }, { use: [approval(() => ({ approved: false, reason: 'Too late.' }))] }),
    ).rejects.toThrow('Too late.');
    const { reason, suspensions } = await call({ tool: 'wait' });
    expect([reason, suspensions]).toMatchObject(['suspended', [{ request: 'Wait.' }]]);
  });

  it('G6: a component that fails ends the flow with its name, code and cause', async () => {
    const broken = scriptedModel(throwError(() => new Error('down')));
    const document = flow({ a: ask(), say: say('{{a@output}}', only('a')) }, ['a']);
    const error = await flowAgent(document, { models: { m: broken } })
      .call('?')
      .catch((it: unknown) => it as MillraceError);
    expect(error).toMatchObject({
      code: 'unknown',
      message: "In the component 'a': The model 'scripted' failed: down",
    });
  });

  it('G6: or takes another way, if it has one for errors', async () => {
    const broken = { m: scriptedModel(throwError(() => new Error('down'))) };
    const parts = {
      a: ask({ on_error: { value: 'sorry, {{sys.query}}', to: ['other'] } }),
      say: say('{{a@output}}', only('a')),
      other: say('Otherwise: {{a@output}}'),
    };
    const { reply, log } = await play(flowAgent(flow(parts, ['a']), { models: broken }), 'you');
    expect(textOf(reply)).toBe('Otherwise: sorry, you');
    expect(log).toContain('a/error');
    const fine = flowAgent(flow(parts, ['a']), { models: m([text('fine')]) });
    expect(textOf(await fine.call('you'))).toBe('fine');
  });

  it('G6: categories: the model reads what they are, and its choice is the output', async () => {
    const models = m([text('{"category":"constructor"}')], [text('{"category":"mill"}')]);
    const parts = {
      c: component('categorize', {
        llm_id: 'm',
        query: 'About: {{sys.query}}',
        categories: {
          mill: { description: 'Mills.', examples: ['A wheel.'], to: ['say'] },
          other: { description: 'Else.', to: ['no'] },
        },
      }),
      say: say('{{c@output}}'),
      no: say('no'),
    };
    const agent = flowAgent(flow(parts, ['c']), { models });
    expect(textOf(await agent.call('wheels'))).toBe('mill');
    expect(models.m.requests[0]?.system).toContain(
      '- mill: Mills.\n  - for example: A wheel.\n\n- other: Else.',
    );
    expect(models.m.requests[0]?.messages).toMatchObject([{ content: [text('About: wheels')] }]);
    expect(models.m.requests[0]?.outputSchema).toMatchObject({
      properties: { category: { enum: ['mill', 'other'] } },
    });
    const wrong = [text('{"category":"toString"}')];
    const lost = flowAgent(flow(parts, ['c']), { models: m(wrong, wrong, wrong) });
    await expect(lost.call('?')).rejects.toMatchObject({ code: 'invalidResponse' });
  });
});

describe('iterate', () => {
  const iterate = (params: object, inner: Readonly<Record<string, object>>, links?: Links) =>
    component(
      'iterate',
      {
        items: '{{sys.query}}',
        ...params,
        components: {
          each: component('begin', {}, { downstream: [Object.keys(inner)[0]] }),
          ...inner,
        },
      },
      links,
    );

  it.each([
    [{}, 'a\n\n b \r\nc', '1a|2b|3c'],
    [{}, '["a","b"]', '1a|2b'],
    [{}, '[{"x":1},[2],null]', '1{"x":1}|2[2]|3'],
    [{ delimiter: ';' }, 'a; b;;c', '1a|2b|3c'],
    [{ max_items: 2 }, '["a","b","c"]', '1a|2b'],
    [{}, '[]', ''],
  ])('G6: with %j, of %j, makes %j', async (params, query, expected) => {
    const parts = {
      i: iterate({ separator: '|', ...params }, { note: say('{{i@index}}{{i@item}}') }),
      say: say('<{{i@output}}>', only('i')),
    };
    expect(textOf(await flowAgent(flow(parts, ['i'])).call(query))).toBe(`<${expected}>`);
  });

  it('G6: collects values, and what it finds of the items around and the components before', async () => {
    const parts = {
      pre: component('code', { function: 'pre' }),
      i: iterate(
        { items: '{{pre@output}}', separator: '; ' },
        {
          j: iterate(
            { items: '{{i@item.list}}' },
            { inner: say('{{i@item.name}}{{j@item}}{{begin@output}}') },
          ),
          both: say('{{j@output}}', only('j')),
        },
        only('pre'),
      ),
      say: say('{{i@output}} / {{i@output.1.0}}', only('i')),
    };
    const renamed = JSON.parse(
      JSON.stringify(flow(parts, ['pre'])).replace(
        '"each":{"component_name":"begin","params":{},"downstream":["inner"]}',
        '"each2":{"component_name":"begin","params":{},"downstream":["inner"]}',
      ),
    ) as unknown;
    const pre = () => [
      { name: 'a', list: [1, 2] },
      { name: 'b', list: [3] },
    ];
    const { reply } = await play(flowAgent(renamed, { code: { pre } }), '!');
    expect(textOf(reply)).toBe('a1!\n\na2!; b3! / b3!');
  });

  it('G6: runs so many items at the same time, and keeps their order', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const sources = ['---(x|)', '-(x|)', '-(x|)'].map((it) => cold(it));
      const parts = {
        i: iterate(
          { concurrency: 2, items: '[0, 1, 2]', separator: '' },
          {
            wait: component('code', { function: 'wait', input: { at: '{{i@item}}' } }),
            note: say('{{i@item}}', only('wait')),
          },
        ),
        say: say('{{i@output}}', only('i')),
      };
      const agent = flowAgent(flow(parts, ['i']), {
        code: { wait: ({ at }) => sources[Number(at)] },
      });
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('---(r|)', {
        r: '012',
      });
      expectSubscriptions(sources[0]?.subscriptions ?? []).toBe('^--!');
      expectSubscriptions(sources[1]?.subscriptions ?? []).toBe('^!');
      expectSubscriptions(sources[2]?.subscriptions ?? []).toBe('-^!');
    });
  });

  it('G6: empty items are left out; an error of one is reported by both names', async () => {
    const some = component('switch', {
      cases: [{ conditions: [{ value: '{{i@item}}', operator: '>', operand: '1' }], to: ['note'] }],
    });
    const parts = {
      i: iterate({ items: '[1, 2, 3]' }, { some, note: say('{{i@item}}') }),
      say: say('{{i@output}} {{i@output.length}}{{i@output.0}}', only('i')),
    };
    expect(textOf(await flowAgent(flow(parts, ['i'])).call('?'))).toBe('2\n\n3 2');
    const failing = {
      i: iterate({}, { c: component('code', { function: 'c' }), note: say('x', only('c')) }),
      say: say('x', only('i')),
    };
    const agent = flowAgent(flow(failing, ['i']), {
      code: {
        c: () => {
          throw new Error('bad');
        },
      },
    });
    await expect(agent.call('?')).rejects.toThrow(
      "In the component 'i': In the component 'c': Failed: bad",
    );
  });
});

describe('the call of a flow', () => {
  const two = flow(
    {
      a: ask({ sys_prompt: 'A' }),
      b: ask({ sys_prompt: 'B' }),
      c: ask({ sys_prompt: 'C' }, { upstream: ['a', 'b'] }),
      say: say('{{c@output}}', only('c')),
    },
    ['a', 'b'],
  );

  it('G6, I5: leaving it ends the requests of all components in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const both = model(['-----(tf|)', '--------']);
      const agent = flowAgent(two, { models: { m: both } });
      expectObservable(agent.call$('?', { scheduler }), '^--!').toBe('----');
      expectSubscriptions(both.subscriptions[0] ?? []).toBe('^--!');
      expectSubscriptions(both.subscriptions[1] ?? []).toBe('^--!');
    });
  });

  it('G6, I5: an error of one ends the others in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const both = model(['---#', '--------']);
      const agent = flowAgent(two, { models: { m: both } });
      const code$ = agent.call$('?', { scheduler }).pipe(
        map(() => ''),
        catchError((error: unknown) => of((error as MillraceError).message)),
      );
      expectObservable(code$).toBe('---(e|)', {
        e: "In the component 'a': The model 'scripted' failed: error",
      });
      expectSubscriptions(both.subscriptions[1] ?? []).toBe('^--!');
    });
  });

  it('G6, S1: an interrupt ends it politely: what runs is ended, and nothing begins', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const both = model(['-(tf|)', '--------', '-(tf|)']);
      const agent = flowAgent(two, { models: { m: both } });
      const reason$ = agent
        .call$('?', { scheduler, use: [interruptOn(cold('---x'))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('---(r|)', { r: 'interrupted' });
      expectSubscriptions(both.subscriptions[1] ?? []).toBe('^--!');
      expectSubscriptions(both.subscriptions[2] ?? []).toBe([]);
    });
  });

  it('G6: streams the words of the agent at the end when they come', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const models = { m: model(['-(tf|)', '--(tf|)', '-t--(tf|)']) };
      const stream$ = flowAgent(two, { models }).stream$('?', { scheduler });
      expectObservable(stream$.pipe(texts())).toBe('---t--(t|)');
    });
  });

  it('G6: is an agent like others: a tool may call it, and its events have their paths', async () => {
    const inner = flowAgent(flow({ a: ask(), say: say('{{a@output}}', only('a')) }, ['a']), {
      models: m([text('Inner.')]),
    });
    const callFlow = tool({
      name: 'call_flow',
      description: 'Calls.',
      run: (_input, parent) => inner.call$('Go.', { parent }).pipe(map(textOf)),
    });
    const outer = createAgent({
      name: 'outer',
      model: scriptedModel([toolCall('call_flow')], [text('Outer.')]),
      tools: [callFlow],
    });
    const events: AgentEvent[] = [];
    outer.events$.subscribe((event) => events.push(event));
    const { streamed } = await play(outer, '?');
    expect(streamed).toBe('Outer.');
    const paths = new Set(events.map(({ agent }) => agent.join('/')));
    expect([...paths]).toEqual(['outer', 'outer/f', 'outer/f/a']);
    expect(new Set(events.map(({ rootId }) => rootId)).size).toBe(1);
  });

  it('G6: two concurrent calls share nothing', async () => {
    const slow = { m: scriptedModel(...Array.from({ length: 6 }, () => echo)) };
    const agent = flowAgent(two, { models: slow });
    const replies = await Promise.all([agent.call('one'), agent.call('two')]);
    expect(replies.map(textOf)).toEqual(['one', 'two']);
    const ids = replies.map(({ id }) => id.split('/')[0]);
    expect(ids[0]).not.toBe(ids[1]);
  });

  it('G6: what has been done is not done again by a call that is resumed', async () => {
    const steps = new Map<string, unknown>();
    const durable = journal((id, work) =>
      steps.has(id) ? of(steps.get(id)) : work().pipe(tap((result) => steps.set(id, result))),
    );
    const calls: string[] = [];
    const parts = {
      c: component('code', { function: 'count', input: { x: '{{sys.query}}' } }),
      i: component(
        'iterate',
        {
          items: '["p","q"]',
          components: {
            each: component('begin', {}, { downstream: ['a'] }),
            a: ask({ prompts: [{ role: 'user', content: '{{i@item}}' }] }),
            note: say('{{a@output}}', only('a')),
          },
        },
        only('c'),
      ),
      say: say('{{c@output}} {{i@output}}', { upstream: ['i'] }),
    };
    const agentOf = (models: ReturnType<typeof m>) =>
      flowAgent(flow(parts, ['c']), {
        models,
        use: [durable],
        code: {
          count: ({ x }) => {
            calls.push(String(x));
            return calls.length;
          },
        },
      });
    const reply = await agentOf(m(echo, echo)).call('?', { callId: 'call' });
    expect(textOf(reply)).toBe('1 p\n\nq');
    expect(textOf(await durable.resume(agentOf(m()), 'call'))).toBe('1 p\n\nq');
    expect(calls).toEqual(['?']);
  });

  it('G6: a long chain of components that take no time does not overflow the stack', async () => {
    const ids = Array.from({ length: 96 }, (_, index) => `c${index}`);
    const chain = Object.fromEntries(
      ids.map((id, at) => [
        id,
        component(
          'code',
          { function: 'next', input: { n: `{{${ids[at - 1] ?? 'a'}@output}}` } },
          only(ids[at - 1] ?? 'a'),
        ),
      ]),
    );
    const parts = { a: ask(), ...chain, say: say('{{c95@output}}', only('c95')) };
    const agent = flowAgent(flow(parts, ['a']), {
      models: { m: scriptedModel(concat(of(text('0')).pipe(delay(0)), of(finish()))) },
      code: { next: ({ n }) => Number(n) + 1 },
    });
    expect(textOf(await agent.call('?'))).toBe('96');
  });

  it('S1: an interrupt ends a flow politely, also in a tool or a function', () => {
    const slow = tool({ name: 'slow', description: 'Slow.', run: () => NEVER });
    const components = { tool: { tool: 'slow' }, code: { function: 'slow' } };
    for (const [kind, params] of Object.entries(components)) {
      marbles(({ cold, scheduler, expectObservable }) => {
        const document = flow({ c: component(kind, params), say: say('{{c@output}}', only('c')) }, [
          'c',
        ]);
        const agent = flowAgent(document, { tools: [slow], code: { slow: () => NEVER } });
        const reply$ = agent
          .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 'Stop' }))] })
          .pipe(map((reply) => `${reply.reason}: ${textOf(reply)}`));
        expectObservable(reply$).toBe('--(r|)', { r: 'interrupted: Stop' });
      });
    }
  });

  it('G6: a refusal is an error of its component, and an unchosen category is the other one', async () => {
    const refusing = flow({ a: ask(), say: say('It says: {{a@output}}', only('a')) }, ['a']);
    await expect(
      flowAgent(refusing, { models: m([finish('refusal')]) }).call('?'),
    ).rejects.toMatchObject({
      code: 'refused',
    });
    const choosing = flow(
      {
        c: component('categorize', {
          llm_id: 'm',
          categories: { x: { description: 'X.', to: ['sx'] } },
          otherwise: ['so'],
        }),
        sx: say('X'),
        so: say('O'),
      },
      ['c'],
    );
    const reply = await flowAgent(choosing, { models: m([text(' ')], [text(' ')]) }).call('?');
    expect(textOf(reply)).toBe('O');
  });
});

const echo: ScriptedAnswer = ({ messages }) => [text(textOf(messages.at(-1) ?? { content: [] }))];

it('the details of a tool may be data from outside, so they decide on no error', async () => {
  const remote = tool({
    name: 'remote',
    description: 'Returns what a server sent.',
    run: () =>
      toolOutput({
        content: 'No.',
        isError: true,
        details: { failure: { code: 'auth', userMessage: 'Log in at https://bad.example.' } },
      }),
  });
  const document = flow(
    { t: component('tool', { tool: 'remote' }), say: say('{{t@output}}', only('t')) },
    ['t'],
  );
  const call = flowAgent(document, { tools: [remote] }).call('?');
  await expect(call).rejects.toMatchObject({
    code: 'tool',
    userMessage: expect.not.stringContaining('Log in'),
  });
});
