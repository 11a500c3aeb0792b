import { describe, expect, it } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { from } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  logEvents,
  MillraceError,
  on,
  requireApproval,
  type Tool,
  tool,
  toolOutput,
} from '../index.js';
import { sessions } from '../layers/sessions/index.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';
import { leftAt } from './dying-driver.test-support.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
  replay$,
} from './index.js';
import { journalIn } from './stored-calls.test-support.js';

class Point {
  readonly x = 1;
  get twice() {
    return 2 * this.x;
  }
}
class Hidden {
  readonly #x = 1;
  get x() {
    return this.#x;
  }
}
class Money {
  toJSON() {
    return { euros: 5 };
  }
}
class Bag {
  readonly #items = ['a'];
  *[Symbol.iterator]() {
    yield* this.#items;
  }
}
const image = {
  type: 'image',
  source: { kind: 'base64', mediaType: 'image/png', data: 'QUJD' },
} as const;
const shared = { a: 1 };
const asText = (it: string) => [{ type: 'text', text: it }];

type Row = readonly [kind: string, returned: unknown, content: unknown, warns?: boolean];

const rows: readonly Row[] = [
  ['a string', 'x', asText('x')],
  ['nothing', undefined, asText('(no output)')],
  ['null', null, asText('null')],
  ['a number', 1.5, asText('1.5')],
  ['NaN', NaN, asText('NaN')],
  ['Infinity in a list', [1, Infinity, -0], asText('[1,"Infinity",0]')],
  ['a bigint', 2n ** 64n, asText('18446744073709551616')],
  ['a bigint in an object', { id: 2n ** 64n }, asText('{"id":"18446744073709551616"}')],
  ['a Map', new Map([['a', 1]]), asText('{"a":1}')],
  ['a Map with other keys', new Map([[1, new Map([['b', 2]])]]), asText('[[1,{"b":2}]]')],
  ['an empty Map', new Map(), asText('{}')],
  ['a Set', new Set([1, new Set(['a'])]), asText('[1,["a"]]')],
  ['a Set in an object', { tags: new Set(['a']) }, asText('{"tags":["a"]}')],
  ['a Map with __proto__', new Map([['__proto__', { bad: 1 }]]), asText('{"__proto__":{"bad":1}}')],
  ['a Date', new Date(0), asText('"1970-01-01T00:00:00.000Z"')],
  ['an invalid Date', { at: new Date(NaN) }, asText('{"at":"Invalid Date"}')],
  ['bytes', new Uint8Array([65, 66]), asText('{"base64":"QUI="}')],
  ['a Buffer', { file: Buffer.from('AB') }, asText('{"file":{"base64":"QUI="}}')],
  ['an ArrayBuffer', new Uint8Array([65, 66]).buffer, asText('{"base64":"QUI="}')],
  ['numbers', new Float64Array([0.5, NaN]), asText('[0.5,"NaN"]')],
  ['large numbers', new BigInt64Array([2n ** 60n]), asText('["1152921504606846976"]')],
  [
    'an Error in a list',
    [new RangeError('x', { cause: 'y' })],
    asText('[{"name":"RangeError","message":"x","cause":"y"}]'),
  ],
  [
    'an Error with a code',
    [Object.assign(new Error('x'), { code: 'E', config: { key: 'secret' } })],
    asText('[{"name":"Error","message":"x","code":"E"}]'),
  ],
  ['a pattern', { match: /a+/g }, asText('{"match":"/a+/g"}')],
  ['an address', new URL('http://a.example/'), asText('"http://a.example/"')],
  ['search parameters', new URLSearchParams('a=1'), asText('"a=1"')],
  ['headers', new Headers({ a: '1' }), asText('[["a","1"]]')],
  ['an instance with fields', new Point(), asText('{"x":1}')],
  ['an instance with toJSON', new Money(), asText('{"euros":5}')],
  ['an instance that can be iterated', new Bag(), asText('["a"]')],
  ['an instance without fields', new Hidden(), asText('"(a Hidden without fields)"'), true],
  [
    'a promise that was not awaited',
    { a: Promise.resolve(1) },
    asText('{"a":"(a Promise that was not awaited)"}'),
    true,
  ],
  ['a WeakMap', [new WeakMap()], asText('["(a WeakMap without fields)"]'), true],
  ['a function', () => 1, asText('(a function)')],
  ['a function in an object', { a: 1, run: () => 1 }, asText('{"a":1}'), true],
  ['a symbol in a list', [Symbol('a')], asText('[null]'), true],
  ['undefined in a list', [undefined, 1], asText('[null,1]')],
  ['undefined in an object', { a: undefined, b: 1 }, asText('{"b":1}')],
  [
    'an object without a prototype',
    Object.assign(Object.create(null), { a: 1 }),
    asText('{"a":1}'),
  ],
  ['an empty object', {}, asText('{}')],
  ['a shared object', [shared, shared], asText('[{"a":1},{"a":1}]')],
  ['boxed values', [Object(1), Object('a'), Object(false)], asText('[1,"a",false]')],
  ['an image', image, [image]],
  ['blocks', [{ type: 'text', text: 'here' }, image], [{ type: 'text', text: 'here' }, image]],
  ['strings and blocks', ['here', image], [{ type: 'text', text: 'here' }, image]],
  ['strings', ['a', 'b'], asText('["a","b"]')],
  [
    'records like blocks',
    [{ type: 'text', text: 'a', author: 'b' }],
    asText('[{"type":"text","text":"a","author":"b"}]'),
  ],
  ['a broken image', [{ type: 'image', source: {} }], asText('[{"type":"image","source":{}}]')],
  ['an emitted image', from([image]), [image]],
  ['an emitted Map', from([new Map([['a', 1]])]), asText('{"a":1}')],
];

const toolOf = (run: () => unknown): Tool => tool({ name: 't', description: 'T.', run });
const script = () => scriptedModel([toolCall('t')], [text('ok')]);

const resultIn = (messages: readonly { readonly role: string; readonly content: unknown }[] = []) =>
  messages.findLast(({ role }) => role === 'tool')?.content;

describe('T4: a value that a tool returns', () => {
  it.each(rows)(
    'is the same for the model, the reply, a resume and memory: %s',
    async (_, value, content, warns = false) => {
      const result = [{ type: 'tool_result', toolCallId: 'call_1_0', content, isError: false }];
      const model = scriptedModel([toolCall('t')], [text('ok')], [text('again')]);
      const agent = createAgent({ model, tools: [toolOf(() => value)] });
      const session = sessions(agent, { memory: inProcessMemory() }).open('u');
      const events = await record(session.stream$('?'));
      expect(resultIn(model.requests[1]?.messages)).toEqual(result);
      expect(events.filter(({ type }) => type === 'warning')).toHaveLength(warns ? 1 : 0);
      const { reply } = events.find((it) => it.type === 'postCall') ?? {};
      await session.call('again');
      expect(resultIn(model.requests[2]?.messages)).toEqual(result);

      const driver = await leftAt('1/0', (to: CallStoreDriver) =>
        createAgent({
          model: script(),
          tools: [toolOf(() => value)],
          use: [journal(createCallStore(to))],
        }).call$('?', { callId: 'c' }),
      );
      const later = scriptedModel([text('ok')]);
      const never = toolOf(() => {
        throw new Error('It ran again.');
      });
      const resumed = await journalIn(driver).resume(
        createAgent({ model: later, tools: [never], use: [journal(createCallStore(driver))] }),
        'c',
      );
      expect(resultIn(later.requests[0]?.messages)).toEqual(result);
      expect(resumed.toolCalls[0]?.output).toBe(reply?.toolCalls[0]?.output);
    },
  );

  it.each([
    ['a cycle', () => Object.assign(shared, { self: shared })],
    [
      'a Map in itself',
      () => {
        const map = new Map<string, unknown>();
        return map.set('self', map);
      },
    ],
    [
      'a getter that throws',
      () => ({
        get x() {
          throw new Error('no');
        },
      }),
    ],
    [
      'a boxed bigint with toJSON that throws',
      () => ({
        toJSON: () => {
          throw new Error('no');
        },
      }),
    ],
  ])('is an error if it has no JSON: %s', async (_, run) => {
    const reply = await createAgent({ model: script(), tools: [toolOf(run)] }).call('?');
    Reflect.deleteProperty(shared, 'self');
    expect(reply.toolCalls[0]).toMatchObject({ isError: true });
    expect(reply.toolCalls[0]?.output).toContain('cannot be converted to JSON');
  });

  it('has details that are stored in the same form', async () => {
    const details = { tags: new Set(['a']), at: new Map([['x', 1n]]) };
    const driver = inProcessCalls();
    const agent = createAgent({
      model: script(),
      tools: [toolOf(() => toolOutput({ content: 'x', details }))],
      use: [journal(createCallStore(driver))],
    });
    const events = await record(agent.stream$('?', { callId: 'c' }));
    expect(events.find((it) => it.type === 'postActing')?.result.details).toBe(details);
    const replayed = await record(replay$(createCallStore(driver), 'c', { speed: 1_000_000 }));
    expect(replayed.find((it) => it.type === 'postActing')?.result.details).toEqual({
      tags: ['a'],
      at: { x: '1' },
    });
  });
});

class Refused extends Error {
  override readonly name = 'Refused';
  readonly config = { authorization: 'Bearer s3cret' };
}
const cause = new Refused('upstream said no');
const failing = new TypeError('No such city', { cause });
const input = jsonSchema({ type: 'object' });
const throwing = (thrown: unknown) => () => {
  throw thrown;
};
const foreign: unknown = runInNewContext('new Error("foreign")');

describe('T9: the error of a tool', () => {
  it.each<readonly [string, () => unknown, unknown, string]>([
    ['thrown', throwing(failing), failing, 'Failed: No such city'],
    ['rejected', () => Promise.reject(failing), failing, 'Failed: No such city'],
    ['returned', () => failing, failing, 'Failed: No such city'],
    ['of another realm', throwing(foreign), foreign, 'Failed: foreign'],
    [
      'of a generator',
      function* () {
        yield 1;
        throw failing;
      },
      failing,
      'Failed: No such city',
    ],
    [
      'of an async generator',
      async function* () {
        yield await Promise.resolve(1);
        throw failing;
      },
      failing,
      'Failed: No such city',
    ],
  ])('is on postActing as it is: %s', async (_, run, error, output) => {
    const events = await record(
      createAgent({ model: script(), tools: [toolOf(run)] }).stream$('?'),
    );
    const after = events.find((it) => it.type === 'postActing');
    expect(after?.error).toBe(error);
    expect(after?.result).toMatchObject({ isError: true, content: asText(output) });
    expect(JSON.stringify(events)).not.toContain('s3cret');
    expect(JSON.stringify({ ...after })).not.toContain('stack');
  });

  it.each<readonly [string, unknown, string]>([
    ['a string', 'out of order', 'Failed: out of order'],
    ['nothing', undefined, 'Failed: undefined'],
    ['null', null, 'Failed: null'],
    ['an object with a message', { message: 'No such city' }, 'Failed: No such city'],
    ['an object', { code: 404 }, 'Failed: an object without a message was thrown'],
    ['several errors', new AggregateError([new Error('a'), new Error('b')]), 'Failed: a; b'],
  ])('has a message, and is an Error: %s', async (_, thrown, output) => {
    const tools = [toolOf(throwing(thrown))];
    const events = await record(createAgent({ model: script(), tools }).stream$('?'));
    const after = events.find((it) => it.type === 'postActing');
    expect(after?.result.content).toEqual(asText(output));
    expect(after?.error).toBeInstanceOf(Error);
    if (!(thrown instanceof Error)) expect(after?.error?.cause).toBe(thrown);
  });

  it('is kept through interceptors, a time-out, a transform and an approver', async () => {
    const transformed = {
      ...toolOf(() => 'x'),
      validation$: throwing(failing),
    };
    const edited = createAgent({
      model: script(),
      tools: [toolOf(throwing(failing))],
      use: [on('postActing', (it$) => it$)],
    });
    const byTransform = createAgent({ model: script(), tools: [transformed] });
    for (const agent of [edited, byTransform]) {
      const events = await record(agent.stream$('?'));
      expect(events.find((it) => it.type === 'postActing')?.error).toBe(failing);
    }
    const approved = requireApproval(
      tool({ name: 't', description: 'T.', input, run: () => 'x' }),
      throwing(failing),
    );
    const events = await record(createAgent({ model: script(), tools: [approved] }).stream$('?'));
    const handled = events.find((it) => it.type === 'handlerError');
    expect(handled?.error).toBeInstanceOf(MillraceError);
    expect(handled?.error.cause).toBe(failing);
  });

  it('is neither in a journal nor in a request', async () => {
    const driver = inProcessCalls();
    const model = script();
    const agent = createAgent({
      model,
      tools: [toolOf(throwing(failing))],
      use: [journal(createCallStore(driver))],
    });
    await agent.call('?', { callId: 'c' });
    const replayed = await record(replay$(createCallStore(driver), 'c', { speed: 1_000_000 }));
    const after = replayed.find((it) => it.type === 'postActing');
    expect(after).toBeDefined();
    expect(after?.error).toBeUndefined();
    const seen = JSON.stringify([replayed, model.requests]);
    for (const secret of ['s3cret', 'upstream said no', '.test.ts'])
      expect(seen).not.toContain(secret);
  });

  it('is logged with its stack and causes, and nothing else of it', async () => {
    const entries: unknown[] = [];
    const take = (fields: object): void => {
      entries.push(fields);
    };
    const logger = { error: take, warn: take, info: take, debug: take };
    const tools = [toolOf(throwing(failing))];
    await createAgent({ model: script(), tools, use: [logEvents(logger)] }).call('?');
    const [entry] = entries.filter((it) => JSON.stringify(it).includes('"postActing"'));
    expect(entry).toMatchObject({
      stack: expect.stringMatching(
        /^TypeError: No such city\n +at [^]*\nCaused by: (?:Refused|Error): upstream said no\n +at /,
      ),
    });
    expect(JSON.stringify(entries)).not.toContain('s3cret');
  });
});
