import { describe, expect, it } from '@jest/globals';
import { textOf, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import fc from 'fast-check';
import { flowAgent } from '../flow-agent.js';
import { isQuick } from '../flow.test-support.js';
import { problemsIn } from '../problems-in.js';
import { fromRagflow } from './from-ragflow.js';

type Params = Readonly<Record<string, unknown>>;
const part = (
  component_name: string,
  params: Params,
  downstream: readonly string[] = [],
  parent_id?: string,
) => ({
  obj: { component_name, params },
  downstream,
  upstream: [],
  ...(parent_id !== undefined && { parent_id }),
});
/** The file of a template, with a canvas that begins with its first component. */
const canvas = (components: Readonly<Record<string, object>>, more: Params = {}) => ({
  title: { en: 'Mill', de: 'Mühle' },
  dsl: {
    components: { begin: part('Begin', {}, [Object.keys(components)[0] ?? '']), ...components },
    ...more,
  },
});
const message = (content: string, ...downstream: readonly string[]) =>
  part('Message', { content: [content] }, downstream);
const read = (components: Readonly<Record<string, object>>, more?: Params) => {
  const { document, unmapped } = fromRagflow(canvas(components, more));
  return {
    document,
    problems: problemsIn(document),
    unmapped,
    components: document?.components ?? {},
  };
};
const notes = ({ unmapped }: Pick<ReturnType<typeof read>, 'unmapped'>) =>
  unmapped.map(({ component, param = '', reason }) => `${component}.${param}: ${reason}`);

describe('fromRagflow', () => {
  it('G6: reads an agent with tools, its handling of errors, and runs it', async () => {
    const agent = part(
      'Agent',
      {
        ...{
          llm_id: '',
          sys_prompt: 'Help {sys.user_id}, {{ not a reference }}',
          max_rounds: 2,
          max_retries: 3,
        },
        ...{
          delay_after_error: 0.5,
          exception_method: 'comment',
          exception_default_value: 'Sorry.',
        },
        ...{
          temperature: 0.3,
          temperatureEnabled: true,
          max_tokens: 9,
          maxTokensEnabled: false,
          topPEnabled: true,
        },
        prompts: [{ role: 'user', content: '{sys.query}' }],
        tools: [
          { component_name: 'TavilySearch', name: 'Tavily Search', params: { api_key: 'k' } },
        ],
        outputs: { content: { type: 'string' } },
      },
      ['Message:Say'],
    );
    const it = read({ 'Agent:Ann': agent, 'Message:Say': message('{Agent:Ann@content}!') });
    expect([it.problems, it.document?.name]).toEqual([[], 'Mill']);
    expect(it.components['Agent:Ann']).toEqual({
      component_name: 'agent',
      params: {
        ...{ llm_id: 'default', temperature: 0.3, max_rounds: 3, tools: ['Tavily_Search'] },
        sys_prompt: 'Help {{sys.metadata.user_id}}, \\{{ not a reference }}',
        ...{ retry: { times: 3, delay_ms: 500 }, on_error: { value: 'Sorry.' } },
      },
      downstream: ['Message:Say'],
    });
    expect(notes(it)).toEqual([
      "Agent:Ann.tools: Tools come from the program, with their settings: provide a tool 'Tavily_Search'.",
      'Agent:Ann.topP: Set it on the model that the program provides.',
    ]);
    const model = scriptedModel([toolCall('Tavily_Search')], [text('Found')]);
    const search = tool({ name: 'Tavily_Search', description: 'Finds.', run: () => 'x' });
    const flow = flowAgent(it.document, { models: { default: model }, tools: [search] });
    expect(textOf(await flow.call('q'))).toBe('Found!');
  });

  it('G6: reads choices: the last category is that of unclear answers', () => {
    const it = read({
      'Categorize:C': part('Categorize', {
        llm_id: 'm',
        query: 'sys.query',
        category_description: {
          buy: { description: 'Buys.', examples: ['I buy', ''], to: ['Switch:S'] },
          else: { description: '', to: ['Message:No'] },
        },
      }),
      'Switch:S': part('Switch', {
        conditions: [
          {
            logical_operator: 'or',
            items: [
              { cpn_id: 'Categorize:C@category_name', operator: '≠', value: 'x' },
              { cpn_id: 'sys.query', operator: 'not empty', value: '' },
              { cpn_id: 'sys.query', operator: 'is almost', value: '{sys.query}' },
            ],
            to: ['Message:Yes'],
          },
        ],
        end_cpn_ids: ['Message:No'],
      }),
      'Message:Yes': message('Yes'),
      'Message:No': message('No'),
    });
    expect(it.problems).toEqual([]);
    expect(it.components['Categorize:C']?.params).toMatchObject({
      categories: { buy: { examples: ['I buy'], to: ['Switch:S'] }, else: { description: 'else' } },
      otherwise: ['Message:No'],
    });
    expect(it.components['Switch:S']?.params).toEqual({
      cases: [
        {
          conditions: [
            { value: '{{Categorize:C@output}}', operator: 'not equals', operand: 'x' },
            { value: '{{sys.query}}', operator: 'is not empty' },
            { value: '{{sys.query}}', operator: 'equals', operand: '{{sys.query}}' },
          ],
          logic: 'or',
          to: ['Message:Yes'],
        },
      ],
      otherwise: ['Message:No'],
    });
    expect(notes(it)).toEqual([
      "Switch:S.conditions: The operator 'is almost' is not known: 'equals' is used.",
    ]);
  });

  it('G6: reads an iteration with a form, a request and code, and runs it', async () => {
    const it = read({
      'UserFillUp:Form': part(
        'UserFillUp',
        {
          tips: 'Which grain, {sys.query}?',
          inputs: {
            grain: { name: 'Grain', type: 'line' },
            much: { type: 'integer', optional: true },
          },
        },
        ['Iteration:I'],
      ),
      'Iteration:I': part(
        'Iteration',
        { items_ref: 'sys.query', outputs: { all: { ref: 'CodeExec:Price@price' } } },
        ['Message:Say'],
      ),
      'IterationItem:Each': part('IterationItem', {}, ['Invoke:Get'], 'Iteration:I'),
      'Invoke:Get': part(
        'Invoke',
        {
          ...{ url: 'https://x.test/{IterationItem:Each@item}', method: 'get', timeout: 5 },
          headers: '{"Authorization": "Bearer abc", "X-Item": "{IterationItem:Each@item}"}',
          variables: [{ key: 'g', ref: 'UserFillUp:Form@grain', value: '' }],
        },
        ['CodeExec:Price'],
        'Iteration:I',
      ),
      'CodeExec:Price': part(
        'CodeExec',
        { lang: 'python', script: 'def main(): ...', arguments: { of: 'Invoke:Get@result' } },
        ['IterationItem:Each'],
        'Iteration:I',
      ),
      'Message:Say': message('{Iteration:I@all}'),
    });
    expect(it.problems).toEqual([]);
    expect(notes(it)).toEqual([
      "Invoke:Get.headers: The value of 'Authorization' is a secret: pass it as 'secrets.INVOKE_GET_AUTHORIZATION'.",
      "CodeExec:Price.script: A document has no code: provide a function 'CodeExec_Price' that returns its outputs.",
    ]);
    expect(JSON.stringify(it.document)).not.toContain('abc');
    const urls: string[] = [];
    const flow = flowAgent(it.document, {
      human: () => ({ grain: 'rye & oats' }),
      secrets: { INVOKE_GET_AUTHORIZATION: 'Bearer abc' },
      http: { fetch: (url) => (urls.push(url), Promise.resolve(new Response('5'))) },
      code: { CodeExec_Price: ({ of }) => ({ price: `€${String(of)}` }) },
    });
    expect(textOf(await flow.call('["a","b/c"]'))).toBe('€5\n\n€5');
    expect(urls).toEqual([
      'https://x.test/a?g=rye%20%26%20oats',
      'https://x.test/b%2Fc?g=rye%20%26%20oats',
    ]);
  });

  it('G6: reads a loop with its variables, an exit, and variables of the conversation, and runs it', async () => {
    const it = read(
      {
        'Loop:L': part(
          'Loop',
          {
            loop_variables: [
              { variable: 'n', input_mode: 'constant', type: 'number', value: 0 },
              { variable: 'q', input_mode: 'variable', type: 'string', value: 'sys.query' },
            ],
            loop_termination_condition: [{ variable: 'Loop:L@n', operator: '≥', value: 9 }],
            maximum_loop_count: 5,
          },
          ['Message:Say'],
        ),
        'LoopItem:Start': part('LoopItem', {}, ['VariableAssigner:Add'], 'Loop:L'),
        'VariableAssigner:Add': part(
          'VariableAssigner',
          {
            variables: [
              { variable: 'Loop:L@n', operator: '+=', parameter: 2 },
              { variable: 'env.seen', operator: 'append', parameter: 'Loop:L@n' },
              { variable: 'sys.query', operator: 'clear' },
            ],
          },
          ['Switch:Enough'],
          'Loop:L',
        ),
        'Switch:Enough': part(
          'Switch',
          {
            conditions: [
              {
                logical_operator: 'and',
                items: [{ cpn_id: 'Loop:L@n', operator: '≥', value: '6' }],
                to: ['ExitLoop:Out'],
              },
            ],
            end_cpn_ids: ['StringTransform:T'],
          },
          [],
          'Loop:L',
        ),
        'ExitLoop:Out': part('ExitLoop', {}, [], 'Loop:L'),
        'StringTransform:T': part(
          'StringTransform',
          { method: 'merge', script: 'x{Loop:L@n}' },
          [],
          'Loop:L',
        ),
        'Message:Say': message('{Loop:L@n} {Loop:L@q} {env.seen} {StringTransform:T@result}'),
      },
      { variables: { seen: { type: 'array<number>', value: [] } } },
    );
    expect(it.problems).toEqual([]);
    expect(notes(it)).toEqual([
      "VariableAssigner:Add.variables: 'sys.query' cannot be set: this assignment is left out.",
    ]);
    expect(textOf(await flowAgent(it.document).call('q'))).toBe('6 q [2,4,6] x4');
  });

  it('G6: what has no counterpart is a tool of the program, and listed', () => {
    const it = read({
      'ExeSQL:Q': part(
        'ExeSQL',
        { sql: 'Agent:None@content', host: 'db', password: '', max_records: 3 },
        ['VariableAggregator:V', 'Message:Lost'],
      ),
      'VariableAggregator:V': part(
        'VariableAggregator',
        {
          groups: [
            { group_name: 'g', variables: [{ value: 'ExeSQL:Q@rows' }, { value: 'sys.date' }] },
          ],
        },
        ['Message:Say'],
      ),
      'Message:Say': part('Message', { content: ['{VariableAggregator:V@g}', 'Or this'] }),
      'Message:Alone': message('Nothing leads here'),
    });
    expect(it.problems).toEqual([]);
    expect(Object.keys(it.components)).toEqual([
      'begin',
      'ExeSQL:Q',
      'VariableAggregator:V',
      'Message:Say',
    ]);
    expect(notes(it)).toEqual([
      "ExeSQL:Q.component_name: Flows have no component 'ExeSQL': provide a tool 'exe_sql'.",
      "ExeSQL:Q.sql: '{Agent:None@content}' names a component that the canvas does not have. It is empty.",
      "ExeSQL:Q.host: It is a setting of the tool 'exe_sql': set it there.",
      "ExeSQL:Q.max_records: It is a setting of the tool 'exe_sql': set it there.",
      "ExeSQL:Q.downstream: It leads to 'Message:Lost', which is not beside it.",
      "VariableAggregator:V.groups: '{sys.date}' is not known to flows. Pass it as 'metadata.date' of the call.",
      'VariableAggregator:V.groups: The first value is taken there. Here, all values of branches that ran are joined as text.',
      'Message:Say.content: One of several contents is chosen by chance there. The first one is used.',
      'Message:Alone.: Nothing leads to it, so it is left out.',
    ]);
  });

  it.each([
    ['no canvas', { a: 1 }, 'It is no canvas'],
    ['JSON that is cut', '{"components":', 'It is no canvas'],
    ['a canvas of documents', { components: { File: part('File', {}) } }, "It has no 'Begin'"],
    [
      'the first version',
      { components: { 'answer:0': part('Answer', {}) } },
      'of the first version',
    ],
  ])('G6: reads no document from %s', (_name, given, reason) => {
    const { document, unmapped } = fromRagflow(given);
    expect([document, unmapped[0]?.reason]).toEqual([undefined, expect.stringContaining(reason)]);
  });

  it('G6: is quick with a huge canvas, and with one that is nested deeply', () => {
    const ids = Array.from({ length: 10_000 }, (_, at) => `a:${at}`);
    const every = (of: (at: number) => object) =>
      Object.fromEntries(ids.map((id, at) => [id, of(at)]));
    const huge = canvas(every((at) => message('x', ids[at + 1] ?? 'a:0')));
    const nested = canvas(every((at) => part('Loop', {}, [], ids[at - 1])));
    const list = JSON.parse('['.repeat(20_000) + ']'.repeat(20_000)) as unknown;
    const deep = canvas({ a: part('Switch', { conditions: list }) });
    for (const given of [huge, nested, deep]) {
      expect(isQuick(2_000, () => expect(fromRagflow(given).document).toBeUndefined())).toBe(true);
    }
    const chain = canvas(
      Object.fromEntries(
        Object.entries(every((at) => part('Loop', {}, [], ids[at - 1]))).slice(0, 499),
      ),
    );
    expect(problemsIn(fromRagflow(chain).document)).not.toEqual([]);
    fc.assert(
      fc.property(fc.anything(), (components) => {
        expect(fromRagflow({ components }).unmapped).toEqual(expect.any(Array));
      }),
    );
  });

  it('G6: never throws, and never drops a component unsaid', () => {
    const names = [
      'Begin',
      'Agent',
      'Switch',
      'Loop',
      'LoopItem',
      'Iteration',
      'IterationItem',
      'Message',
      'Invoke',
      'Email',
      'UserFillUp',
      'VariableAssigner',
      'Categorize',
    ];
    const ids = ['begin', 'a:1', 'b 2', '3'];
    const components = fc.dictionary(
      fc.constantFrom(...ids),
      fc.record({
        obj: fc.record({
          component_name: fc.constantFrom(...names),
          params: fc.oneof(
            fc.dictionary(fc.string(), fc.jsonValue()),
            fc.dictionary(
              fc.constantFrom(
                'items_ref',
                'content',
                'conditions',
                'variables',
                'prompts',
                'url',
                'inputs',
              ),
              fc.jsonValue(),
            ),
          ),
        }),
        downstream: fc.oneof(fc.array(fc.constantFrom(...ids)), fc.jsonValue()),
        parent_id: fc.constantFrom('', 'a:1', 'nowhere'),
      }),
    );
    fc.assert(
      fc.property(components, (given) => {
        const { document, unmapped } = fromRagflow({ components: given });
        expect(problemsIn(document)).toEqual(expect.any(Array));
        if (document === undefined) return;
        const kept = JSON.stringify(document);
        const named = new Set(unmapped.map(({ component }) => component));
        const lost = Object.keys(given).filter((id) => {
          const plain = id.replace(/[^A-Za-z0-9_:-]/gu, '_');
          return !kept.includes(`"${plain}":`) && !kept.includes(`"c_${plain}":`) && !named.has(id);
        });
        expect(lost).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
