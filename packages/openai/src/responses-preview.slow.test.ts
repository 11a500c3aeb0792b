import { describe, expect, it } from '@jest/globals';
import { createToolParts, type ModelChunk } from 'millrace';
import { parsedJson } from 'millrace/values';
import { dataOf, responsesStream } from '@millrace/fault-server';
import { at, textAt } from '@millrace/wire';
import fc from 'fast-check';
import { told } from './conversation.test-support.js';
import { responsesReader } from './responses-chunks.js';

/**
 * Events that say nothing that another event does not say as well, by the value that they belong to. As long as one of
 * the complete values is left, the others may be repeated, omitted, renumbered, and come in any order.
 */
const redundant: Readonly<Record<string, 'preview' | 'complete' | 'note'>> = {
  'response.created': 'note',
  'response.in_progress': 'note',
  'response.content_part.added': 'note',
  'response.reasoning_summary_part.added': 'note',
  'response.reasoning_summary_part.done': 'complete',
  'response.output_item.added': 'preview',
  'response.output_text.delta': 'preview',
  'response.refusal.delta': 'preview',
  'response.function_call_arguments.delta': 'preview',
  'response.reasoning_summary_text.delta': 'preview',
  'response.output_text.done': 'complete',
  'response.refusal.done': 'complete',
  'response.content_part.done': 'complete',
  'response.function_call_arguments.done': 'complete',
  'response.reasoning_summary_text.done': 'complete',
  'response.output_item.done': 'complete',
};

const last = 'response.completed';

const events = (answer: Parameters<typeof responsesStream>[0]): readonly unknown[] =>
  responsesStream(answer).map(dataOf);

const answers = [
  {
    thinking: 'Hm, well.',
    text: 'Let me look 😀 here.',
    toolCalls: [
      { id: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' },
      { id: 'c2', name: 'weather', arguments: '{"city":"Rome"}' },
    ],
  },
  { text: 'It snows.' },
  { refusal: 'I cannot.' },
  { toolCalls: [{ id: 'c1', name: 'pay', arguments: '{"amount":125}' }] },
];

/** What is left of the chunks: those after the last restart. */
const messageOf = (chunks: readonly ModelChunk[]) => {
  const left = chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1);
  const parts = createToolParts(0, () => false);
  const uses = new Map<string, ReturnType<typeof parts.add>['part']>();
  for (const chunk of left) {
    if (chunk.type !== 'toolCall') continue;
    const { part } = parts.add(chunk, 1);
    uses.set(part.id, part);
  }
  const calls = [...uses.values()].map(({ id, name, json }) => ({
    id,
    name,
    input: parsedJson(json.join('')),
  }));
  return { ...told(left.filter(({ type }) => type !== 'toolCall')), uses: calls };
};

const read = (list: readonly unknown[]) => {
  const reader = responsesReader({ vendor: 'Mine', server: 'Mine', toolName: (name) => name });
  const chunks: ModelChunk[] = [];
  for (const data of list) {
    chunks.push(...reader.read({ data }));
    // What follows the last event is ignored by `exchange$`.
    if (reader.isLast?.({ data }) === true) break;
  }
  return chunks;
};

const typeOf = (event: unknown): string => textAt(event, 'type');

/** The same event, with the complete output left out of the last one. */
const withoutOutput = (event: unknown): unknown =>
  typeOf(event) === last
    ? { type: last, response: { ...Object(at(event, 'response')), output: [] } }
    : event;

describe('X31: the end of a response decides', () => {
  it('every event of a stream is in the table', () => {
    const types = new Set(answers.flatMap((answer) => events(answer).map(typeOf)));
    types.delete(last);
    expect([...types].filter((type) => !Object.hasOwn(redundant, type))).toEqual([]);
  });

  it.each(answers.map((answer) => [JSON.stringify(answer), answer] as const))(
    'any repetition, omission, order and number of redundant events: %s',
    (_, answer) => {
      const all = events(answer);
      const expected = messageOf(read(all));
      const end = all.filter((event) => typeOf(event) === last);
      const others = all.filter((event) => typeOf(event) !== last);
      const counts = fc.array(fc.constantFrom(0, 1, 1, 2), {
        minLength: others.length,
        maxLength: others.length,
      });
      const property = fc.property(
        counts.chain((times) => {
          const kept = others.flatMap((event, index) =>
            Array.from({ length: times[index] ?? 1 }, () => event),
          );
          return fc.tuple(fc.shuffledSubarray(kept, { minLength: kept.length }), fc.nat(9));
        }),
        ([kept, number]) => {
          const numbered = kept.map((event) => ({
            ...Object(event),
            sequence_number: number,
          }));
          expect(messageOf(read([...numbered, ...end]))).toEqual(expected);
        },
      );
      fc.assert(property, { numRuns: 200 });
    },
  );

  it.each(answers.map((answer) => [JSON.stringify(answer), answer] as const))(
    'one complete value of each is enough: %s',
    (_, answer) => {
      const all = events(answer);
      const expected = messageOf(read(all));
      const without = (kinds: readonly string[]) =>
        all.filter((event) => !kinds.includes(redundant[typeOf(event)] ?? ''));
      expect(messageOf(read(without(['preview', 'complete', 'note'])))).toEqual(expected);
      expect(messageOf(read(without(['preview', 'note']).map(withoutOutput)))).toEqual(expected);
      const deltas = messageOf(read(without(['complete', 'note']).map(withoutOutput)));
      // Without the completed item, nothing of the reasoning is kept but its text.
      expect({ ...deltas, signatures: [] }).toEqual({ ...expected, signatures: [] });
    },
  );

  it('any cut of a value into deltas is the same message, without a restart', () => {
    const cuts = fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(cuts, cuts, (text, value) => {
        const json = JSON.stringify({ city: value.join('') });
        const pieces = json.match(/[^]{1,3}/gu) ?? [];
        const chunks = read(
          events({ text, toolCalls: [{ id: 'c1', name: 'weather', arguments: pieces }] }),
        );
        expect(chunks.map(({ type }) => type)).not.toContain('restart');
        expect(messageOf(chunks)).toMatchObject({
          text: text.join(''),
          uses: [{ input: { city: value.join('') } }],
        });
      }),
      { numRuns: 100, examples: [[['\u2028'], ['\u2028\u0000', '\u0000']]] },
    );
  });

  const call = (args: string) => ({
    type: 'function_call',
    id: 'f',
    call_id: 'c1',
    name: 'pay',
    arguments: args,
  });
  const added = { type: 'response.output_item.added', output_index: 0, item: call('') };
  const delta = (text: string) => ({
    type: 'response.function_call_arguments.delta',
    output_index: 0,
    item_id: 'f',
    delta: text,
  });
  const done = (text: string) => ({
    type: 'response.function_call_arguments.done',
    output_index: 0,
    item_id: 'f',
    arguments: text,
  });
  const ended = (output: readonly unknown[]) => ({
    type: last,
    response: { status: 'completed', output },
  });

  it('a contradiction restarts the message once, in the same request', () => {
    const chunks = read([
      added,
      delta('{"amount":15}'),
      done('{"amount":1}'),
      ended([call('{"amount":125}')]),
    ]);
    expect(chunks.filter(({ type }) => type === 'restart')).toMatchObject([
      { isSameRequest: true },
    ]);
    expect(messageOf(chunks).uses).toEqual([{ id: 'c1', name: 'pay', input: { amount: 125 } }]);
  });

  it('a call that the end neither completes nor lists is not made', () => {
    const message = { type: 'message', id: 'm', content: [{ type: 'output_text', text: 'No.' }] };
    const chunks = read([added, delta('{"amount":15}'), ended([message])]);
    expect(messageOf(chunks)).toMatchObject({ uses: [], text: 'No.' });
  });

  it('a value that the end leaves out is that of the stream', () => {
    const text = {
      type: 'response.output_text.delta',
      output_index: 1,
      content_index: 0,
      delta: 'Hi',
    };
    const chunks = read([added, delta('{"amount":15}'), done('{"amount":15}'), text, ended([])]);
    expect(chunks.map(({ type }) => type)).not.toContain('restart');
    expect(messageOf(chunks)).toMatchObject({ text: 'Hi', uses: [{ input: { amount: 15 } }] });
  });

  it('servers that give every item the index 0, or change the IDs of items, are read', () => {
    const second = { ...call('{"amount":2}'), id: 'g', call_id: 'c2' };
    const chunks = read([
      added,
      { ...added, item: { ...second, arguments: '' } },
      { ...delta('{"amount":2}'), item_id: 'g' },
      delta('{"amount":1}'),
      ended([call('{"amount":1}'), second]),
    ]);
    expect(messageOf(chunks).uses.map(({ input }) => input)).toEqual([
      { amount: 1 },
      { amount: 2 },
    ]);
    const renamed = read([
      added,
      delta('{"amount":1}'),
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { ...call('{"amount":1}'), id: 'x' },
      },
      ended([{ ...call('{"amount":1}'), id: 'y' }]),
    ]);
    expect(renamed.map(({ type }) => type)).not.toContain('restart');
    expect(messageOf(renamed).uses).toHaveLength(1);
  });

  it('annotations come in any order, and with gaps', () => {
    const citing = (annotation_index: number) => ({
      type: 'response.output_text.annotation.added',
      ...{ output_index: 0, content_index: 0, annotation_index },
      annotation: { type: 'url_citation', url: `https://a.b/${annotation_index}` },
    });
    const text = { type: 'response.output_text.delta', output_index: 0, content_index: 0 };
    const urls = (...indexes: readonly number[]) =>
      read([{ ...text, delta: 'Hi' }, ...indexes.map(citing), ended([])]).flatMap((chunk) =>
        chunk.type === 'citation' ? [Number(chunk.citation.url?.at(-1))] : [],
      );
    expect(urls(2, 0, 1)).toEqual([0, 1, 2]);
    expect(urls(0, 3, 3, 1)).toEqual([0, 1, 3]);
    expect(urls(1, 0, 0)).toEqual([0, 1]);
  });

  it('reasoning is complete with its part', () => {
    const part = (type: string, more: object) => ({ type, output_index: 0, item_id: 'r', ...more });
    const chunks = read([
      part('response.reasoning_summary_part.done', { summary_index: 0, part: { text: 'Hm.' } }),
      part('response.content_part.done', {
        content_index: 0,
        part: { type: 'reasoning_text', text: 'So.' },
      }),
      ended([]),
    ]);
    expect(messageOf(chunks)).toMatchObject({ thinking: 'Hm.\n\nSo.', text: '' });
  });

  const use = (amount: number, id = 'c1') => ({ id, name: 'pay', input: { amount } });
  const createdAs = (id: string) => ({ type: 'response.created', response: { id } });
  const other = { ...call('{"amount":2}'), id: 'g', call_id: 'c2' };
  const refusal = {
    type: 'response.refusal.delta',
    output_index: 0,
    content_index: 0,
    delta: 'No',
  };
  const message = (content: unknown) => ({ type: 'message', id: 'm', content });

  it.each<[string, readonly unknown[], object]>([
    ['listed twice', [added, ended([call('{"amount":1}'), call('{"amount":1}')])], [use(1)]],
    [
      'listed twice without its ID',
      [ended([1, 2].map(() => ({ ...call('{"amount":1}'), id: undefined })))],
      [use(1)],
    ],
    [
      'listed beside another one of its item ID',
      [ended([call('{"amount":1}'), { ...other, id: 'f' }])],
      [use(1), use(2, 'c2')],
    ],
    ['an object', [added, ended([{ ...call(''), arguments: { amount: 1 } }])], [use(1)]],
    ['an object as a delta', [added, { ...delta(''), delta: { amount: 1 } }, ended([])], [use(1)]],
    [
      'of a response that another one replaced',
      [
        createdAs('r1'),
        { type: 'response.output_item.done', output_index: 0, item: other },
        createdAs('r2'),
        added,
        ended([call('{"amount":1}')]),
      ],
      [use(1)],
    ],
    [
      'of a response that is created again',
      [createdAs('r1'), added, createdAs('r1'), delta('{"amount":1}'), ended([])],
      [use(1)],
    ],
  ])('a call that is %s runs once, with its arguments', (_, list, uses) => {
    expect(messageOf(read(list)).uses).toEqual(uses);
  });

  it('a message may be a string, an answer after a refusal, and have unknown parts', () => {
    expect(messageOf(read([ended([message('Hi')])]))).toMatchObject({ text: 'Hi' });
    const text = [{ type: 'output_text', text: 'Yes.' }];
    expect(messageOf(read([refusal, ended([message(text)])]))).toMatchObject({
      text: 'Yes.',
      finish: ['stop'],
    });
    const part = { type: 'output_hologram', light: 'green' };
    const data = { type: 'message', role: 'assistant', content: [part] };
    expect(read([ended([message([...text, part])])])).toContainEqual({
      type: 'block',
      block: { type: 'vendor', vendor: 'Mine', kind: 'output_hologram', data },
    });
  });

  it('a failed response is an error, no matter what was streamed', () => {
    const failed = {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'server_error' } },
    };
    expect(() => read([added, delta('{}'), done('{}'), failed])).toThrow(/failed/u);
  });
});
