import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { resumedAt, runningAt, stepsAt } from '../../docs/site/.vitepress/theme/timeline.mjs';
import { root } from '../workspaces.mjs';
import { costsOf, homePage, lanesOf } from './home.mjs';

const readme = readFileSync(join(root, 'README.md'), 'utf8');

describe('the home page', () => {
  it('has blocks of README and the guide, a call and a chart', () => {
    const page = homePage();
    expect(page).not.toMatch(/<!--|# call/);
    expect(page).toContain('createAgent({ model: demoModel()');
    expect(page).toContain("toBe('^-------!')");
    expect(page).toContain('<th scope="row">LangGraph</th>');
    expect(page).toMatch(/^call: \{"lanes":\[\{"name":"reasoning"/m);
  });

  it('plays the call of README', () => {
    const { lanes, ms } = lanesOf(readme);
    expect(lanes.map(({ name }) => name)).toEqual(['reasoning', 'calculator', 'clock']);
    expect(new Set(lanes.map(({ cells }) => cells.length)).size).toBe(1);
    expect(ms).toBeGreaterThan(0);
  });

  it('has all frameworks of README', () => {
    const costs = costsOf(readme);
    expect(costs).toHaveLength(5);
    expect(costs[0].name).toBe('Millrace');
    for (const { ratio } of costs) expect(ratio).toBeGreaterThan(1);
  });
});

describe('a call that is left and resumed', () => {
  const lanes = [
    { name: 'reasoning', cells: '─hc|····─t|' },
    { name: 'slow', cells: '···────r|··' },
    { name: 'quick', cells: '···─r|·····' },
  ];

  it('repeats what had not ended, and nothing else', () => {
    expect(runningAt(lanes, 6)).toEqual(['slow']);
    expect(stepsAt(lanes, 6)).toBe(2);
    expect(resumedAt(lanes, 6).map(({ cells }) => cells)).toEqual([
      '─hc|·····' + '··─t|',
      '···──!' + '────r|··',
      '···─r|' + '········',
    ]);
  });

  it('repeats a message of the model that had not ended', () => {
    expect(runningAt(lanes, 2)).toEqual(['reasoning']);
    expect(resumedAt(lanes, 2)[0].cells).toBe('─!─hc|····─t|');
  });

  it('keeps all lanes as long as each other, with the same steps at the end', () => {
    const { lanes: recorded } = lanesOf(readme);
    const { length } = recorded[0].cells;
    for (let column = 0; column <= length; column += 1) {
      const resumed = resumedAt(recorded, column);
      expect(new Set(resumed.map(({ cells }) => cells.length)).size).toBe(1);
      const whole = resumed[0].cells.length;
      expect([column, stepsAt(resumed, whole)]).toEqual([column, stepsAt(recorded, length)]);
    }
  });
});
