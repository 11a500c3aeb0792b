import { describe, expect, it } from '@jest/globals';
import { map } from 'rxjs';
import {
  acceptExtras,
  createAgent,
  type Interceptor,
  type ModelChunk,
  on,
  type Tool,
  tool,
  toolOutput,
} from '../index.js';
import { planToolCalls } from './batch.js';
import { createToolkit } from './toolkit.js';
import type { ToolPolicy } from './types.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';

/** A tool that says how often it has run, and with what. */
const counting = (
  name: string,
  policy: Omit<ToolPolicy, 'accepts'> = {},
  extras?: Record<string, unknown>,
): Tool => {
  let runs = 0;
  return tool({
    name,
    description: 'Counts.',
    input: jsonSchema({ type: 'object', properties: { q: {}, rows: {} } }),
    run: ({ q, rows }) =>
      toolOutput({
        content: [`${name} ${(runs += 1)}`, ...[q, rows].filter(isNumber)].join(' '),
        ...(extras !== undefined && { extras }),
      }),
    ...policy,
  });
};

const isNumber = (value: unknown): value is number => typeof value === 'number';

const broken = (name: string, json: string): ModelChunk => ({ type: 'toolCall', name, json });

/** What each use of a tool gave. */
const played = async (
  tools: readonly Tool[],
  turns: readonly (readonly ModelChunk[])[],
  interceptors: readonly Interceptor[] = [],
  maxToolCalls = 100,
) => {
  const model = scriptedModel(...turns, [text('done')]);
  const agent = createAgent({ model, tools, use: interceptors });
  const events = await record(agent.stream$('?', { limits: { maxToolCalls } }));
  const last = events.at(-1);
  const warnings = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));
  const outputs =
    last?.type === 'postCall'
      ? last.reply.toolCalls.map(({ output }) => output.split('\n')[0])
      : [];
  return { outputs, warnings };
};

const renames = (names: Readonly<Record<string, string>>): Interceptor =>
  on(
    'preActing',
    map((event) => {
      const { toolCall: use } = event;
      return { ...event, toolCall: { ...use, name: names[use.name] ?? use.name } };
    }),
  );

describe('what is decided before a batch', () => {
  it('T15: arguments that could not be read are the same only where their texts are', async () => {
    const look = counting('look', { dedupe: true });
    const { outputs, warnings } = await played(
      [look],
      [[broken('look', '{"q": "Os'), toolCall('look', {}), broken('look', '{"q": "Ber')]],
    );
    expect(outputs).toEqual([
      expect.stringContaining('not a JSON object: {"q": "Os ('),
      'look 1',
      expect.stringContaining('not a JSON object: {"q": "Ber ('),
    ]);
    expect(warnings).toEqual([]);
  });

  it('T15, T7: a use that something waits for is not the same as one before', async () => {
    const chart = acceptExtras(counting('chart', { dedupe: true }), 'rows');
    const query = counting('query', {}, { rows: 7 });
    const { outputs } = await played(
      [chart, query],
      [[toolCall('chart')], [toolCall('query')], [toolCall('chart')], [toolCall('chart')]],
    );
    expect(outputs).toEqual(['chart 1', 'query 1', 'chart 2 7', 'chart 1']);
  });

  it('T15, T7: a result that passed something on answers no other use', async () => {
    const query = counting('query', { dedupe: true }, { rows: 7 });
    const { outputs } = await played([query], [[toolCall('query')], [toolCall('query')]]);
    expect(outputs).toEqual(['query 1', 'query 2']);
  });

  it('T15: a tool that was replaced answers again', async () => {
    const swap = tool({
      name: 'swap',
      description: 'Replaces the other tool.',
      run: (_input, { toolkit }) => {
        toolkit.replace(counting('look', { dedupe: true, timeoutMs: 5 }));
      },
    });
    const { outputs } = await played(
      [counting('look', { dedupe: true }), swap],
      [[toolCall('look')], [toolCall('look')], [toolCall('swap')], [toolCall('look')]],
    );
    expect(outputs).toEqual(['look 1', 'look 1', '(no output)', 'look 1']);
  });

  it('T15: what ran under another name answers only for that name', async () => {
    const { outputs } = await played(
      [counting('a', { dedupe: true }), counting('b')],
      [[toolCall('a')], [toolCall('a')], [toolCall('a')]],
      [
        on(
          'preActing',
          map((event) =>
            event.iteration === 1
              ? { ...event, toolCall: { ...event.toolCall, name: 'b' } }
              : event,
          ),
        ),
      ],
    );
    expect(outputs).toEqual(['b 1', 'a 1', 'a 1']);
  });

  it('T16, T3: a use that is renamed does not get past the limit, nor runs beside others what must run alone', async () => {
    const why = (name: string) => `Not run: ${name} must be called by its own name. Call it again.`;
    const unknown = [toolCall('Echo', { q: 1 }), toolCall('Echo', { q: 2 })];
    const limited = await played([counting('echo')], [unknown], [renames({ Echo: 'echo' })], 1);
    expect(limited.outputs).toEqual([why('echo'), why('echo')]);
    const alone = [counting('echo'), counting('alone', { exclusive: true })];
    const exclusive = await played(
      alone,
      [[toolCall('echo', { q: 1 }), toolCall('echo', { q: 2 })]],
      [renames({ echo: 'alone' })],
    );
    expect(exclusive.outputs).toEqual([why('alone'), why('alone')]);
  });

  it('T16: the limit is reported, once a batch', async () => {
    const uses = [1, 2, 3].map((q) => toolCall('look', { q }));
    const { outputs, warnings } = await played([counting('look')], [uses], [], 1);
    const no = 'Not run: the limit of tool calls (1) is reached.';
    expect(outputs).toEqual(['look 1 1', no, no]);
    expect(warnings).toEqual(['The limit of tool calls (1) is reached: no more tools are run.']);
  });

  it('T18, X11: arguments that could not be read stay so if an interceptor copies the event', async () => {
    const copies = on(
      'preActing',
      map((event) => structuredClone(event)),
    );
    const { outputs } = await played(
      [counting('look')],
      [[broken('look', '{"q": "/tm')]],
      [copies],
    );
    expect(outputs).toEqual([expect.stringContaining('not a JSON object: {"q": "/tm (')]);
  });
});

describe('tool calls of a message', () => {
  const toolkit = createToolkit([counting('look')]);
  const callOf = (q: number, read: () => void = () => undefined) => ({
    type: 'tool_call' as const,
    id: `${q}`,
    name: 'look',
    get input() {
      read();
      return { q };
    },
  });
  const planned = (former: number, ...calls: readonly ReturnType<typeof callOf>[]) => {
    const asked = { toolCall: callOf(former), repeats: 2, failed: false, reusable: undefined };
    const before = { asked: [asked], extras: {}, executed: 0 };
    return planToolCalls(before, calls, toolkit, 1_000).plans.map(({ repeats }) => repeats);
  };

  it('repeat the one before them, as long as all of them do, and not each other', () => {
    expect(planned(1, callOf(1), callOf(1))).toEqual([3, 3]);
    expect(planned(1, callOf(1), callOf(2), callOf(1))).toEqual([3, 0, 0]);
    expect(planned(1, callOf(2), callOf(2))).toEqual([0, 0]);
  });

  it('are compared with the one before them only: twice as many, twice the work', () => {
    const readsOf = (count: number, same: boolean): number => {
      let reads = 0;
      const read = (): void => void (reads += 1);
      planned(1, ...Array.from({ length: count }, (_, q) => callOf(same ? 1 : q + 1, read)));
      return reads;
    };
    expect(readsOf(32, true)).toBe(2 * readsOf(16, true));
    expect(readsOf(32, false)).toBeLessThanOrEqual(2);
  });
});
