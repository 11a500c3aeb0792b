import { describe, expect, it } from '@jest/globals';
import type { Scenario } from '../scenario.js';
import { faults } from './faults.js';

const plays = faults.flatMap((fault) =>
  fault.wires.map((wire) => ({ ...fault, play: fault.scenario(wire) })),
);

/** Whether a scenario waits for its client to leave. */
const waits = ({ responses }: Scenario): boolean =>
  responses.some((script) => script.some(({ type }) => type === 'stall' || type === 'forever'));

describe('faults', () => {
  it('have ids of their own, that can be names of tests', () => {
    const ids = faults.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[a-z0-9-]+$/.test(id))).toEqual([]);
  });

  it('say what they are about in a sentence', () => {
    expect(faults.filter(({ about }) => !/^[A-Z].*\.$/.test(about)).map(({ id }) => id)).toEqual(
      [],
    );
  });

  it('want a connection closed if the server does not end, and only there', () => {
    const wrong = plays.filter(({ play, expects }) => waits(play) !== (expects.closes ?? false));
    expect(wrong.map(({ id }) => id)).toEqual([]);
  });

  it('are played on each wire, and survive the way to the process', () => {
    expect(plays.length).toBeGreaterThan(faults.length);
    const sent = plays.filter(
      ({ play }) => JSON.stringify(play) !== JSON.stringify(structuredClone(play)),
    );
    expect(sent).toEqual([]);
    expect(plays.filter(({ play }) => play.responses.length === 0)).toEqual([]);
  });

  it('want no more requests than a policy of three attempts sends, but for redirects and turns', () => {
    const many = plays.filter(({ expects, row }) => expects.requests > 3 && row !== 'X9');
    expect(many).toEqual([]);
  });
});
