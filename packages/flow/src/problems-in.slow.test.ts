import { describe, expect, it } from '@jest/globals';
import { tool, type Tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel } from 'millrace/testing';
import fc from 'fast-check';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isQuick } from './flow.test-support.js';
import type { FlowProblem } from './problem.js';
import { checkedDocument, problemsIn } from './problems-in.js';
import type { FlowResources } from './resources.js';

const documents = join(import.meta.dirname, '..', 'documents');
const read = (name: string): unknown => JSON.parse(readFileSync(join(documents, name), 'utf8'));

/** A flow of these components between a begin and a message. */
const flow = (components: object, more: object = {}): object => ({
  version: 1,
  name: 'f',
  components: {
    begin: { component_name: 'begin', downstream: ['a'] },
    ...components,
    say: { component_name: 'message', params: { content: 'Done.' } },
  },
  ...more,
});
const agent = (params: object = {}, links: object = { downstream: ['say'] }): object => ({
  component_name: 'agent',
  params: { llm_id: 'm', ...params },
  ...links,
});
const told = (problems: readonly FlowProblem[]): readonly string[] =>
  problems.map(({ path, problem, suggestion = '' }) => `${path}: ${problem}. ${suggestion}`.trim());

const resources: FlowResources = {
  models: { small: scriptedModel(), large: scriptedModel() },
  tools: [tool({ name: 'find_order', description: 'Finds.', run: () => '' })],
  retrievers: {},
  code: { to_table: () => '' },
  mcp: { files: [] },
};

describe('problemsIn', () => {
  it('G6: finds nothing wrong with the documents of the package', () => {
    const names = readdirSync(documents);
    expect(names).toHaveLength(3);
    for (const name of names) expect(problemsIn(read(name))).toEqual([]);
  });

  it.each<[string, unknown, readonly string[]]>([
    ['what is no object', [], ['the document: is a list. It must be an object.']],
    [
      'an empty object',
      {},
      ['version: is missing.', 'name: is missing.', 'components: is missing.'],
    ],
    [
      'unknown keys, at every level, with what else is wrong',
      {
        ...flow({ a: agent({ sys_promt: 'Hi', tools: 'x' }, { downstrem: [] }) }),
        nmae: 'x',
      },
      [
        "nmae: is not known. Did you mean 'name'?",
        "components.a.params.sys_promt: is not known. Did you mean 'sys_prompt'?",
        'components.a.params.tools: is a string. It must be a list.',
        "components.a.downstrem: is not known. Did you mean 'downstream'?",
      ],
    ],
    [
      'unknown keys beside what only the whole shows',
      flow({ a: agent({ sys_promt: 'Hi', prompts: [{ role: 'user', content: '{{b@output}}' }] }) }),
      [
        "components.a.params.sys_promt: is not known. Did you mean 'sys_prompt'?",
        "components.a.params.prompts.0.content: names 'b@output', but there is no component 'b'. The components before it are: begin.",
      ],
    ],
    [
      'an unknown kind of component',
      flow({ a: { component_name: 'agnet', params: {}, downstream: ['say'] } }),
      [`components.a.component_name: is "agnet". Did you mean 'agent'?`],
    ],
    [
      'what is missing, and of another type',
      flow({
        a: { component_name: 'agent', params: { max_rounds: 0, temperature: 'hot' } },
        b: { component_name: 'message', upstream: ['a'] },
      }),
      [
        'components.a.params.llm_id: is missing.',
        'components.a.params.max_rounds: must be >= 1.',
        'components.a.params.temperature: is a string. It must be a number.',
        'components.b.params: is missing.',
      ],
    ],
    [
      'ids that no component has',
      flow({
        a: {
          component_name: 'switch',
          params: {
            cases: [
              {
                conditions: [{ value: '{{sys.query}}', operator: 'is empty' }],
                to: ['sya'],
              },
            ],
            otherwise: ['say'],
          },
        },
        b: agent({}, { upstream: ['nowhere_near'], downstream: ['say'] }),
      }),
      [
        "components.a.params.cases.0.to.0: names 'sya', which is not a component here. Did you mean 'say'?",
        "components.b.upstream.0: names 'nowhere_near', which is not a component here. The components are: begin, a, b, say.",
      ],
    ],
    [
      'ends of a way that contradict each other',
      flow({
        a: agent({}, { upstream: [], downstream: ['b'] }),
        b: agent({}, { downstream: ['say'] }),
        c: agent({}, { upstream: ['a'], downstream: ['say'] }),
      }),
      [
        "components.a.downstream: does not name 'c', although this component leads there. Add it, or remove the whole list.",
        "components.a.upstream: does not name 'begin', although that component leads here. Add it, or remove the whole list.",
      ],
    ],
    [
      'ways out of a switch that are none of its cases',
      flow({
        a: {
          component_name: 'switch',
          params: {
            cases: [{ conditions: [{ value: 'x', operator: 'is empty' }], to: ['b'] }],
          },
          downstream: ['b', 'say'],
        },
        b: agent({}, {}),
        c: agent({}, { upstream: ['a'], downstream: ['say'] }),
      }),
      [
        "components.a.downstream: does not name 'c', although this component leads there. Add it, or remove the whole list.",
        "components.a.downstream: links 'a' to 'say', but no choice of 'a' leads there. Add it to a 'to' of 'a', or remove it here.",
        "components.c.upstream: links 'a' to 'c', but no choice of 'a' leads there. Add it to a 'to' of 'a', or remove it here.",
      ],
    ],
    [
      'circles, named in order',
      flow({
        a: agent({}, { downstream: ['b'] }),
        b: agent({}, { downstream: ['c'] }),
        c: agent({}, { downstream: ['a', 'say'] }),
        d: agent({}, { upstream: ['begin'], downstream: ['d', 'say'] }),
      }),
      [
        "components.begin.downstream: does not name 'd', although this component leads there. Add it, or remove the whole list.",
        "components.d.upstream: does not name 'd', although that component leads here. Add it, or remove the whole list.",
        'components: form a cycle: a → b → c → a. Remove one of these links.',
        'components: form a cycle: d → d. Remove one of these links.',
      ],
    ],
    [
      'no begin, no message, and what is never reached',
      {
        version: 1,
        name: 'f',
        components: { a: agent({}, {}) },
      },
      [
        "components: have no begin component. Add a component with the component_name 'begin' before the first one.",
        'components: have no message component. Add a message component: its content is the answer.',
      ],
    ],
    [
      'two begins',
      flow({ start: { component_name: 'begin', downstream: ['a'] }, a: agent() }),
      ["components.start: is a second begin component after 'begin'. Keep only one."],
    ],
    [
      'templates that cannot be filled',
      flow({
        a: agent({
          sys_prompt: '{{say@output}} {{b}} {{a@outptu}} {{sys.qurey}} {{b@item}} {{',
          prompts: [{ role: 'user', content: '\\{{b}} {{begin@output}}' }],
        }),
        b: {
          component_name: 'switch',
          upstream: ['begin'],
          params: {
            cases: [{ conditions: [{ value: '{{a@output}}', operator: 'equals' }], to: ['c'] }],
          },
        },
        c: agent({ sys_prompt: '{{b@output}}' }, {}),
        begin: { component_name: 'begin', downstream: ['a', 'b'] },
      }),
      [
        "components.a.params.sys_prompt: has '{{b}}', which is not a valid reference. Did you mean '{{b@output}}'?",
        "components.a.params.sys_prompt: has '{{a@outptu}}', which asks for 'outptu'. Did you mean 'output'?",
        "components.a.params.sys_prompt: has '{{sys.qurey}}', which is not known. Did you mean 'sys.query'?",
        "components.a.params.sys_prompt: has a '{{' without a '}}'. For a literal '{{', write '\\{{'.",
        "components.a.params.sys_prompt: names 'say@output', which cannot have run before. The components before it are: begin.",
        "components.a.params.sys_prompt: names 'b@item', but is not inside an iteration with that id. There are no enclosing iterations.",
        "components.b.params.cases.0.conditions.0.value: names 'a@output', which cannot have run before. The components before it are: begin.",
        "components.c.params.sys_prompt: names 'b@output', but a switch has no output. Use what it compares.",
        "components.b.params.cases.0.conditions.0.operand: is missing. 'equals' compares the value with it.",
      ],
    ],
    [
      'an iteration whose insides are asked for, and what is wrong within it',
      flow({
        a: {
          component_name: 'iterate',
          params: {
            items: '{{sys.query}}',
            components: {
              each: { component_name: 'begin', downstream: ['read'] },
              read: agent({ sys_prompt: '{{a@item}} {{a@output}} {{begin@output}}' }, {}),
            },
          },
          downstream: ['b'],
        },
        b: agent({ sys_prompt: '{{read@output}} {{a@item}}' }),
      }),
      [
        'components.a.params.components: have no message component. Add a message component: its content is the answer.',
        "components.a.params.components.read.params.sys_prompt: names 'a@output', which cannot have run before. Did you mean '{{a@item}}'?",
        "components.b.params.sys_prompt: names 'read@output', which cannot have run before. The components before it are: a, begin.",
        "components.b.params.sys_prompt: names 'a@item', but is not inside an iteration with that id. There are no enclosing iterations.",
      ],
    ],
    [
      'an id that is used twice, at different depths',
      flow({
        a: {
          component_name: 'iterate',
          params: {
            items: 'x',
            components: {
              begin: { component_name: 'begin', downstream: ['note'] },
              note: { component_name: 'message', params: { content: 'x' } },
            },
          },
          downstream: ['say'],
        },
      }),
      [
        'components.a.params.components.begin: has the same id as another component. Rename one of them.',
      ],
    ],
    [
      'outputs that cannot be a schema, or are dangerous',
      flow({
        a: agent({ output: { type: 'object', properties: { x: { type: 'nonsense' } } } }),
        b: agent(
          { output: { type: 'object', properties: { pattern: { pattern: '(a+)+$' } } } },
          { upstream: ['begin'], downstream: ['say'] },
        ),
        begin: { component_name: 'begin' },
        c: agent(
          { output: { type: 'object', properties: { pattern: { type: 'string' } } } },
          {
            upstream: ['begin'],
          },
        ),
      }).valueOf(),
      [
        "components.a: is never reached. Nothing leads to it from 'begin'.",
        expect.stringMatching(
          /^components\.a\.params\.output: cannot be used: 'output' is not a valid JSON Schema: /u,
        ) as unknown as string,
        'components.b.params.output: uses patterns, which can block the process forever. Describe the format of a string in its description.',
      ],
    ],
  ])('G6: reports all problems: %s', (_name, document, expected) => {
    const problems = problemsIn(document);
    expect(told(problems).map((line) => line.replace(/^: /u, 'the document: '))).toEqual(expected);
  });

  it.each([
    ['query', "Did you mean '{{sys.query}}'?"],
    ['history', "Did you mean '{{sys.history}}'?"],
    ['metadata.user', "Did you mean '{{sys.metadata.user}}'?"],
    ['metadata', "Did you mean '{{sys.metadata.<key>}}'?"],
    ['begin', "Did you mean '{{begin@output}}'?"],
    ['begin.output', "Did you mean '{{begin@output}}'?"],
    ['begn.output.rows.0', "Did you mean '{{begin@output.rows.0}}'?"],
    ['begin.rows', "Did you mean '{{begin@output.rows}}'?"],
    ['begin.item.title', "Did you mean '{{begin@item.title}}'?"],
    ['elsewhere', "Write '{{sys.query}}', '{{var.name}}' or '{{component@output}}'."],
    ['"begin": 1', "Write '{{sys.query}}', '{{var.name}}' or '{{component@output}}'."],
  ])('G6: says what {{%s}} was meant to be', (written, suggestion) => {
    const [line] = told(problemsIn(flow({ a: agent({ sys_prompt: `{{${written}}}` }) })));
    expect(line).toContain(`'{{${written}}}', which is not a valid reference. ${suggestion}`);
  });

  it.each([
    ['includes', "Did you mean 'contains'?"],
    ['==', "Did you mean 'equals'?"],
    ['!=', "Did you mean 'not equals'?"],
    ['IS NOT', "Did you mean 'not equals'?"],
    ['notContains', "Did you mean 'not contains'?"],
    ['=>', "Did you mean '>='?"],
    [
      'resembles',
      'The possible values are: contains, not contains, equals, not equals, starts with, ends with, is empty, is not empty, >, <, ≥, ≤, >=, <=.',
    ],
  ])('G6: names the operator that %s was meant to be', (operator, suggestion) => {
    const conditions = [{ value: '{{sys.query}}', operator, operand: 'x' }];
    const params = { cases: [{ conditions, to: ['say'] }] };
    const [line] = told(problemsIn(flow({ a: { component_name: 'switch', params } })));
    expect(line).toContain(` is "${operator}". ${suggestion}`);
  });

  it.each([
    ['msg', 'message'],
    ['if', 'switch'],
    ['llm', 'agent'],
    ['foreach', 'iterate'],
    ['while', 'loop'],
    ['invoke', 'http'],
    ['Start', 'begin'],
  ])('G6: names the component that %s was meant to be', (component_name, meant) => {
    const [line] = told(problemsIn(flow({ a: { component_name, params: {} } })));
    expect(line).toContain(`is "${component_name}". Did you mean '${meant}'?`);
  });

  it('G6: reports a component without a way to it', () => {
    const each = {
      component_name: 'iterate',
      params: {
        items: '{{sys.query}}',
        components: {
          first: { component_name: 'begin', downstream: ['look'] },
          look: {
            component_name: 'message',
            params: { content: '{{each@item}}' },
            downstream: ['say'],
          },
        },
      },
      downstream: ['say'],
    };
    expect(
      told(problemsIn(flow({ a: agent({}, { downstream: ['each', 'look'] }), each }))),
    ).toEqual([
      "components.a.downstream.1: names 'look', which is inside 'each'. Links cannot cross the border of an iteration.",
      "components.each.params.components.look.downstream.0: names 'say', which is outside of this iteration. Links cannot cross the border of an iteration.",
    ]);
  });

  it('G6: holds the keys of a tool input to the schema of the tool', () => {
    const order = (name: string, schema: object): Tool =>
      tool({
        name,
        description: 'Orders.',
        input: jsonSchema({ type: 'object', ...schema }),
        run: () => '',
      });
    const item = { item: { type: 'string' }, count: { type: 'integer' } };
    const required = ['item'];
    const own = {
      tools: [
        order('strict', { properties: item, required, additionalProperties: false }),
        order('plain', { properties: item, required }),
        order('open', { properties: item, required, additionalProperties: true }),
        order('any', {}),
      ],
    };
    const given = (name: string, input?: object): readonly string[] => {
      const params = { tool: name, ...(input !== undefined && { input }) };
      const a = { component_name: 'tool', params, downstream: ['say'] };
      return told(problemsIn(flow({ a }), own));
    };
    const at = 'components.a.params.input';
    for (const name of ['strict', 'plain']) {
      expect(given(name, { itme: '{{sys.query}}', count: '{{sys.query}}' })).toEqual([
        `${at}.itme: is not a parameter of '${name}'. Did you mean 'item'?`,
        `${at}.item: is missing: '${name}' needs it.`,
      ]);
    }
    expect(given('open', { itme: 'x' })).toEqual([`${at}.item: is missing: 'open' needs it.`]);
    expect(given('plain')).toEqual([`${at}.item: is missing: 'plain' needs it.`]);
    expect(given('plain', { item: 5 })).toEqual([]);
    expect(given('any', { itme: 'x' })).toEqual([]);
  });

  it('G6: does not report what only follows from a misspelt id', () => {
    const document = flow({ a: agent({}, { downstream: ['sya'] }) });
    expect(told(problemsIn(document))).toEqual([
      "components.a.downstream.0: names 'sya', which is not a component here. Did you mean 'say'?",
    ]);
  });

  it('G6: looks up what the program gives, and says what was probably meant', () => {
    const document = flow({
      a: agent({ llm_id: 'smal', tools: ['find_order', 'find_oder'], mcp: ['files', 'mail'] }),
      b: {
        component_name: 'code',
        params: { function: 'toTable' },
        upstream: ['a'],
        downstream: ['c', 'd'],
      },
      c: { component_name: 'retrieval', params: { retriever_id: 'web' } },
      d: { component_name: 'tool', params: { tool: 'constructor' } },
    });
    const linked = JSON.parse(
      JSON.stringify(document).replace('["say"]', '["say","b"]'),
    ) as unknown;
    expect(problemsIn(linked)).toEqual([]);
    expect(told(problemsIn(linked, resources))).toEqual([
      "components.a.params.llm_id: names 'smal', which is not one of the models of this program. Did you mean 'small'?",
      "components.a.params.tools.1: names 'find_oder', which is not one of the tools of this program. Did you mean 'find_order'?",
      "components.a.params.mcp.1: names 'mail', which is not one of the MCP servers of this program. The MCP servers are: files.",
      "components.b.params.function: names 'toTable', which is not one of the functions of this program. Did you mean 'to_table'?",
      "components.c.params.retriever_id: names 'web', which is not one of the retrievers of this program. There are no retrievers.",
      "components.d.params.tool: names 'constructor', which is not one of the tools of this program. The tools are: find_order.",
    ]);
  });

  it('G6: refuses tools that an agent would have twice', () => {
    const document = flow({ a: agent({ llm_id: 'small', tools: ['find_order'], mcp: ['files'] }) });
    const own = resources.tools?.[0];
    const twice = { ...resources, mcp: { files: own === undefined ? [] : [own] } };
    expect(told(problemsIn(document, twice))).toEqual([
      "components.a.params.tools: cannot be used: Two tools are named 'find_order'. Rename one of them, or drop it.",
    ]);
  });

  it('G6: one config error has all of them, one line each', () => {
    const document = flow({ a: agent({ sys_promt: '' }), 'b b': agent() });
    expect(() => checkedDocument(document)).toThrow(
      expect.objectContaining({
        code: 'config',
        message: [
          'The flow cannot run, it has 2 problems:',
          "- components.b b: is not a valid id. An id is a letter, then letters, digits, '_', '-' and ':', up to 64 characters in total.",
          "- components.a.params.sys_promt: is not known. Did you mean 'sys_prompt'?",
        ].join('\n'),
      }),
    );
    const unknown = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`key${at}`, at]));
    const problems = problemsIn({ ...flow({ a: agent() }), ...unknown });
    expect(problems).toHaveLength(101);
    expect(problems.at(-1)).toEqual({ path: '', problem: 'has 200 more problems' });
  });

  it('X15: ids and keys that mean a prototype are like any other wrong ones', () => {
    const hostile = JSON.parse(
      `{"version":1,"name":"f","__proto__":{"polluted":1},"components":{
        "begin":{"component_name":"begin","downstream":["constructor"]},
        "__proto__":{"component_name":"message","params":{"content":"x"},"upstream":["begin"]},
        "constructor":{"component_name":"message","params":{"content":"{{toString@output}} {{__proto__@output}}"}},
        "toString":{"component_name":"hasOwnProperty","__proto__":{}}
      }}`,
    ) as unknown;
    const lines = told(problemsIn(hostile));
    expect(lines).toContain(
      '__proto__: is not known. The keys here are: $schema, version, name, description, variables, components.',
    );
    expect(lines).toContain(
      "components.__proto__: is not a valid id. An id is a letter, then letters, digits, '_', '-' and ':', up to 64 characters in total.",
    );
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    const inherited = { ...resources, models: Object.create({ m: scriptedModel() }) as object };
    const document = flow({ a: agent({ llm_id: 'm' }) });
    expect(told(problemsIn(document, inherited as FlowResources))).toHaveLength(1);
  });

  it('G6: bounds what a document may be', () => {
    const ids = Array.from({ length: 120 }, (_, index) => `c${index}`);
    const many = Object.fromEntries(ids.map((id) => [id, agent({}, { upstream: ['begin'] })]));
    expect(told(problemsIn(flow(many))).slice(0, 1)).toEqual([
      'components: must not have more than 100 properties.',
    ]);
    const inner = (half: string): object => ({
      component_name: 'iterate',
      params: {
        items: 'x',
        components: Object.fromEntries(
          ids.slice(0, 60).map((id) => [`${half}${id}`, agent({}, {})]),
        ),
      },
    });
    expect(told(problemsIn(flow({ a: inner('x'), b: inner('y') })))).toEqual([
      'components: are 124: more than 100.',
    ]);
    const nested = (depth: number): object => ({
      [`begin${depth}`]: { component_name: 'begin', downstream: [`i${depth}`] },
      [`i${depth}`]: {
        component_name: 'iterate',
        params: { items: 'x', components: depth === 0 ? flowOf() : nested(depth - 1) },
        downstream: [`m${depth}`],
      },
      [`m${depth}`]: { component_name: 'message', params: { content: 'x' } },
    });
    const flowOf = (): object => ({
      last: { component_name: 'begin', downstream: ['end'] },
      end: { component_name: 'message', params: { content: 'x' } },
    });
    expect(problemsIn({ version: 1, name: 'f', components: nested(2) })).toEqual([]);
    expect(told(problemsIn({ version: 1, name: 'f', components: nested(3) }))).toEqual([
      expect.stringMatching(
        /^components\..*\.i0\.params\.components: are nested more than 3 deep\.$/u,
      ),
    ]);
    let deep: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
    expect(told(problemsIn(deep))[0]).toMatch(/: is nested more than 40 deep\.$/u);
    const round: Record<string, unknown> = {};
    round['round'] = round;
    expect(told(problemsIn(round))[0]).toMatch(/: is nested more than 40 deep\.$/u);
    expect(told(problemsIn('x'.repeat(1_000_001)))[0]).toBe(
      ': has more than 1000000 characters of text.',
    );
    expect(told(problemsIn(Array(30).fill(Array(1_000).fill(1))))[0]).toBe(
      ': has more than 20000 values.',
    );
    expect(told(problemsIn([Array(1_001).fill(1)]))[0]).toBe('0: has more than 1000 items.');
    expect(told(problemsIn({ a: () => 1 }))[0]).toBe('a: is a function, which is not valid JSON.');
    expect(told(problemsIn({ a: NaN }))[0]).toBe('a: is NaN, which is not valid JSON.');
    expect(told(problemsIn(undefined))[0]).toBe(': is undefined, which is not valid JSON.');
    const trap = {
      get name() {
        throw new Error('gotcha');
      },
    };
    expect(told(problemsIn(trap))).toEqual([': cannot be read. Pass the result of JSON.parse.']);
  });

  it('X6: reports a very frequent problem quickly', () => {
    const ids = Array.from({ length: 900 }, (_, index) => `nowhere${index}`);
    const wide = Object.fromEntries(
      Array.from({ length: 20 }, (_, at) => [`c${at}`, agent({}, { downstream: ids })]),
    );
    const cases = Array.from({ length: 900 }, () => ({
      conditions: [{ value: 'x', operator: 'is empty' }],
      to: ['say', 'nowhere'],
    }));
    const dense = Object.fromEntries(
      Array.from({ length: 90 }, (_, at) => [
        `c${at}`,
        agent({}, { downstream: Array.from({ length: 89 - at }, (__, nth) => `c${at + nth + 1}`) }),
      ]),
    );
    const hostile = [
      flow(wide),
      flow({ a: { component_name: 'switch', params: { cases } } }),
      flow(dense),
      flow({ a: agent({ sys_prompt: '{{zzz@output}}'.repeat(60_000) }) }),
      flow({ a: agent({ sys_prompt: '{{a@outptu}}'.repeat(60_000) }) }),
      {
        ...flow({}),
        ...Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`k${at}`, 1])),
      },
    ];
    for (const document of hostile) {
      expect(isQuick(2_000, () => problemsIn(document, resources))).toBe(true);
    }
  });

  it('G6: for any JSON, it reports, and never throws', () => {
    const valid = readdirSync(documents).map(read);
    const words = fc.constantFrom(
      ...['components', 'component_name', 'params', 'begin', 'agent', 'switch', 'cases', 'to'],
      ...['upstream', 'downstream', '__proto__', 'constructor', '{{a@output}}', '{{', 'iterate'],
      ...['output', 'type', 'object', '$ref', '#', 'on_error', 'version', 'name'],
    );
    const anything = fc.jsonValue({ maxDepth: 4 });
    const mutated = fc
      .record({
        base: fc.constantFrom(...valid),
        at: fc.nat(200),
        key: words,
        value: fc.oneof(anything, words),
      })
      .map(({ base, at, key, value }) => {
        const copy = structuredClone(base);
        const places: Record<string, unknown>[] = [];
        const walk = (it: unknown): void => {
          if (typeof it !== 'object' || it === null) return;
          places.push(it as Record<string, unknown>);
          Object.values(it).forEach(walk);
        };
        walk(copy);
        const place = places[at % places.length] ?? {};
        const keys = Object.keys(place);
        Object.defineProperty(place, at % 3 === 0 ? key : (keys[at % (keys.length || 1)] ?? key), {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
        return copy;
      });
    fc.assert(
      fc.property(fc.oneof(anything, mutated, mutated, mutated), (document) => {
        for (const problem of problemsIn(document, resources)) {
          expect(problem.path).not.toContain('undefined');
          expect(problem.problem).not.toBe('');
        }
        try {
          checkedDocument(document, resources);
        } catch (error) {
          expect(error).toMatchObject({ name: 'MillraceError', code: 'config' });
        }
      }),
      { numRuns: 200 },
    );
  });
});
