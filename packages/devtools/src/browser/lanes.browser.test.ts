import { describe, expect, it } from '@jest/globals';
import { eventOf, runOf } from '../page/model/runs.test-support.js';
import type { LogItem, Mark } from '../page/protocol.js';
import { entryOf, hello, inBrowser, shoot, violations } from './page.test-support.js';

const { open } = inBrowser();

const mark = (fields: object, at: number) => ({ at, callId: 'c', ...fields }) as Mark;
const step = (id: string, kind: string, phase: string, at: number) =>
  mark({ mark: 'step', id, kind, phase }, at);
const request = (id: string, phase: string, at: number) =>
  mark({ mark: 'request', id, messageId: 'c/1', model: 'm', phase }, at);
const passes = (of: string, id: string, phase: string, at: number, isEdited = false) =>
  mark(
    { mark: 'interceptors', of, id, names: ['audit'], phase, ...(isEdited && { isEdited }) },
    at,
  );
const weather = { id: 'w', name: 'weather', input: { city: 'Oslo' } };
const book = { id: 'b', name: 'book', input: { seats: 2 } };
const textBlock = (text: string) => ({ type: 'text', text });

/** A call with everything that a log can have. */
const items: readonly LogItem[] = [
  ...[step('queue', 'wait', 'started', 0), step('queue', 'wait', 'ended', 420)],
  eventOf('preCall', 420, { input: [{ content: [textBlock('Book it.')] }], iteration: 0 }),
  ...[step('memory', 'memory', 'started', 420), step('memory', 'memory', 'ended', 560)],
  ...[eventOf('recalled', 560, { memories: [] }), step('1', 'model', 'started', 570)],
  passes('preReasoning', 'i0', 'started', 570),
  passes('preReasoning', 'i0', 'ended', 640, true),
  ...[eventOf('preReasoning', 640, { messages: [] }), request('q1', 'started', 640)],
  runOf(['Half ', 'an ', 'answer'], 0, { ats: [800, 830, 870] }),
  request('q1', 'failed', 900),
  eventOf('modelRetry', 900, {
    ...{ attempt: 1, attempts: 3, waitMs: 200 },
    error: { code: 'connection', message: 'Reset.' },
  }),
  eventOf('messageDiscarded', 1100, { messageId: 'c/1', why: 'asked again' }),
  request('q2', 'started', 1100),
  ...[mark({ mark: 'demand', isOpen: false }, 1300), mark({ mark: 'demand', isOpen: true }, 1500)],
  runOf(['I ', 'will ', 'check.'], 0, { messageId: 'c/1~2', ats: [1250, 1520, 1560] }),
  eventOf('steered', 1600, { message: { content: [textBlock('For two, please.')] } }),
  request('q2', 'ended', 1650),
  eventOf('postReasoning', 1650, {
    message: {
      id: 'c/1~2',
      content: [
        textBlock('I will check.'),
        { type: 'tool_call', ...weather },
        { type: 'tool_call', ...book },
      ],
    },
    usage: { inputTokens: 900, outputTokens: 40 },
  }),
  step('1', 'model', 'ended', 1650),
  ...[step('1/0/intent', 'intent', 'started', 1660), step('1/1/intent', 'intent', 'started', 1660)],
  mark({ mark: 'hold', id: 'h', of: 'preActing', phase: 'held' }, 1670),
  mark({ mark: 'hold', id: 'h', of: 'preActing', phase: 'edited', heldMs: 4200 }, 1670),
  eventOf('preActing', 1680, { toolCall: weather }),
  ...[step('1/0/intent', 'intent', 'ended', 1680), step('1/0', 'tool', 'started', 1680)],
  eventOf('preActing', 1680, { toolCall: book }),
  eventOf('approvalRequested', 1690, { toolCall: book }),
  eventOf('actingChunk', 1800, { toolCall: weather, value: 'half' }),
  ...[
    passes('postActing', 'i1', 'started', 1900),
    passes('postActing', 'i1', 'ended', 2100),
    eventOf('postActing', 2100, {
      ...{ toolCall: weather, ms: 420 },
      result: { content: [textBlock('Snow.')], isError: false },
    }),
  ],
  step('1/0', 'tool', 'ended', 2100),
  eventOf('approvalDecided', 2500, { toolCall: book, approved: true }),
  ...[step('1/1/intent', 'intent', 'ended', 2500), step('1/1', 'tool', 'started', 2500)],
  eventOf('stateChanged', 2600, { name: 'plan', state: {}, patches: [] }),
  eventOf('shiftBegun', 2650, { name: 'night' }),
  eventOf('handlerError', 2700, {
    ...{ name: 'audit', of: 'postActing' },
    error: { code: 'interceptor', message: 'Oops.' },
  }),
  eventOf('warning', 3900, { message: 'The tool is slow.' }),
  step('1/1', 'tool', 'cancelled', 4000),
];

/** The kinds of marbles and bars on each lane. */
const kinds = {
  steps: ['memoryBar', 'waitBar'],
  model: [
    ...['messageBar', 'messageDiscarded', 'modelRetry', 'postReasoning', 'preReasoning'],
    ...['requestLine', 'text'],
  ],
  demand: ['closedBar'],
  tool: ['actingChunk', 'intentBar', 'postActing', 'preActing', 'toolBar', 'toolLine'],
  interceptors: ['postActingBar', 'preReasoningBar'],
  holds: ['held', 'holdBar', 'released'],
  events: [
    ...['approvalDecided', 'approvalRequested', 'handlerError', 'preCall', 'recalled'],
    ...['shiftBegun', 'stateChanged', 'steered', 'warning'],
  ],
};

describe('the lanes of a call', () => {
  it.each(['light', 'dark'] as const)('show each kind of entry, in %s', async (colorScheme) => {
    const { page, server } = await open({ colorScheme });
    server.send(
      hello,
      { line: 'calls', calls: [entryOf('c', { status: 'running' })] },
      { line: 'log', id: 'c', from: 0, items },
    );
    await page.locator('[data-kind=warning]').waitFor();
    const shown = await page
      .locator('[data-lane] [data-kind]')
      .evaluateAll((marbles) =>
        marbles.map((one) => [
          one.closest('[data-lane]')?.getAttribute('data-lane'),
          one.getAttribute('data-kind'),
        ]),
      );
    for (const [lane, expected] of Object.entries(kinds)) {
      const own = shown.filter(([of]) => of === lane).map(([, kind]) => kind);
      expect([...new Set(own)].sort()).toEqual(expected);
    }
    expect(await page.locator('.subscription.request.error').count()).toBe(1);
    expect(await page.locator('.subscription.tool.unsubscribed').count()).toBe(1);
    await page.locator('[data-kind=shiftBegun]').hover();
    await page.locator('.hint', { hasText: 'shiftBegun' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await shoot(page, `lanes-${colorScheme}`);
  });
});
