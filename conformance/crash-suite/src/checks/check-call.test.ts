import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Message } from 'millrace';
import type { StoredRecord } from 'millrace/journal';
import type { Arrival } from '../effects/effect-server.js';
import type { Outcome, Uncertainty } from '../life/said.js';
import { effectsOf, planOf } from '../script/plan.js';
import { checkCall, type Evidence } from './check-call.js';
import { taskOf } from '../script/script-agent.js';
import { expectedMemory } from './expected.js';

const call = { callId: 'c', seed: 3, mode: 'report' } as const;
const plan = planOf(call.seed);

let expected: readonly Message[];
beforeAll(async () => {
  expected = await expectedMemory({ ...call, task: taskOf(call.seed), plan });
});

const arrivals: readonly Arrival[] = effectsOf(plan).map(({ tool, item }) => {
  const isIdempotent = tool === 'book';
  return { tool, item, callId: 'c', key: `c/${item}`, seed: 's', isIdempotent, life: 'l' };
});
const event = (position: number, name: string): StoredRecord => ({
  position,
  kind: 'event',
  name,
  seq: position,
  text: '{}',
});

/** A call that went well, but for what is said here. */
const verdictOn = ({
  outcome,
  ...other
}: Partial<Omit<Evidence, 'outcome'>> & { outcome?: object }) =>
  checkCall({
    call,
    plan,
    expected,
    arrivals,
    uncertain: [],
    after: [],
    outcome: {
      callId: 'c',
      replies: [{ reason: 'answer' }],
      memory: expected,
      records: [[event(1, 'preCall'), event(2, 'postCall')]],
      open: [],
      ...outcome,
    } as unknown as Outcome,
    ...other,
  });

const pay = arrivals.filter(({ tool }) => tool === 'pay').slice(0, 1);
const reported = (then: Uncertainty['then']): readonly Uncertainty[] =>
  pay.map(({ key, item }) => ({ key, item, then }));

describe('what a call is held against', () => {
  it('S6: takes a call that went well', () => {
    const verdict = verdictOn({});
    expect(verdict).toMatchObject({ lost: [], doubled: [], uncertain: 0, wrongs: [] });
    expect(verdict.effects).toBe(arrivals.length);
  });

  it('S6: finds an effect that is lost, unless it was reported as uncertain', () => {
    const fewer = arrivals.filter((it) => !pay.includes(it));
    expect(verdictOn({ arrivals: fewer }).lost).toHaveLength(1);
    expect(verdictOn({ arrivals: fewer, uncertain: reported('report') }).lost).toEqual([]);
  });

  it('S6: finds an effect that was done twice, unless that was allowed and reported', () => {
    const twice = [...arrivals, ...pay];
    expect(verdictOn({ arrivals: twice }).doubled).toHaveLength(1);
    expect(verdictOn({ arrivals: twice, uncertain: reported('report') }).doubled).toHaveLength(1);
    const rerun = { arrivals: twice, call: { ...call, mode: 'rerun' as const } };
    expect(verdictOn({ ...rerun, uncertain: reported('rerun') }).doubled).toEqual([]);
    expect(verdictOn(rerun).doubled).toHaveLength(1);
  });

  it('S6: finds an effect that was done again under another key', () => {
    const again = pay.map((it) => ({ ...it, key: 'c/other' }));
    expect(verdictOn({ arrivals: [...arrivals, ...again] }).doubled).toHaveLength(1);
  });

  it('I1: finds a tool use without its result, and another conversation', () => {
    const memory = expected.filter((_, index) => index !== 2);
    const { wrongs } = verdictOn({ outcome: { memory } });
    expect(wrongs.join('\n')).toMatch(/have the results/u);
    expect(wrongs.join('\n')).toMatch(/the conversation is/u);
  });

  it('S7: finds events that are missing, and a call that is still open', () => {
    const records = [[event(1, 'preCall'), { ...event(2, 'postCall'), seq: 3 }]];
    const { wrongs } = verdictOn({ outcome: { records, open: ['c'] } });
    expect(wrongs).toEqual(['the event 2 has the number 3', 'c is still open']);
  });

  it('S6: takes no answer and fewer effects of an interrupted call, and of no other', () => {
    const ended = { arrivals: pay, outcome: { memory: [], replies: [{ reason: 'interrupted' }] } };
    const interrupted = verdictOn({ ...ended, call: { ...call, interruptAt: 1 } });
    expect(interrupted).toMatchObject({ isInterrupted: true, lost: [], wrongs: [] });
    const other = verdictOn(ended);
    expect(other).toMatchObject({ isInterrupted: false });
    expect(other.lost.length).toBeGreaterThan(0);
    expect(other.wrongs).toContain('there is no answer');
  });

  it('S3: finds a hint that a call has heard, and that the conversation has lost', () => {
    const records = [[event(1, 'preCall'), event(2, 'steered'), event(3, 'postCall')]];
    expect(verdictOn({ outcome: { records } }).wrongs).toEqual([
      'it has heard 1 hints, and 0 are in the conversation',
    ]);
  });
});
