import { describe, expect, it } from '@jest/globals';
import { createAgent, isMillraceError } from './index.js';
import { scriptedModel, text } from './testing/index.js';

const fail = (value: unknown): never => {
  throw value;
};

/** Made on demand: a test runner would look at them. */
const thrown: Readonly<Record<string, () => unknown>> = {
  'an error': () => new Error('boom'),
  undefined: () => undefined,
  null: () => null,
  'a symbol': () => Symbol('x'),
  'an object without a prototype': () => Object.create(null),
  'a proxy that throws': () =>
    new Proxy(
      {},
      {
        get: () => fail(1),
        has: () => fail(2),
        ownKeys: () => fail(3),
        getPrototypeOf: () => fail(4),
        getOwnPropertyDescriptor: () => fail(5),
      },
    ),
};

const throwing = (name: string, value: unknown): object =>
  Object.defineProperty({ name: 'it' }, name, { enumerable: true, get: () => fail(value) });

const model = scriptedModel([text('a')]);

/** Options that throw when they are read. */
const places: Readonly<Record<string, (value: unknown) => object>> = {
  'the turn of a layer': (value) => ({ model, use: [{ name: 'l', turn: () => fail(value) }] }),
  'the name of a layer': (value) => ({ model, use: [throwing('name', value)] }),
  'the priority of a layer': (value) => ({ model, use: [throwing('priority', value)] }),
  'the call of a layer': (value) => ({ model, use: [throwing('call', value)] }),
  'the model': (value) => throwing('model', value),
  'the tools': (value) => ({ model, tools: [throwing('name', value)] }),
  'the limits': (value) => ({ model, limits: throwing('timeouts', value) }),
};

/** Not compared as objects: a failure would show what was thrown, which throws. */
const outcomeOf = (options: unknown): string => {
  try {
    createAgent(options as never);
    return 'an agent';
  } catch (cause) {
    return isMillraceError(cause) ? cause.code : 'something else';
  }
};

describe('I17: createAgent() throws a config error', () => {
  for (const [place, make] of Object.entries(places)) {
    it.each(Object.keys(thrown))(`if ${place} throws %s`, (kind) => {
      expect(outcomeOf(make(thrown[kind]?.()))).toBe('config');
    });
  }

  it.each(Object.keys(thrown).slice(1))('if a layer or the options are %s', (kind) => {
    expect(outcomeOf({ model, use: [thrown[kind]?.()] })).toBe('config');
    expect(outcomeOf(thrown[kind]?.())).toBe('config');
  });

  it.each<[what: string, layer: unknown]>([
    ['a number', 5],
    ['a string', 'layer'],
    ['a function', () => undefined],
    ['without a name', {}],
    ['without a name, with a part', { call: () => undefined }],
    ['with an empty name', { name: '' }],
    ['with a number as its name', { name: 5 }],
    ['without a priority that is a number', { name: 'l', priority: Number.NaN, call: () => 0 }],
    ['with an endless priority', { name: 'l', priority: Infinity, call: () => 0 }],
    ['whose turn returns nothing', { name: 'l', turn: () => undefined }],
    ['whose turn is a number', { name: 'l', turn: 5 }],
  ])('for a layer that is %s', (_what, layer) => {
    expect(outcomeOf({ model, use: [layer] })).toBe('config');
  });

  it.each(Object.keys(thrown))('of with() as well, if the name of a layer throws %s', (kind) => {
    const agent = createAgent({ model });
    let outcome = 'an agent';
    try {
      agent.with(throwing('name', thrown[kind]?.()) as never);
    } catch (cause) {
      outcome = isMillraceError(cause) ? cause.code : 'something else';
    }
    expect(outcome).toBe('config');
  });
});
