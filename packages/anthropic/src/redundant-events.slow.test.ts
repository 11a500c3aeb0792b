import { describe, expect, it } from '@jest/globals';
import { type AssistantMessage, createAgent, isMillraceError, type ModelChunk } from 'millrace';
import fc from 'fast-check';
import { filter, from, lastValueFrom, take, throwError } from 'rxjs';
import { createMessagesReader } from './messages-events.js';

type Data = Readonly<Record<string, unknown>>;

/** What the agent makes of an answer, or the code of the error. */
const messageOf = async (events: readonly Data[]): Promise<unknown> => {
  const stream$ = () => {
    try {
      const { read } = createMessagesReader((name) => name);
      return from(events.flatMap((data): readonly ModelChunk[] => read({ data })));
    } catch (error) {
      return throwError(() => error);
    }
  };
  const agent = createAgent({ model: { name: 'played', stream$ }, limits: { maxIterations: 1 } });
  try {
    const answered$ = agent.stream$('?').pipe(
      filter((event) => event.type === 'postReasoning'),
      take(1),
    );
    const { message, finish } = await lastValueFrom(answered$);
    return { content: (message satisfies AssistantMessage).content, finish };
  } catch (error) {
    return isMillraceError(error) ? error.code : error;
  }
};

const cut = (text: string, places: readonly number[]): readonly string[] => {
  const ends = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...ends].map((start, index) => text.slice(start, ends[index]));
};

/** A block by its start, the deltas of one value, and whether its start is redundant. */
interface Block {
  readonly start: Data;
  readonly deltas: readonly Data[];
  readonly isStartRedundant: boolean;
}

type Cuts = readonly number[];

const texts = (type: string, key: string, whole: string, cuts: Cuts): readonly Data[] =>
  cut(whole, cuts).map((piece) => ({ type, [key]: piece }));

const citation = {
  type: 'web_search_result_location',
  url: 'https://example.com',
  cited_text: 'x',
};

const blockKinds: readonly ((nth: number, cuts: Cuts) => Block)[] = [
  (nth, cuts) => ({
    start: { type: 'text', text: '' },
    deltas: texts('text_delta', 'text', `It snows ${nth}. `, cuts),
    isStartRedundant: true,
  }),
  (nth, cuts) => ({
    start: { type: 'text', text: '', citations: [] },
    deltas: [
      ...texts('text_delta', 'text', `Cited ${nth}.`, cuts),
      { type: 'citations_delta', citation },
    ],
    isStartRedundant: true,
  }),
  (nth, cuts) => ({
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...texts('thinking_delta', 'thinking', `Hm ${nth}.`, cuts),
      { type: 'signature_delta', signature: `sig${nth}` },
    ],
    isStartRedundant: true,
  }),
  (nth, cuts) => ({
    start: { type: 'tool_use', id: `t${nth}`, name: 'pay', input: {}, caller: { type: 'direct' } },
    deltas: texts('input_json_delta', 'partial_json', `{"amount":12${nth}5}`, cuts),
    isStartRedundant: false,
  }),
  (nth, cuts) => ({
    start: { type: 'server_tool_use', id: `s${nth}`, name: 'web_search', input: {} },
    deltas: texts('input_json_delta', 'partial_json', `{"query":"x${nth}"}`, cuts),
    isStartRedundant: false,
  }),
  (nth) => ({
    start: { type: 'tomorrow', id: `o${nth}`, notes: 'a' },
    deltas: [{ type: 'tomorrow_delta', notes: 'b', more: [nth] }],
    isStartRedundant: false,
  }),
];

interface Sent {
  readonly data: Data;
  readonly isRedundant: boolean;
}

const anyBlocks = fc.array(
  fc.record({
    kind: fc.nat({ max: blockKinds.length - 1 }),
    cuts: fc.array(fc.nat(), { maxLength: 3 }),
  }),
  { maxLength: 4 },
);

const eventsOf = (blocks: readonly { readonly kind: number; readonly cuts: Cuts }[]): Sent[] => [
  { data: start, isRedundant: true },
  ...blocks.flatMap(({ kind, cuts }, index): readonly Sent[] => {
    const block = blockKinds[kind]?.(index, cuts);
    if (block === undefined) return [];
    return [
      {
        data: { type: 'content_block_start', index, content_block: block.start },
        isRedundant: block.isStartRedundant,
      },
      { data: { type: 'ping' }, isRedundant: true },
      ...block.deltas.map((delta) => ({
        data: { type: 'content_block_delta', index, delta },
        isRedundant: false,
      })),
      { data: { type: 'content_block_stop', index }, isRedundant: true },
    ];
  }),
  { data: end, isRedundant: false },
  { data: { type: 'message_stop' }, isRedundant: true },
];

const start = { type: 'message_start', message: { id: 'm', content: [], stop_reason: null } };
const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };

/** Repeats, omits or moves one redundant event. */
const disturb = (events: readonly Sent[], how: number, which: number, by: number): Sent[] => {
  const places = events.flatMap(({ isRedundant }, at) => (isRedundant ? [at] : []));
  const at = places[which % places.length] ?? 0;
  const event = events[at];
  if (event === undefined) return [...events];
  const rest = how === 0 ? [...events] : events.toSpliced(at, 1);
  const to = Math.max(0, Math.min(rest.length, at + (how === 0 ? Math.abs(by) + 1 : by)));
  return how === 1 ? rest : rest.toSpliced(to, 0, { ...event, isRedundant: false });
};

const dataOf = (sent: readonly Sent[]): readonly Data[] => sent.map(({ data }) => data);

describe('the events of an answer', () => {
  it('X31: are repeated, omitted or moved without effect, or with a typed error, if they are redundant', async () => {
    const change = fc.record({
      how: fc.nat({ max: 2 }),
      which: fc.nat(),
      by: fc.integer({ min: -2, max: 4 }),
    });
    let [same, all] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        anyBlocks,
        fc.array(change, { minLength: 1, maxLength: 2 }),
        async (blocks, changes) => {
          const sent = eventsOf(blocks);
          const disturbed = changes.reduce(
            (all, { how, which, by }) => disturb(all, how, which, by),
            sent,
          );
          const message = await messageOf(dataOf(disturbed));
          all += 1;
          if (message === 'invalidResponse') return;
          expect(message).toEqual(await messageOf(dataOf(sent)));
          same += 1;
        },
      ),
      { numRuns: 300 },
    );
    // Most of them are read: an error for each would pass, too.
    expect(same).toBeGreaterThan(all / 2);
  });

  it('X31: are redundant at each place, for each kind of block', async () => {
    const moves = [0, 1, 2].flatMap((how) => [-2, -1, 1, 2, 4].map((by) => ({ how, by })));
    for (const kind of blockKinds.keys()) {
      const sent = eventsOf([
        { kind, cuts: [3] },
        { kind: 0, cuts: [4] },
      ]);
      const message = await messageOf(dataOf(sent));
      // A start may be repeated, even where it must not be missing.
      const repeated = sent.map(({ data }) => ({ data, isRedundant: 'content_block' in data }));
      const disturbed = [
        ...moves.flatMap(({ how, by }) =>
          sent.map((_, which) => ({ how, all: disturb(sent, how, which, by) })),
        ),
        ...[0, 1, 2, 3, 4].flatMap((by) =>
          [0, 1].map((which) => ({ how: 0, all: disturb(repeated, 0, which, by) })),
        ),
      ];
      for (const { how, all } of disturbed) {
        const other = await messageOf(dataOf(all));
        // A repeated or omitted event has no effect; one that moves may make another unreadable.
        if (how < 2) expect(other).toEqual(message);
        else expect([message, 'invalidResponse']).toContainEqual(other);
      }
    }
  });

  it('X31: are all read alike, however a value is split', async () => {
    await fc.assert(
      fc.asyncProperty(anyBlocks, async (blocks) => {
        const whole = blocks.map(({ kind }) => ({ kind, cuts: [] }));
        expect(await messageOf(dataOf(eventsOf(blocks)))).toEqual(
          await messageOf(dataOf(eventsOf(whole))),
        );
      }),
      { numRuns: 100 },
    );
  });

  it('X31: give the same message or an error wherever they are cut off', async () => {
    await fc.assert(
      fc.asyncProperty(anyBlocks, fc.nat(), async (blocks, place) => {
        const events = dataOf(eventsOf(blocks));
        const message = await messageOf(events.slice(0, place % (events.length + 1)));
        if (message !== 'invalidResponse') expect(message).toEqual(await messageOf(events));
      }),
      { numRuns: 100 },
    );
  });

  it('X30: keep blocks and deltas of unknown types', async () => {
    const events = dataOf(eventsOf([{ kind: 5, cuts: [] }]));
    expect(await messageOf(events)).toEqual({
      content: [
        {
          type: 'vendor',
          vendor: 'Anthropic',
          kind: 'tomorrow',
          data: { type: 'tomorrow', id: 'o0', notes: 'ab', more: [0] },
        },
      ],
      finish: 'stop',
    });
  });

  it.each([
    ['arguments', { type: 'input_json_delta', partial_json: '{}' }],
    ['an unknown value', { type: 'tomorrow_delta', notes: 'b' }],
  ])('X31: with %s of a block that has not started are an error', async (_, delta) => {
    const stray = { type: 'content_block_delta', index: 0, delta };
    expect(await messageOf([start, stray, end])).toBe('invalidResponse');
  });
});
