import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { firstValueFrom, of } from 'rxjs';
import { createAgent } from '../../agent.js';
import type { ModelChunk } from '../../models/model.js';
import { textOf } from '../../values/message.js';
import { record, scriptedModel, text, thinking, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { toolOutput } from '../../values/tool-output.js';
import { redact } from './redact.js';
import { cutAt } from './text-window.test-support.js';
import { sessions } from '../sessions/index.js';

const card = /\b\d{4}(?: ?\d{4}){3}\b/;
const number = '4111 1111 1111 1111';

describe('redact', () => {
  it('X10: takes a secret out of all that the model is sent, and that memory and the reply hold', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => `Paid with ${number}.` });
    const model = scriptedModel(
      [toolCall('pay')],
      [text('You paid with 4111 11'), text('11 1111 1111, thanks.')],
    );
    const session = sessions(
      createAgent({
        model,
        instructions: `Never say ${number}.`,
        tools: [pay],
        use: [redact(card)],
      }),
    ).open('s');
    const events = await record(session.stream$(`My card is ${number}.`));
    const stored = await firstValueFrom(session.memory.load$());
    expect(JSON.stringify([model.requests, stored])).not.toContain('1 1');
    expect(JSON.stringify(events)).not.toContain('1 1');
    expect(stored.map(textOf)[0]).toBe('My card is [redacted].');
    expect(textOf(stored.at(-1) ?? { content: [] })).toBe('You paid with [redacted], thanks.');
    expect(model.requests[0]?.system).toBe('Never say [redacted].');
  });

  it('X10: takes it out of what memory had before, and of what is said to the running call', async () => {
    const model = scriptedModel([text('Hm.')]);
    const history = [
      { id: '1', role: 'user', content: [{ type: 'text', text: number }] },
      { id: '2', role: 'assistant', content: [{ type: 'text', text: number }] },
    ] as const;
    const agent = createAgent({
      model,
      use: [redact([card, 'password'], { replacement: (match) => `<${match.length}>` })],
    });
    await sessions(agent, {
      memory: () => ({ load$: () => [history] as never, append$: () => [undefined] as never }),
    })
      .open('s')
      .call('My password?');
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['<19>', '<19>', 'My <8>?']);
  });

  it('leaves thinking as it is: its provider has signed it', async () => {
    const signed = { ...thinking(`The card ${number}`), signature: 'sig' };
    const reply = await createAgent({
      model: scriptedModel([signed as never, text('Ok.')]),
      use: [redact(card)],
    }).call('?');
    expect(reply.content[0]).toMatchObject({
      type: 'thinking',
      text: `The card ${number}`,
      signature: 'sig',
    });
  });

  it('X10: however text is cut into deltas, nothing of a secret is shown, and nothing else is lost', async () => {
    const piece = fc.oneof(
      fc.constant('KEY-abcdef'),
      fc.constantFrom('a', ' ', 'KEY', '-abc', 'lorem ipsum '),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { minLength: 1 }),
        fc.array(fc.nat(12)),
        async (pieces, sizes) => {
          const whole = pieces.join('');
          const chunks = cutAt(whole, sizes).map(text);
          const agent = createAgent({
            model: scriptedModel(chunks),
            use: [redact(/KEY-abcdef/, { window: 12 })],
          });
          const events = await record(agent.stream$('?')).catch(() => []);
          const shown = events
            .flatMap((event) => (event.type === 'reasoningChunk' ? [event.delta] : []))
            .join('');
          if (whole.trim() !== '') expect(shown).toBe(whole.replace(/KEY-abcdef/g, '[redacted]'));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('X10: takes it out of the closing request and its answer too', async () => {
    const model = scriptedModel([toolCall('none', {}, 'n')], [text(`It is ${number}.`)]);
    const history = [
      { id: '1', role: 'user', content: [{ type: 'text', text: number }] },
      { id: '2', role: 'assistant', content: [{ type: 'text', text: 'Ok.' }] },
    ] as const;
    const remembering = createAgent({ model, use: [redact(card)] });
    const reply = await sessions(remembering, {
      memory: () => ({ load$: () => [history] as never, append$: () => [undefined] as never }),
    })
      .open('s')
      .call('?', { limits: { maxIterations: 1 } });
    expect(textOf(reply)).toBe('It is [redacted].');
    expect(JSON.stringify(model.requests)).not.toContain('1 1');
  });

  it('X10: what is longer than the window may be shown in part, but is not stored', async () => {
    const long = `KEY${'x'.repeat(100)}`;
    const agent = createAgent({
      model: scriptedModel(Array.from(long, (it) => text(it))),
      use: [redact(/KEYx{100}/, { window: 4 })],
    });
    expect(textOf(await agent.call('?'))).toBe('[redacted]');
  });

  it('sees what stands before the window: no word is taken for the end of another', async () => {
    const agent = createAgent({
      model: scriptedModel(Array.from('a monkey, a key', (it) => text(it))),
      use: [redact(/\bkey\b/, { window: 4 })],
    });
    const events = await record(agent.stream$('?'));
    const shown = events.flatMap((it) => (it.type === 'reasoningChunk' ? [it.delta] : [])).join('');
    expect(shown).toBe('a monkey, a [redacted]');
  });

  it('X10: a match far longer than the window is removed to its end, from the stream and from memory', async () => {
    const long = `The key is sk-${'abcdefg'.repeat(100)}. Keep it.`;
    const session = sessions(
      createAgent({
        model: scriptedModel(Array.from(long, (it) => text(it))),
        use: [redact(/sk-[a-z]+/)],
      }),
    ).open('s');
    const events = await record(session.stream$('?'));
    const shown = events.flatMap((it) => (it.type === 'reasoningChunk' ? [it.delta] : [])).join('');
    expect(shown).toBe('The key is [redacted]. Keep it.');
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(textOf)).toEqual(['?', shown]);
  });

  it('H8: covers the progress of a tool, also in pieces, and the details of its result', async () => {
    const secret = 'KEY-abcdef';
    class Found {
      readonly key = secret;
    }
    const search = tool({
      name: 'search',
      description: 'Searches.',
      run: () =>
        of(
          'The key is KE',
          'Y-abc',
          `def. ${'x'.repeat(20)}`,
          { found: [new Found(), 7], at: new Map([[secret, 1]]) },
          toolOutput({
            content: `It is ${secret}.`,
            details: { log: [`a ${secret}`], cause: new Error(secret), bytes: new Uint8Array(2) },
          }),
        ),
    });
    const model = scriptedModel([toolCall('search')], [text('Done.')]);
    const agent = createAgent({
      model,
      tools: [search],
      use: [redact(/KEY-[a-f]+/, { window: 12 })],
    });
    const events = await record(agent.stream$('?'));
    const shown = events.flatMap((it) => (it.type === 'actingChunk' ? [it.value] : []));
    const texts = shown.filter((it) => typeof it === 'string').join('');
    expect(texts).toMatch(/^The key is \[redacted\]\. x+$/);
    expect(shown.at(-1)).toEqual({ found: [{ key: '[redacted]' }, 7], at: [['[redacted]', 1]] });
    const done = events.find((it) => it.type === 'postActing');
    expect(done?.result.details).toMatchObject({
      log: ['a [redacted]'],
      cause: { message: '[redacted]' },
      bytes: new Uint8Array(2),
    });
    expect(inspect(events, { depth: 20 })).not.toContain(secret);
  });

  describe('H8: what is shown of a tool is what was looked at', () => {
    const secret = 'KEY-abcdef';
    /** Emits a value as progress and as the details of a result, and gives what subscribers see of both. */
    const shown = async (value: unknown): Promise<readonly unknown[]> => {
      const show = tool({
        name: 'show',
        description: 'Shows.',
        run: () => of(value, toolOutput({ content: 'Ok.', details: { value } })),
      });
      const events = await record(
        createAgent({
          model: scriptedModel([toolCall('show')], [text('Done.')]),
          tools: [show],
          use: [redact([/KEY-[a-f]+/, /^hunter2$/])],
        }).stream$('?'),
      );
      return events.flatMap((it) => {
        if (it.type === 'actingChunk') return [it.value];
        const { details } = it.type === 'postActing' ? it.result : {};
        return details === undefined ? [] : [(details as { value: unknown }).value];
      });
    };
    class Sealed {
      readonly #key = secret;
      get key() {
        return this.#key;
      }
      toString() {
        return this.#key;
      }
    }
    class Written extends Sealed {
      toJSON() {
        return { key: this.key };
      }
    }
    class Failure extends Error {
      readonly #key = secret;
      get key() {
        return this.#key;
      }
    }
    const match = /(?<key>[a-z]+) is/.exec(`key is ${secret}`) ?? [];
    const own = <T extends object>(value: T, more: object = { key: secret }): T =>
      Object.assign(value, more);
    const bytes = new TextEncoder().encode(secret);

    it.each<readonly [string, unknown]>([
      ['an own field of an Error', own(new Error('Failed.'))],
      ['the stack of an Error', own(new Error('Failed.'), { stack: secret })],
      ['an Error whose class shows it', new Failure('Failed.')],
      ['an Error that is its match as a whole', new Error('hunter2')],
      ['one of the errors of an AggregateError', new AggregateError([new Error(secret)], 'All.')],
      ['the cause of a cause', new Error('A', { cause: new Error('B', { cause: secret }) })],
      ['a URL', new URL(`https://example.org/?key=${secret}`)],
      ['a URLSearchParams', new URLSearchParams({ key: secret })],
      ['a Headers', new Headers({ key: secret })],
      ['a getter of a class', new Sealed()],
      ['what an object is as JSON', new Written()],
      ['an object with such a one inside', { list: [new Map([['it', new Written()]])] }],
      ['a field whose key is a symbol', { [Symbol('key')]: secret }],
      ['a key that is a symbol', { [Symbol(secret)]: 1 }],
      ['a symbol', [Symbol(secret)]],
      ['a field that is not enumerable', Object.defineProperty({}, 'key', { value: secret })],
      ['an own field of a list', match],
      ['an own field of a Map', own(new Map())],
      ['an own field of a Date', own(new Date(0))],
      ['an own field of a function', own(() => secret)],
      ['a String', Object(secret)],
      ['a Uint8Array', bytes],
      ['an ArrayBuffer', bytes.buffer],
      ['a DataView', new DataView(bytes.buffer)],
      ['a Buffer', Buffer.from(secret)],
    ])('%s', async (_, value) => {
      const all = await shown(value);
      expect(all).toHaveLength(2);
      for (const each of all) {
        const key = Object(each).key as unknown;
        const form = inspect([each, String(each), key], { depth: 20, showHidden: true });
        expect(form).not.toMatch(/KEY-|4b 45 59|hunter2/);
        expect(JSON.stringify(each) ?? '').not.toMatch(/KEY-|75,69,89|hunter2/);
      }
    });

    it('a getter that says something else the next time', async () => {
      const state = { asked: 0 };
      const turning = {
        get key() {
          return (state.asked += 1) > 1 ? secret : 'nothing';
        },
      };
      expect((await shown([turning]))[0]).toEqual([{ key: 'nothing' }]);
    });

    it.each<readonly [string, unknown]>([
      ['a plain object', { a: [1, 'b', null, undefined, NaN, 7n, { c: new Date(0) }] }],
      ['one without a prototype', Object.assign(Object.create(null) as object, { a: 1 })],
      ['a Map', new Map([['a', new Set([1])]])],
      ['bytes', [Buffer.from('abc'), new Float32Array(2)]],
    ])('without a match, this stays as it is: %s', async (_, value) => {
      for (const each of await shown(value)) expect(each).toBe(value);
    });

    it.each<readonly [string, unknown, unknown]>([
      ['a URL', new URL('https://example.org/a'), 'https://example.org/a'],
      ['a URLSearchParams', new URLSearchParams({ a: 'b' }), [['a', 'b']]],
      ['a Headers', new Headers({ a: 'b' }), [['a', 'b']]],
      ['what says its JSON', { at: new Written() }, { at: { key: '[redacted]' } }],
      ['bytes with a match', [Buffer.from(`a ${secret}`)], ['a [redacted]']],
      ['a symbol and a function', [Symbol('a'), () => 1], [undefined, undefined]],
    ])('the form of %s', async (_, value, form) => {
      expect(await shown(value)).toEqual([form, form]);
    });

    it('an Error is one with the same name, message, stack, cause and fields', async () => {
      for (const error of [new TypeError('Failed.'), new Failure('Failed.')]) {
        const { name, message, stack } = error;
        for (const each of await shown(own(error, { cause: secret, status: 401 }))) {
          expect(each).toBeInstanceOf(Error);
          expect(each).not.toBeInstanceOf(Failure);
          expect(each).toMatchObject({ name, message, stack, cause: '[redacted]', status: 401 });
        }
      }
    });

    it('what contains itself, or is what its JSON is, ends', async () => {
      const loop: { self?: unknown; key: string } = { key: secret };
      loop.self = loop;
      const error = own(new Error(secret), { loop });
      error.cause = error;
      const same = { toJSON: (): unknown => same };
      class Endless {
        toJSON() {
          return new Endless();
        }
      }
      const [first] = await shown([loop, error, same, new Endless()]);
      expect(first).toMatchObject([
        { key: '[redacted]', self: '[nested]' },
        { message: '[redacted]', cause: '[nested]', loop: { self: '[nested]' } },
        '[nested]',
        '[nested]',
      ]);
      const causes = Array.from({ length: 60 }).reduce<Error>(
        (cause) => new Failure(secret, { cause }),
        new Failure(secret),
      );
      expect(inspect(await shown(causes), { depth: 99 })).not.toContain(secret);
    });
  });

  it.each<readonly [string, readonly ModelChunk[]]>([
    ['the cited text', [{ type: 'citation', citation: { citedText: number } }]],
    ['the title of a source', [{ type: 'citation', citation: { title: number } }]],
    ['the URL of a source', [{ type: 'citation', citation: { url: `https://a.b/${number}` } }]],
    [
      'what a vendor keeps of a citation',
      [{ type: 'citation', citation: { vendorData: { vendor: 'A', data: { quote: number } } } }],
    ],
    [
      'a block of a vendor',
      [
        {
          type: 'block',
          block: { type: 'vendor', vendor: 'A', kind: 'search', data: { found: [number] } },
        },
      ],
    ],
    [
      'what a vendor adds to text',
      [{ type: 'text', text: '', vendorData: { vendor: 'A', data: { note: number } } }],
    ],
    [
      'the name of a file',
      [{ type: 'block', block: { type: 'file', source: { kind: 'id', id: 'f' }, name: number } }],
    ],
    [
      'the reason of a refusal',
      [{ type: 'facts', facts: { name: 'A', refusal: { explanation: number } } }],
    ],
  ])('X10: takes it out of %s, and keeps the rest', async (_, chunks) => {
    const model = scriptedModel([text('Hi'), ...chunks], [text('Ok.')]);
    const session = sessions(createAgent({ model, use: [redact(card)] })).open('s');
    const events = await record(session.stream$('?'));
    await session.call('And?');
    const stored = await firstValueFrom(session.memory.load$());
    expect(JSON.stringify([events, model.requests, stored])).not.toContain(' 1111');
    expect(JSON.stringify([stored, events])).toContain('[redacted]');
  });

  it('X6: 20,000 deltas take linear time', async () => {
    const agent = createAgent({
      model: scriptedModel(Array.from({ length: 20_000 }, () => text('x '))),
      use: [redact(card)],
    });
    expect(textOf(await agent.call('?'))).toHaveLength(40_000);
  });

  it('refuses what it cannot look for', () => {
    expect(() => redact([])).toThrow(/at least one pattern/);
    expect(() => redact('')).toThrow(/non-empty/);
    for (const given of ['b', /b/]) {
      expect(() => redact('a', given as never)).toThrow(
        "redact(): pass patterns as a list, and a replacement as { replacement: 'x' }.",
      );
    }
    expect(() => redact(['a', /a*/])).toThrow(
      'redact(): /a*/ matches the empty string. Require a character: + for *.',
    );
    expect(() => redact([/$|secret/, /^/m, /\bkey\b/])).toThrow(/matches the empty string/);
    expect(redact([/\bkey\b/, /sk-\w*/])).not.toEqual([]);
    expect(() => redact('a', { windows: 1 } as never)).toThrow(/'windows'/);
  });
});
