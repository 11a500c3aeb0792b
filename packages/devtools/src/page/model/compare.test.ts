import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { LogItem } from '../protocol.js';
import { createJoins, diffWords, joinFork, pairSteps } from './compare.js';
import { messageAt } from './conversation.js';
import { forked } from './forks.test-support.js';
import { viewOf } from './requests.js';
import { createRun, type Run } from './run.js';
import { travel } from './runs.test-support.js';

const runWith = (items: readonly LogItem[]): Run => {
  const run = createRun();
  run.log.append(items);
  return run;
};

const stepsOf = (left: Run, right: Run) =>
  pairSteps(left, right).map(({ step, isSame }) => `${step}${isSame ? '' : ' ≠'}`);

describe('a fork beside its original', () => {
  describe.each([false, true])('inspected: %s', (marks) => {
    it.each([
      ['1', ['call', '1', '1/0', '1/1 ≠', '2 ≠']],
      ['1/1', ['call', '1', '1/0', '1/1 ≠', '2 ≠']],
      ['2', ['call', '1', '1/0', '1/1', '2 ≠']],
    ])('has the steps of the original until step %s, and then its own', async (at, steps) => {
      const { original, fork } = await forked(at, undefined, marks);
      const [before, after] = [runWith(original), runWith(fork)];
      const joined = joinFork(before, after, { callId: 'c', at });
      if (joined === undefined) throw new Error('It is not joined.');
      expect(stepsOf(before, joined.run)).toEqual(steps);
      expect([...joined.run.lanes.calls.keys()]).toEqual(['f']);
      expect(joined.run.lanes.root?.turns.map(({ iteration }) => iteration)).toEqual([1, 2]);
      expect(joined.run.log.startedAt).toBe(before.log.startedAt);
      const times = Array.from({ length: joined.run.log.size }, (_, position) =>
        joined.run.log.entry(position),
      );
      expect(
        times.some((entry) => entry?.type === 'event' && entry.event.type === 'stepReplayed'),
      ).toBe(false);
    });
  });

  it('has the texts of edited steps', async () => {
    const { original, fork } = await forked('2', 'Rain.');
    const before = runWith(original);
    const joined = joinFork(before, runWith(fork), { callId: 'c', at: '2' });
    if (joined === undefined) throw new Error('It is not joined.');
    expect(stepsOf(before, joined.run)).toEqual(['call', '1', '1/0 ≠', '1/1', '2 ≠']);
    expect(pairSteps(before, joined.run)[2]?.right).toContain('Rain.');
  });

  it('has the edited text of a message with tool calls, and keeps those with their results', async () => {
    const { original, fork } = await forked('2', undefined, false, 'First I look it up.');
    const before = runWith(original);
    const joined = joinFork(before, runWith(fork), { callId: 'c', at: '2' });
    if (joined === undefined) throw new Error('It is not joined.');
    const { run } = joined;
    expect(stepsOf(before, run)).toEqual(['call', '1 ≠', '1/0', '1/1', '2 ≠']);
    const [question, message, ...tools] = run.conversation.parts;
    expect(question?.type).toBe('input');
    expect(message?.type === 'message' && messageAt(message, run.log.size).text.slice(0)).toBe(
      'First I look it up.',
    );
    expect(message?.edited).toBe(message?.type === 'message' && message.final?.position);
    const results = tools.flatMap((part) => (part.type === 'tool' ? [part.result?.text] : []));
    expect(results).toEqual(['Dry.', 'At 08:10.']);
    // The model got the edited message, with its tool calls.
    const request = run.requests.list.at(-1);
    const view = request && viewOf(request);
    expect(view?.messages.map(({ text }) => text)).toEqual([
      'Boat or train?',
      'First I look it up.\nw: weather({"city":"Flåm"})\nf: ferry({})',
      'w → Dry.\nf → At 08:10.',
    ]);
  });

  it('follows a fork that runs, and is the same however it comes', async () => {
    const { original, fork } = await forked('2');
    const before = runWith(original);
    const whole = joinFork(before, runWith(fork), { callId: 'c', at: '2' });
    const growing = runWith(fork.slice(0, 5));
    const joined = joinFork(before, growing, { callId: 'c', at: '2' });
    for (const item of fork.slice(5)) {
      growing.log.append([item]);
      joined?.update();
    }
    expect(joined?.run.log.items()).toEqual(whole?.run.log.items());
  });

  it('is joined on its own, too, with what was kept and edited', async () => {
    const { original, fork } = await forked('2', 'Rain.');
    const runs = new Map([['f', runWith(fork)]]);
    const calls = [{ id: 'c' }, { id: 'f', forkedFrom: { callId: 'c', at: '2' } }];
    const known = { runs, callsById: new Map(calls.map((call) => [call.id, call])) };
    const runOf = createJoins();
    // Its original may come later.
    expect(runOf(known, 'f')).toEqual({ run: runs.get('f'), joined: undefined });
    runs.set('c', runWith(original));
    const whole = runOf(known, 'f');
    const parts = whole?.run.conversation.parts.map((part) => {
      const isKept = part.position < (whole.joined?.keptUntil ?? 0);
      const text = part.type === 'tool' ? `${part.name}: ${part.result?.text}` : part.type;
      return `${text}${isKept ? ', kept' : ''}${part.edited === undefined ? '' : ', edited'}`;
    });
    expect(parts).toEqual([
      'input, kept',
      'message, kept',
      'weather: Rain., kept, edited',
      'ferry: At 08:10., kept',
      'message',
      'notice',
    ]);
    expect(runOf(known, 'f')?.run).toBe(whole?.run);
  });

  it('keeps its sub-agents if they are, and knows their steps', () => {
    const original = runWith(travel().items);
    const fork = runWith(travel({ callId: 'f', weather: 'Rain.' }).items);
    const joined = joinFork(original, fork, { callId: 'c', at: 'r1/2' });
    expect([...(joined?.run.lanes.calls.keys() ?? [])]).toEqual(['f', 'f/r1']);
    expect(joinFork(original, fork, { callId: 'c', at: '9' })).toBeUndefined();
  });
});

describe('two calls', () => {
  it('differ first where their steps do', () => {
    const [left, right] = ['Dry.', 'Rain.'].map((weather) =>
      runWith(travel({ weather, callId: weather }).items),
    );
    if (left === undefined || right === undefined) throw new Error('A run is missing.');
    expect(stepsOf(left, right)).toEqual(['call', '1', '1/0 ≠', '1/1', '1/2', '2']);
    expect(stepsOf(left, left).join('')).not.toContain('≠');
  });
});

describe('a difference of words', () => {
  it('marks the words that are in one text only', () => {
    const pieces = diffWords('Take the boat, it stays dry.', 'Take the train, it rains.');
    expect(
      pieces.map((piece) => `${{ both: '=', left: '-', right: '+' }[piece.in]}${piece.text}`),
    ).toEqual([...['=Take the ', '-boat', '+train', '=, it ', '-stays dry', '+rains', '=.']]);
    expect(diffWords('', '')).toEqual([]);
    expect(diffWords('a', '')).toEqual([{ in: 'left', text: 'a' }]);
  });

  it('has all of both texts, in order', () => {
    const text = fc
      .array(fc.constantFrom('a ', 'b', '. ', 'Flåm ', '\n'), { maxLength: 30 })
      .map((words) => words.join(''));
    fc.assert(
      fc.property(text, text, (left, right) => {
        const pieces = diffWords(left, right);
        const without = (side: 'left' | 'right') =>
          pieces
            .filter((piece) => piece.in !== side)
            .map((piece) => piece.text)
            .join('');
        expect([without('right'), without('left')]).toEqual([left, right]);
        if (left === right) expect(pieces.every((piece) => piece.in === 'both')).toBe(true);
      }),
    );
  });

  it('of long texts takes no long time', () => {
    const [left, right] = ['a', 'b'].map((word) =>
      Array.from({ length: 20_000 }, (_, at) => `${word}${at}`).join(' '),
    );
    expect(diffWords(`Same. ${left} End`, `Same. ${right} End`).map((piece) => piece.in)).toEqual([
      'both',
      'left',
      'right',
      'both',
    ]);
  });
});
