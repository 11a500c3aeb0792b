import { describe, expect, it } from '@jest/globals';
import { injectionSignals } from './injection-heuristic.js';

describe('injectionSignals', () => {
  it.each([
    ['orders without an end', 'ignore previous '],
    ['verbs', 'ignore '],
    ['verbs and gaps', 'forget everything you your '],
    ['open quotes', '"ignore all previous instructions '],
    ['tokens', '<|im_start|>'],
    ['lines', 'system\n'],
    ['spaces', ' '],
    ['spaces and lines', '  \n  '],
    ['letters', 'aB3/'],
    ['bytes', '\\x4f '],
    ['joiners', 'a\u200b'],
    ['marks that a normaliser sorts', '\u0315\u0300\u0334'],
    ['a row of tags', '\u{e0041}'],
    ['ligatures', '\ufdfa'],
    ['personas', 'you are now act as pretend to be '],
    ['requests', 'print your repeat all show your '],
    ['codes', 'decode base64 follow the '],
    ['Chinese', '忽略之前把所有'],
    ['Turkish', 'önceki talimat '],
    ['emoji', '👩‍👩‍👧'],
  ])('X6: 1 MB of %s takes linear time', (_, unit) => {
    const timeOf = (size: number): number => {
      const text = unit.repeat(Math.ceil(size / Buffer.byteLength(unit)));
      const [begun, usage] = [performance.now(), process.cpuUsage()];
      injectionSignals(text);
      const { user } = process.cpuUsage(usage);
      return Math.min(performance.now() - begun, user / 1_000);
    };
    timeOf(20_000);
    const isLinear = (): boolean => {
      const once = Math.min(timeOf(125_000), timeOf(125_000));
      // What is quadratic would take sixty-four times as long.
      return timeOf(1_000_000) < 24 * Math.max(once, 10);
    };
    // A busy machine may be in the way of one try, or of two.
    expect([1, 2, 3, 4, 5].some(isLinear)).toBe(true);
  });
});
