import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isChunkRun, type LogItem, type Mark } from '../protocol.js';
import { messageAt, toolAt } from './conversation.js';
import { type CallLanes, type Lane, totalsAt } from './call-lanes.js';
import { deltaOf } from './log.js';
import { createRun, type Run, turnFrom } from './run.js';
import { eventOf, runOf, travel } from './runs.test-support.js';

const runWith = (items: readonly LogItem[]): Run => {
  const run = createRun();
  run.log.append(items);
  return run;
};

const laneIn = (call: CallLanes | undefined, label: string): Lane | undefined =>
  call?.lanes.find((lane) => lane.label === label);

/** All that lanes show, as plain data. */
const pictureOf = ({ lanes, conversation, log }: Run) =>
  JSON.stringify(
    {
      size: log.size,
      gaps: log.gaps,
      calls: [...lanes.calls.values()].map(({ children, tools, open, steps, ...call }) => ({
        ...call,
        children: children.map(({ callId }) => callId),
        tools: [...tools.keys()],
        open: [...open.keys()],
        steps: [...steps],
        lanes: call.lanes.map(({ series, ...lane }) => ({ ...lane, series: [...series] })),
      })),
      parts: conversation.parts.map((part) => ({
        ...part,
        text: undefined,
        thinking: undefined,
        streamed: undefined,
      })),
      texts: Array.from({ length: log.size + 1 }, (_, position) => position)
        .filter((position) => position % 7 === 0)
        .map((position) => transcript({ conversation }, position)),
    },
    (_, value: unknown) => (value instanceof Map ? [...value] : value),
  );

/** The conversation at a position, in lines. */
const transcript = (
  { conversation }: Pick<Run, 'conversation'>,
  position: number,
): readonly string[] =>
  conversation.parts.slice(0, conversation.countAt(position)).map((part) => {
    if (part.type === 'message') {
      const { text, thinking, discarded } = messageAt(part, position);
      return `${part.agent}: (${thinking.slice(0)}) ${text.slice(0)}${discarded === undefined ? '' : ' ~~'}`;
    }
    if (part.type === 'tool') {
      const { input, result, status } = toolAt(part, position);
      return `${part.name} ${status} ${input.slice(0)} ${result?.text ?? ''}`;
    }
    return `${part.type}: ${part.text}`;
  });

/** The same items, with runs of chunks cut at any place. */
const cut = (items: readonly LogItem[], size: number): readonly LogItem[] =>
  items.flatMap((item): readonly LogItem[] => {
    if (!isChunkRun(item)) return [item];
    const starts = Array.from({ length: Math.ceil(item.ats.length / size) }, (_, at) => at * size);
    return starts.map((from) => ({
      ...item,
      ats: item.ats.slice(from, from + size),
      deltas: item.deltas.slice(from, from + size),
    }));
  });

describe('the log', () => {
  it('has an entry for each chunk, event and mark, and gives all of them back', () => {
    const { items } = travel();
    const { log } = runWith(cut(items, 3));
    const chunks = items.flatMap((item) => (isChunkRun(item) ? item.deltas : []));
    const entries = Array.from({ length: log.size }, (_, position) => log.entry(position));
    expect(entries.every((entry, position) => entry?.position === position)).toBe(true);
    expect(
      entries.flatMap((entry) =>
        entry?.type === 'chunk' ? [deltaOf(entry.stream, entry.index)] : [],
      ),
    ).toEqual(chunks);
    expect(log.items()).toEqual(items);
    expect(log.items(0, log.size).length).toBe(items.length);
    expect(
      [...log.items(0, 40), ...log.items(40)].flatMap((item) =>
        'chunks' in item ? item.deltas : [],
      ),
    ).toEqual(chunks);
  });

  it('finds the entries until a time, and the time of an entry', () => {
    const { log } = runWith([
      ...[eventOf('preCall', 0, { input: [] }), runOf(['a', 'b', 'c'], 10), eventOf('warning', 20)],
    ]);
    expect([-1, 0, 9, 10, 11, 12, 19, 20, 99].map((time) => log.countAt(time))).toEqual([
      0, 1, 1, 2, 3, 4, 4, 5, 5,
    ]);
    expect([-1, 0, 1, 3, 4, 9].map((position) => log.timeAt(position))).toEqual([
      0, 0, 10, 12, 20, 20,
    ]);
    expect([log.entry(-1), log.entry(5)]).toEqual([undefined, undefined]);
  });

  it('never goes back in time, and keeps the times without entries', () => {
    const { log } = runWith([
      eventOf('a', 1000),
      eventOf('b', 400),
      eventOf('c', 4000),
      eventOf('d', 9000),
    ]);
    expect([0, 1, 2, 3].map((position) => log.timeAt(position))).toEqual([1000, 1000, 4000, 9000]);
    expect(log.gaps).toEqual([
      { from: 1000, to: 4000, before: 0 },
      { from: 4000, to: 9000, before: 3000 },
    ]);
  });

  it('holds chunks in columns: as many objects for 50,000 as for 50', () => {
    const deltas = Array.from({ length: 50_000 }, (_, at) => `w${at} `);
    const run = createRun();
    for (let at = 0; at < deltas.length; at += 100)
      run.log.append([runOf(deltas.slice(at, at + 100), at)]);
    expect(run.log.size).toBe(50_000);
    expect(run.log.items()).toHaveLength(1);
    expect(run.conversation.parts).toHaveLength(1);
    const entry = run.log.entry(49_999);
    expect(entry?.type === 'chunk' && deltaOf(entry.stream, entry.index)).toBe('w49999 ');
    expect(entry?.type === 'chunk' && entry.stream.text.length).toBe(deltas.join('').length);
  });

  it('looks at each item once: appending costs as much at the end as at the beginning', () => {
    let looks = 0;
    const run = createRun();
    const lists = [run.conversation.parts, ...['text'].map(() => run.log.gaps)];
    const counted = (at: number): LogItem =>
      new Proxy(eventOf('custom', at), {
        get: (target, name, self) => {
          looks += 1;
          return Reflect.get(target, name, self) as unknown;
        },
      });
    const costs = [0, 1000, 2000].map((from) => {
      const before = looks;
      run.log.append(Array.from({ length: 1000 }, (_, at) => counted(from + at)));
      return looks - before;
    });
    expect(costs[1]).toBe(costs[2]);
    expect(lists.every((list) => list.length === 0)).toBe(true);
  });
});

describe('the lanes', () => {
  it('are those of the call, with sub-agents below the tool calls that make them', () => {
    const { lanes } = runWith(travel().items);
    const { root } = lanes;
    expect(root?.lanes.map(({ label }) => label)).toEqual([
      ...['waits, steps', 'model', 'weather', 'Researcher', 'tickets', 'events'],
    ]);
    expect(
      root?.children.map(({ name, toolCallId, depth }) => ({ name, toolCallId, depth })),
    ).toEqual([{ name: 'Researcher', toolCallId: 'r1', depth: 1 }]);
    expect(
      root?.turns.map(({ iteration, tokens }) => [iteration, tokens.input, tokens.output]),
    ).toEqual([
      [1, 1250, 140],
      [2, 1840, 96],
    ]);
    expect([root?.reason, root?.hasFailed]).toEqual(['answer', false]);
  });

  it('show requests from their subscription to their end, with their chunks', () => {
    const { lanes, log } = runWith(travel().items);
    const model = laneIn(lanes.root, 'model');
    const requests = model?.bars.filter(({ kind }) => kind === 'request');
    expect(requests?.map(({ ended }) => ended)).toEqual(['complete', 'complete']);
    expect(requests?.map(({ start }) => start - log.startedAt)).toEqual([
      0,
      model === undefined ? 0 : (model.bars[2]?.start ?? 0) - log.startedAt,
    ]);
    const counts = [...(model?.series.values() ?? [])].map(({ kind, ats }) => [kind, ats.length]);
    expect(Object.fromEntries(counts)).toMatchObject({
      thinking: 7,
      toolInput: 17,
      modelRetry: 1,
      preReasoning: 2,
    });
    const turn = lanes.root?.turns[0];
    expect((turn?.firstChunkAt ?? 0) - (turn?.requestedAt ?? 0)).toBe(320);
  });

  it.each([true, false])(
    'show tool calls, their progress and their failures; with marks: %s',
    (marks) => {
      const { lanes, log } = runWith(travel({ marks }).items);
      const bars = ['weather', 'tickets'].map((name) => {
        const lane = laneIn(lanes.root, name);
        return lane?.bars
          .filter(({ kind }) => kind === 'tool')
          .map(({ start, end, ended }) => [start - log.startedAt, (end ?? 0) - start, ended]);
      });
      const began = bars[0]?.[0]?.[0];
      expect(bars).toEqual([[[began, 675, 'complete']], [[began, 265, 'error']]]);
      const search = laneIn(lanes.root?.children[0], 'search');
      expect(search?.series.get('actingChunk')?.ats).toHaveLength(4);
      expect([...lanes.calls.values()].flatMap(({ open }) => [...open.keys()])).toEqual([]);
    },
  );

  it('show demand, interceptors and holds by their marks', () => {
    const mark = (fields: object, at: number) =>
      ({ at, callId: 'c', ...fields }) as unknown as Mark;
    const { lanes } = runWith([
      eventOf('preCall', 0, { input: [] }),
      mark({ mark: 'demand', isOpen: false }, 5),
      mark(
        { mark: 'interceptors', of: 'preActing', id: 'i1', names: ['guard'], phase: 'started' },
        6,
      ),
      mark(
        { mark: 'interceptors', of: 'preActing', id: 'i2', names: ['guard'], phase: 'started' },
        7,
      ),
      mark(
        {
          mark: 'interceptors',
          of: 'preActing',
          id: 'i1',
          names: ['guard'],
          phase: 'ended',
          isEdited: true,
        },
        8,
      ),
      mark(
        { mark: 'interceptors', of: 'preActing', id: 'i2', names: ['guard'], phase: 'vetoed' },
        9,
      ),
      mark({ mark: 'demand', isOpen: true }, 15),
      mark({ mark: 'hold', id: 'h', of: 'preActing', phase: 'held' }, 16),
      mark({ mark: 'step', id: 'queue', kind: 'wait', phase: 'started' }, 17),
      mark({ mark: 'request', id: 'q', messageId: 'c/1', model: 'm', phase: 'started' }, 18),
      mark({ mark: 'request', id: 'q', messageId: 'c/1', model: 'm', phase: 'cancelled' }, 19),
    ]);
    const picture = lanes.root?.lanes.map(({ kind, bars }) => [
      kind,
      ...bars.map(
        ({ kind: of, start, end, ended, isEdited }) =>
          `${of} ${start}-${end ?? ''} ${ended}${isEdited ? ' edited' : ''}`,
      ),
    ]);
    expect(picture).toEqual([
      ['steps', 'wait 17- open'],
      ['model', 'request 18-19 unsubscribed'],
      ['demand', 'closed 5-15 complete'],
      ['interceptors', 'preActing 6-8 complete edited', 'preActing 7-9 vetoed'],
      ['holds', 'hold 16- open'],
      ['events'],
    ]);
  });

  it('show in the conversation what a breakpoint or an interceptor has edited', () => {
    const toolCall = (id: string) => ({ toolCall: { type: 'tool_call', id, name: id, input: {} } });
    const passed = { mark: 'interceptors', of: 'postActing', id: 'i', names: ['guard'] };
    const result = { isError: false, content: [] };
    const { conversation } = runWith([
      { at: 0, callId: 'c', mark: 'hold', id: 'h', of: 'preActing', phase: 'edited' },
      eventOf('preActing', 1, toolCall('a')),
      eventOf('preActing', 2, toolCall('b')),
      { at: 3, callId: 'c', ...passed, toolCallId: 'b', phase: 'ended', isEdited: true } as Mark,
      eventOf('postActing', 4, { ...toolCall('c'), result, ms: 1 }),
      eventOf('postActing', 5, { ...toolCall('b'), result, ms: 1 }),
    ]);
    expect(conversation.parts.map(({ edited }) => edited)).toEqual([1, 5, undefined]);
  });

  it('end what events began, if the marks come later', () => {
    const toolCall = { id: 'w', name: 'weather', input: {} };
    const { lanes } = runWith([
      eventOf('preActing', 1, { toolCall }),
      { mark: 'step', at: 2, callId: 'c', id: 'open', kind: 'memory', phase: 'started' },
      { mark: 'step', at: 3, callId: 'c', id: 'open', kind: 'memory', phase: 'ended' },
      eventOf('postActing', 4, { toolCall, ms: 3, result: { content: [], isError: false } }),
    ]);
    const [bar] = laneIn(lanes.root, 'weather')?.bars ?? [];
    expect([bar?.start, bar?.end, bar?.ended]).toEqual([1, 4, 'complete']);
  });

  it('show events that the page does not know, and those that end a call', () => {
    const { lanes } = runWith([
      eventOf('preCall', 0, { input: [] }),
      eventOf('shiftBegun', 1, { name: 'night' }),
      eventOf('steered', 2, { message: { content: [{ type: 'text', text: 'Hurry.' }] } }),
      eventOf('preReasoning', 3, { messages: [] }),
      eventOf('error', 4, { error: { code: 'timeout', message: 'Too slow.' } }),
    ]);
    expect([...(laneIn(lanes.root, 'events')?.series.keys() ?? [])]).toEqual([
      'preCall',
      'shiftBegun',
      'steered',
      'error',
    ]);
    expect([lanes.root?.reason, lanes.root?.hasFailed]).toEqual(['timeout', true]);
    expect(laneIn(lanes.root, 'model')?.bars[0]?.ended).toBe('unsubscribed');
  });

  it('are the same, however the log comes in pieces', () => {
    const { items } = travel();
    const whole = pictureOf(runWith(items));
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (size, batches) => {
          const run = createRun();
          const pieces = [...cut(items, size)];
          for (let at = 0; pieces.length > 0; at += 1)
            run.log.append(pieces.splice(0, batches[at % batches.length]));
          expect(pictureOf(run)).toBe(whole);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('the conversation', () => {
  it('is as it was at each position', () => {
    const run = runWith(travel().items);
    const at = (position: number) => transcript(run, position);
    expect(at(0)).toEqual([]);
    expect(at(1)).toEqual([
      'input: When does the ferry to Flåm leave, and what will the weather be?',
    ]);
    const before = run.log.countAt(run.log.startedAt + 340);
    expect(at(before)[1]).toBe('Guide: (The user wants to ) ');
    expect(at(run.log.countAt(run.log.startedAt + 545)).at(-1)).toMatch(
      /^weather streaming \{"city":"Flåm/u,
    );
    const end = at(run.log.size);
    expect(end.find((line) => line.startsWith('tickets'))).toBe(
      'tickets failed { "from": "Gudvangen", "to": "Flåm" } Failed: The counter is closed.',
    );
    expect(end.at(-1)).toBe('notice: Ended: answer');
    expect(end.at(-2)).toMatch(/^Guide: \(Both are known\.\) The ferry to Flåm leaves at 08:10/u);
  });

  it('strikes out discarded messages, and shows what interceptors made of others', () => {
    const run = runWith([
      eventOf('preCall', 0, { input: [{ content: [{ type: 'text', text: 'Hi' }] }] }),
      runOf(['Wro', 'ng.'], 1),
      eventOf('messageDiscarded', 5, { messageId: 'c/1', why: 'asked again' }),
      runOf(['Secret'], 6, { messageId: 'c/1~2' }),
      eventOf('postReasoning', 9, {
        message: { id: 'c/1~2', content: [{ type: 'text', text: '[removed]' }] },
        usage: {},
      }),
    ]);
    expect(transcript(run, 3)).toEqual(['input: Hi', 'Guide: () Wrong.']);
    expect(transcript(run, 5)).toEqual(['input: Hi', 'Guide: () Wrong. ~~', 'Guide: () Secret']);
    expect(transcript(run, 6).at(-1)).toBe('Guide: () [removed]');
  });

  it('has the tokens and the turns of its position', () => {
    const { lanes, log } = runWith(travel().items);
    const { root } = lanes;
    if (root === undefined) throw new Error('There is no call.');
    const at = (position: number) => {
      const { tokens, turns, end } = totalsAt(root, position);
      return [tokens.input, tokens.output, turns.length, end !== undefined];
    };
    const answered = log.countAt(log.startedAt + 1500);
    expect([at(1), at(answered), at(log.size - 1), at(log.size)]).toEqual([
      [0, 0, 0, false],
      [1250, 140, 1, false],
      [3090, 236, 2, false],
      [4022, 287, 2, true],
    ]);
  });

  it('moves by turn', () => {
    const run = runWith(travel().items);
    const second = turnFrom(run, 10, 1);
    expect(run.log.entry(second - 1)).toMatchObject({
      event: { type: 'preReasoning', iteration: 2 },
    });
    expect(turnFrom(run, second, 1)).toBe(run.log.size);
    expect(turnFrom(run, second, -1)).toBeLessThan(10);
    expect(turnFrom(run, 1, -1)).toBe(0);
  });
});
