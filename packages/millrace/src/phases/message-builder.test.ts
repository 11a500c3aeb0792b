import { describe, expect, it } from '@jest/globals';
import { createMessageBuilder, type MessageBuilder } from './message-builder.js';
import fc from 'fast-check';
import type { ChunkOf } from '../events.js';
import { answerTextOf, textOf, toolCallsOf } from '../values/message.js';
import type { ModelChunk } from '../models/model.js';
import { finish, text, thinking, toolCall } from '../testing/index.js';

const draftOf = (chunks: readonly ModelChunk[], taken: readonly string[] = []): MessageBuilder => {
  const draft = createMessageBuilder({
    messageId: 'm',
    name: 'agent',
    iteration: 3,
    isTaken: (id) => taken.includes(id),
  });
  chunks.forEach((chunk) => draft.add(chunk));
  return draft;
};

const toolsIn = (...chunks: readonly ModelChunk[]) => toolCallsOf(draftOf(chunks).message());

describe('a draft', () => {
  it('R4: folds deltas of text and thinking into blocks, in order', () => {
    const chunks = [thinking('hm'), thinking(', so'), text('Hel'), text('lo'), text('')];
    expect(draftOf(chunks).message().content).toEqual([
      { type: 'thinking', text: 'hm, so' },
      { type: 'text', text: 'Hello' },
    ]);
  });

  it('R4: a signature closes its thinking block and is kept', () => {
    const signed: ModelChunk = { type: 'thinking', text: '', signature: 's1' };
    const redacted: ModelChunk = { type: 'thinking', text: '', signature: 's2', redacted: true };
    expect(draftOf([thinking('a'), signed, thinking('b'), redacted]).message().content).toEqual([
      { type: 'thinking', text: 'a', signature: 's1' },
      { type: 'thinking', text: 'b', signature: 's2', redacted: true },
    ]);
  });

  it('X6: arguments that are nested too deeply are no arguments, and nothing breaks', () => {
    const deep: unknown = JSON.parse(`${'[1,'.repeat(50_000)}1${']'.repeat(50_000)}`);
    const tools = toolsIn({ type: 'toolCall', name: 'f', input: { deep } });
    expect(tools).toMatchObject([{ input: {}, invalidInput: expect.any(String) as unknown }]);
  });

  it('R4: joins the arguments of a tool use by index', () => {
    const tools = toolsIn(
      { type: 'toolCall', index: 0, id: 'a', name: 'f', json: '{"x"' },
      { type: 'toolCall', index: 1, id: 'b', name: 'g', json: '{"y":' },
      { type: 'toolCall', index: 0, json: ':1}' },
      { type: 'toolCall', index: 1, json: '2}' },
    );
    expect(tools).toEqual([
      { type: 'tool_call', id: 'a', name: 'f', input: { x: 1 } },
      { type: 'tool_call', id: 'b', name: 'g', input: { y: 2 } },
    ]);
  });

  it('R4: joins the arguments of a tool use by id, where all have the same index', () => {
    const tools = toolsIn(
      { type: 'toolCall', index: 0, id: 'a', name: 'f', json: '{' },
      { type: 'toolCall', index: 0, id: 'a', json: '}' },
      { type: 'toolCall', index: 0, id: 'b', name: 'f', json: '{}' },
    );
    expect(tools.map(({ id, input }) => [id, input])).toEqual([
      ['a', {}],
      ['b', {}],
    ]);
  });

  it('R4: distinguishes tool calls without index and id by their names', () => {
    const tools = toolsIn(
      { type: 'toolCall', name: 'f', json: '{"x":' },
      { type: 'toolCall', json: '1}' },
      { type: 'toolCall', name: 'f', json: '{"x":2}' },
    );
    expect(tools.map(({ id, input }) => [id, input])).toEqual([
      ['call_3_0', { x: 1 }],
      ['call_3_1', { x: 2 }],
    ]);
  });

  it('R4: whole tool uses of one name stay two', () => {
    expect(toolsIn(toolCall('f', { x: 1 }), toolCall('f', { x: 1 }))).toHaveLength(2);
  });

  it('R4: an id that the conversation knows becomes unique', () => {
    const draft = draftOf(
      [
        { type: 'toolCall', index: 0, id: 'a', name: 'f', json: '{}' },
        { type: 'toolCall', index: 1, id: '__proto__', name: 'f', json: '{}' },
      ],
      ['a'],
    );
    expect(toolCallsOf(draft.message()).map(({ id }) => id)).toEqual(['a_2', '__proto__']);
  });

  it('X7: thousands of calls of one id are one, or refused, in little time', () => {
    const [same, other] = [0, 1].map((by) =>
      toolsIn(...Array.from({ length: 4000 }, (_, at) => toolCall('f', { at: at * by }, 'a'))),
    );
    expect(same).toHaveLength(1);
    expect(new Set(other?.map(({ id }) => id)).size).toBe(4000);
    expect(other?.every(({ refusal }) => refusal?.includes('the same id'))).toBe(true);
  });

  describe('X7: one id is one call', () => {
    const whole = (index: number | undefined, input: unknown, name = 'f'): ModelChunk => ({
      ...{ type: 'toolCall', id: 'a', name, input },
      ...(index === undefined ? {} : { index }),
    });
    const inPieces = (index: number, ...pieces: readonly string[]): readonly ModelChunk[] =>
      pieces.map((json, at) => ({
        ...{ type: 'toolCall', index, id: 'a', json },
        ...(at === 0 ? { name: 'f' } : {}),
      }));

    it.each<[string, readonly ModelChunk[]]>([
      ['with its index', [whole(0, { a: 1 }), whole(0, { a: 1 })]],
      ['with another index', [whole(0, { a: 1 }), whole(1, { a: 1 })]],
      ['without an index', [whole(undefined, { a: 1 }), whole(undefined, { a: 1 })]],
      ['in other pieces', [...inPieces(0, '{"a"', ':1}'), ...inPieces(1, '{ "a": 1 }')]],
      ['whole and in pieces', [whole(0, { a: 1 }), ...inPieces(1, '{"a":1}')]],
    ])('that comes again %s', (_, chunks) => {
      const draft = draftOf([]);
      const shown = chunks.map((chunk) => draft.add(chunk)?.toolCall?.id);
      expect(toolCallsOf(draft.message())).toMatchObject([{ id: 'a', input: { a: 1 } }]);
      expect(toolCallsOf(draft.message())[0]).not.toHaveProperty('refusal');
      expect(new Set(shown.filter((id) => id !== undefined))).toEqual(new Set(['a']));
      expect(draft.deltas()).toHaveLength(1);
    });

    it.each<[string, readonly ModelChunk[]]>([
      ['other arguments', [whole(0, { a: 1 }), whole(0, { a: 2 })]],
      ['no arguments at another index', [whole(0, { a: 1 }), whole(1, {})]],
      ['other arguments, without an index', [whole(undefined, { a: 1 }), whole(undefined, {})]],
      ['another name', [whole(0, { a: 1 }), whole(0, { a: 1 }, 'g')]],
      ['arguments that are not JSON', [...inPieces(0, '{"a":1}'), ...inPieces(1, '{"a":')]],
    ])('and neither runs if it comes again with %s', (_, chunks) => {
      const calls = toolsIn(...chunks);
      expect(calls.map(({ id }) => id)).toEqual(['a', 'a_2']);
      for (const { refusal } of calls) expect(refusal).toMatch(/the same id/);
    });

    it.each<[string, readonly ModelChunk[]]>([
      ['other arguments', [whole(0, { a: 1 }), whole(1, { a: 2 })]],
      ['another name', [whole(0, { a: 1 }), whole(1, { a: 1 }, 'g')]],
      ['another name, and no arguments', [whole(0, { a: 1 }), whole(1, {}, 'g')]],
      ['other arguments in pieces', [...inPieces(0, '{"a":1}'), ...inPieces(1, '{"a":', '2}')]],
      ['a repeated one', [whole(0, { a: 1 }), whole(1, { a: 2 }), whole(2, { a: 2 })]],
    ])('unless parallel calls with indexes of their own share it: %s', (_, chunks) => {
      const calls = toolsIn(...chunks);
      expect(calls.map(({ id, refusal }) => [id, refusal])).toEqual([
        ['a', undefined],
        ['a_2', undefined],
      ]);
    });

    it('and other calls of the message run', () => {
      const other: ModelChunk = { type: 'toolCall', id: 'b', name: 'g', input: {} };
      const calls = toolsIn(whole(0, { a: 1 }), other, whole(0, { a: 2 }), whole(2, { a: 1 }));
      expect(calls.map(({ id, refusal }) => [id, refusal === undefined])).toEqual([
        ['a', false],
        ['b', true],
        ['a_2', false],
      ]);
    });
  });

  it('R4: arguments that are no JSON object are kept aside, and none are an empty object', () => {
    const tools = toolsIn(
      { type: 'toolCall', index: 0, name: 'f', json: '{"x":' },
      { type: 'toolCall', index: 1, name: 'f', json: '[1]' },
      { type: 'toolCall', index: 2, name: 'f' },
      { type: 'toolCall', index: 3, name: 'f', input: 'text' },
    );
    expect(tools.map(({ input, invalidInput }) => [input, invalidInput])).toEqual([
      [{}, '{"x":'],
      [{}, '[1]'],
      [{}, undefined],
      [{}, '"text"'],
    ]);
  });

  describe('X11: a call runs only with a name and arguments that are certainly its own', () => {
    type Piece = Omit<Extract<ModelChunk, { type: 'toolCall' }>, 'type'>;
    const callsOf = (...pieces: readonly Piece[]) =>
      toolsIn(...pieces.map((piece): ModelChunk => ({ type: 'toolCall', ...piece })));
    /** What would run, if there are tools of all names. */
    const runnable = (...pieces: readonly Piece[]) =>
      callsOf(...pieces).flatMap(({ name, input, invalidInput, refusal }) =>
        name === '' || invalidInput !== undefined || refusal !== undefined ? [] : [[name, input]],
      );
    const one = [['f', { x: 1 }]];

    it.each<[string, unknown, ...Piece[]]>([
      [
        'an id of its own for each piece',
        one,
        { index: 0, id: 'a', name: 'f' },
        { index: 0, id: 'b', json: '{"x"' },
        { index: 0, id: 'c', json: ':1}' },
      ],
      [
        'an empty name for each piece',
        one,
        { index: 0, id: 'a', name: 'f' },
        { index: 0, name: '', json: '{"x":1}' },
      ],
      [
        'an index of its own for each piece',
        [],
        { index: 0, id: 'a', name: 'f' },
        { index: 1, json: '{"x"' },
        { index: 2, json: ':1}' },
      ],
      [
        'arguments under another index',
        [],
        { index: 0, id: 'a', name: 'f' },
        { index: 1, json: '{"x":1}' },
      ],
      [
        'arguments under another index, before',
        [],
        { index: 1, json: '{"x":1}' },
        { index: 0, id: 'a', name: 'f' },
      ],
      ['arguments under another id', [], { id: 'a', name: 'f' }, { id: 'b', json: '{"x":1}' }],
      [
        'arguments before the name',
        one,
        { index: 0, id: 'a', json: '{"x"' },
        { index: 0, id: 'a', name: 'f', json: ':1}' },
      ],
      [
        'arguments that may be those of a later name',
        [],
        { index: 0, id: 'a', name: 'f' },
        { index: 0, id: 'b', json: '{"y":2}' },
        { index: 0, id: 'b', name: 'g' },
      ],
      [
        'a name in two pieces',
        [],
        { index: 0, id: 'a', name: 'delete', json: '' },
        { index: 0, name: '_draft', json: '' },
        { index: 0, json: '{"x":1}' },
      ],
      [
        'a name in two pieces, each with the id',
        [],
        { index: 0, id: 'a', name: 'delete' },
        { index: 0, id: 'a', name: '_draft', json: '{"x":1}' },
      ],
      [
        'a name in two pieces, with the id alone',
        [],
        { id: 'a', name: 'delete' },
        { id: 'a', name: '_draft', json: '{"x":1}' },
      ],
      [
        'a name in three pieces',
        [],
        { index: 0, name: 'a' },
        { index: 0, name: 'b' },
        { index: 0, name: 'c', json: '{}' },
      ],
      [
        'the rest of a name after the arguments',
        [],
        { index: 0, id: 'a', name: 'delete', json: '{"x":1}' },
        { index: 0, name: '_draft', json: '' },
      ],
      [
        'the rest of a name after the arguments, with the id',
        [],
        { index: 0, id: 'a', name: 'delete', json: '{"x":1}' },
        { index: 0, id: 'a', name: '_draft' },
      ],
      [
        'the rest of a name after the arguments, with the id alone',
        [],
        { id: 'a', name: 'delete', json: '{"x":1}' },
        { id: 'a', name: '_draft' },
      ],
      [
        'the rest of a name after arguments that are a value',
        [],
        { index: 0, name: 'delete', input: { x: 1 } },
        { index: 0, name: '_draft' },
      ],
      [
        'a name in two pieces after the arguments',
        [],
        { index: 0, id: 'a', json: '{"x":1}' },
        { index: 0, name: 'delete' },
        { index: 0, name: '_draft' },
      ],
      [
        'a name in three pieces around the arguments',
        [],
        { index: 0, name: 'a' },
        { index: 0, name: 'b', json: '{"x":1}' },
        { index: 0, name: 'c' },
      ],
      [
        'a further call with one index, each with arguments',
        [
          ['f', { x: 1 }],
          ['g', { y: 2 }],
        ],
        { index: 0, name: 'f', json: '{"x":1}' },
        { index: 0, name: 'g', json: '{"y":2}' },
      ],
      [
        'a name in each piece, without an id',
        [],
        { name: 'f', json: '' },
        { name: 'f', json: '{"x"' },
        { name: 'f', json: ':1}' },
      ],
      [
        'two calls, one without arguments',
        [
          ['f', {}],
          ['g', { x: 1 }],
        ],
        { index: 0, id: 'a', name: 'f' },
        { index: 1, id: 'b', name: 'g', json: '{"x":1}' },
      ],
      [
        'two calls with one index',
        [
          ['f', {}],
          ['g', {}],
        ],
        { index: 0, id: 'a', name: 'f', json: '' },
        { index: 0, id: 'b', name: 'g', json: '' },
      ],
      [
        'a complete call beside a piece of none',
        one,
        { index: 0, id: 'a', name: 'f', json: '{"x":1}' },
        { index: 1, json: '}' },
      ],
    ])('%s', (_, expected, ...pieces) => {
      expect(runnable(...pieces)).toEqual(expected);
    });

    it('however it is cut and labelled', () => {
      const name = fc.constantFrom('delete', '_draft', 'delete_draft', 'f');
      const args = fc.constantFrom({}, { x: 1 }, { to: 'a"b:\\', list: [{ y: 2 }] });
      const call = fc.record({ name, args, cuts: fc.array(fc.nat(30), { maxLength: 4 }) });
      const label = fc.constantFrom('first', 'same', 'none', 'own');
      const style = fc.record({
        id: label,
        index: label,
        isNameCut: fc.boolean(),
        isNamedAgain: fc.boolean(),
        areArgumentsFirst: fc.boolean(),
      });
      let ran = 0;
      fc.assert(
        fc.property(fc.array(call, { minLength: 1, maxLength: 3 }), style, (calls, written) => {
          const { id, index, isNameCut, isNamedAgain, areArgumentsFirst } = written;
          // Nothing connects the pieces of a name then: each is the name of a call without arguments.
          const hasKey = [id, index].includes('same');
          fc.pre(hasKey || (!isNameCut && !isNamedAgain && !areArgumentsFirst));
          fc.pre(!areArgumentsFirst || !isNameCut);
          fc.pre((id !== 'own' && index !== 'own') || (!isNameCut && !isNamedAgain));
          let count = 0;
          const keyOf = (kind: string, at: number, nth: number): number | undefined => {
            if (kind === 'own') return (count += 1);
            return kind === 'same' || (kind === 'first' && nth === 0) ? 100 + at : undefined;
          };
          const pieces = calls.flatMap(({ name: whole, args: input, cuts }, at): Piece[] => {
            const json = JSON.stringify(input);
            const places = [...new Set([0, ...cuts.filter((it) => it < json.length)])];
            places.sort((a, b) => a - b);
            const parts = places.map((from, nth) => json.slice(from, places[nth + 1]));
            const names = isNameCut ? [whole.slice(0, 3), whole.slice(3)] : [whole];
            const heads: Piece[] = names.filter((it) => it !== '').map((it) => ({ name: it }));
            const bodies: Piece[] = parts.map((it) => ({
              json: it,
              ...(isNamedAgain ? { name: whole } : {}),
            }));
            const all = areArgumentsFirst ? [...bodies, ...heads] : [...heads, ...bodies];
            return all.map((piece, nth) => {
              const [ownId, ownIndex] = [keyOf(id, at, nth), keyOf(index, at, nth)];
              return {
                ...piece,
                ...(ownId === undefined ? {} : { id: `i${ownId}` }),
                ...(ownIndex === undefined ? {} : { index: ownIndex }),
              };
            });
          });
          const left = calls.map(({ name: whole, args: input }) => JSON.stringify([whole, input]));
          for (const it of runnable(...pieces)) {
            const found = left.indexOf(JSON.stringify(it));
            expect([written, pieces, it, found >= 0]).toEqual([written, pieces, it, true]);
            left.splice(found, 1);
            ran += 1;
          }
        }),
        { numRuns: 1000 },
      );
      expect(ran).toBeGreaterThan(20);
    });
  });

  it('R4: a later count of usage replaces an earlier one, field by field', () => {
    const draft = draftOf([
      { type: 'usage', usage: { inputTokens: 5, outputTokens: 1 } },
      { type: 'usage', usage: { outputTokens: 7 } },
    ]);
    expect(draft.usage).toMatchObject({ inputTokens: 5, outputTokens: 7 });
  });

  it('I4: a restart voids what was there, begins a new message, and keeps what it cost', () => {
    const draft = draftOf([
      text('old'),
      { type: 'usage', usage: { outputTokens: 2 } },
      { type: 'restart', why: 'the connection broke' },
      text('new'),
      { type: 'usage', usage: { outputTokens: 3 } },
    ]);
    expect(draft.message()).toMatchObject({ id: 'm#2', content: [{ text: 'new' }] });
    expect(draft.usage.outputTokens).toBe(5);
  });

  it('X5: content and tool calls after a finish count, and the last reason wins', () => {
    const draft = draftOf([
      text('a'),
      finish(),
      text('b'),
      toolCall('f', { x: 1 }, 'c'),
      { type: 'usage', usage: { inputTokens: 1 } },
      finish('length'),
    ]);
    expect(draft.message().content).toEqual([
      { type: 'text', text: 'ab' },
      { type: 'tool_call', id: 'c', name: 'f', input: { x: 1 } },
    ]);
    expect(draft.finish).toBe('length');
    expect(draft.usage.inputTokens).toBe(1);
  });

  it('X5: nothing follows the stop of an interceptor', () => {
    const draft = draftOf([text('a')]);
    for (const chunk of [{ type: 'stop' } as const, text('b'), finish('length')]) draft.add(chunk);
    expect(draft.message().content).toEqual([{ type: 'text', text: 'a' }]);
    expect(draft.finish).toBe('stop');
  });

  it('X31: a restart of the same request starts the message again, and its usage counts once', () => {
    const draft = draftOf([
      { type: 'facts', facts: { name: 'Mine', id: 'r1' } },
      { type: 'usage', usage: { inputTokens: 9, outputTokens: 1 } },
      toolCall('pay', { amount: 15 }, 'c'),
      { type: 'restart', why: 'The end differs.', isSameRequest: true },
      toolCall('pay', { amount: 125 }, 'c'),
      { type: 'usage', usage: { outputTokens: 3 } },
    ]);
    expect(draft.message()).toEqual({
      id: 'm#2',
      role: 'assistant',
      name: 'agent',
      content: [{ type: 'tool_call', id: 'c', name: 'pay', input: { amount: 125 } }],
      vendor: { name: 'Mine', id: 'r1' },
    });
    expect(draft.usage).toMatchObject({ inputTokens: 9, outputTokens: 3 });
  });

  it('X30: blocks of a vendor and data on blocks are kept in their places, and reported', () => {
    const block = { type: 'vendor', vendor: 'Mine', kind: 'search', data: { id: 's' } } as const;
    const vendorData = { vendor: 'Mine', data: { phase: 'x' } };
    const draft = draftOf([]);
    const shown = [
      text('a'),
      { type: 'block', block } as const,
      { type: 'text', text: '', vendorData } as const,
      text('b'),
      { type: 'toolCall', id: 'c', name: 'f', json: '{}', vendorData } as const,
    ].map((chunk) => draft.add(chunk));
    expect(shown[1]).toEqual({ messageId: 'm', kind: 'block', delta: '', block });
    expect(draft.message().content).toEqual([
      { type: 'text', text: 'a' },
      block,
      { type: 'text', text: '', vendorData },
      { type: 'text', text: 'b' },
      { type: 'tool_call', id: 'c', name: 'f', input: {}, vendorData },
    ]);
  });

  it('a citation belongs to the last text, and is reported', () => {
    const citation = { url: 'https://example.com', citedText: 'snow' };
    const draft = draftOf([text('It snows.'), toolCall('f', {}, 'c')]);
    expect(draft.add({ type: 'citation', citation })).toMatchObject({ kind: 'citation', citation });
    draft.add({ type: 'textStart' });
    draft.add(text('It rains.'));
    expect(draft.message().content).toEqual([
      { type: 'text', text: 'It snows.', citations: [citation] },
      expect.objectContaining({ id: 'c' }),
      { type: 'text', text: 'It rains.' },
    ]);
  });

  it('counts of the responses of one message add up, and its other facts are those of the last', () => {
    const draft = draftOf([
      { type: 'facts', facts: { id: 'r1', toolUses: { web_search: 1 }, reasoningTokens: 5 } },
      { type: 'facts', facts: { toolUses: { web_search: 2 } } },
    ]);
    draft.resume();
    draft.add({ type: 'facts', facts: { id: 'r2', toolUses: { web_search: 1, web_fetch: 1 } } });
    expect(draft.message().vendor).toEqual({
      id: 'r2',
      toolUses: { web_search: 3, web_fetch: 1 },
      reasoningTokens: 5,
    });
  });

  it('I9: messages within an answer are separated as they are shown, for any chunks', () => {
    const pieces = fc.array<ModelChunk | 'resume'>(
      fc.oneof(
        fc.constantFrom('', 'a', 'b\n', 'c\n\n', '\n').map(text),
        fc.constantFrom<ModelChunk>(
          { type: 'textStart', separate: true },
          { type: 'textStart', phase: 'commentary', separate: true },
          { type: 'textStart' },
          thinking('t'),
          toolCall('f', {}),
          { type: 'citation', citation: { url: 'https://example.com' } },
          { type: 'text', text: '', vendorData: { vendor: 'Mine', data: 1 } },
        ),
        fc.constant('resume' as const),
      ),
    );
    const apart: ModelChunk = { type: 'textStart', separate: true };
    const examples: [ModelChunk[]][] = [
      [[text('a'), apart, text('\n'), apart, text('c\n\n')]],
      [[text('a'), apart, { type: 'citation', citation: {} }, text('b')]],
      [[text('a'), apart, { type: 'text', text: '', vendorData: { vendor: 'Mine', data: 1 } }]],
    ];
    fc.assert(
      fc.property(pieces, (chunks) => {
        const draft = draftOf([]);
        const shown = chunks.flatMap((chunk) => {
          if (chunk !== 'resume') return draft.add(chunk) ?? [];
          draft.resume();
          return [];
        });
        const whole = textOf(draft.message());
        const textIn = (deltas: readonly ChunkOf[]): string =>
          deltas.map(({ kind, delta }) => (kind === 'text' ? delta : '')).join('');
        expect(textIn(shown)).toBe(whole);
        expect(textIn(draft.deltas())).toBe(whole);
        expect(draft.isShown()).toBe(draft.deltas().length > 0);
      }),
      { examples },
    );
    const final: ModelChunk = { ...apart, phase: 'final_answer' };
    const draft = draftOf([text('Let me check.'), final, text('It snows.')]);
    expect(textOf(draft.message())).toBe('Let me check.\n\nIt snows.');
    expect(answerTextOf(draft.message())).toBe('It snows.');
  });

  it('makes its message one time for all that it has, also for chunks after a pause', () => {
    const draft = draftOf([text('a'), toolCall('look', { a: 1 })]);
    const first = draft.message();
    expect(draft.message()).toBe(first);
    const changes = [
      () => draft.add(text('b')),
      () => draft.add({ type: 'facts', facts: { reasoningTokens: 1 } }),
      () => draft.resume(),
      () => draft.add({ type: 'restart', why: 'again' }),
    ];
    const seen = new Set([first]);
    for (const change of changes) {
      change();
      seen.add(draft.message());
      seen.add(draft.message());
    }
    expect(seen.size).toBe(5);
    expect([...seen].map((it) => textOf(it))).toEqual(['a', 'ab', 'ab', 'ab', 'ab']);
  });

  it('names the tool call of its deltas with one frozen object, and with another once its name is known', () => {
    const draft = draftOf([]);
    const deltas = [
      { type: 'toolCall', index: 0, id: 'a', json: '{' } as const,
      { type: 'toolCall', index: 0, name: 'look', json: '"b"' } as const,
      { type: 'toolCall', index: 0, json: ':1}' } as const,
    ].map((chunk) => draft.add(chunk)?.toolCall);
    expect(deltas.map((it) => it?.name)).toEqual(['', 'look', 'look']);
    expect(deltas[1]).toBe(deltas[2]);
    expect(deltas.every((it) => Object.isFrozen(it))).toBe(true);
  });

  it('I9: what is shown is what is kept', () => {
    const draft = draftOf([]);
    const shown = [text('a'), text(''), thinking('h'), text('b')].map((chunk) => draft.add(chunk));
    expect(shown.map((delta) => delta?.delta)).toEqual(['a', undefined, 'h', 'b']);
  });
});
